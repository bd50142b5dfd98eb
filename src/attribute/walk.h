/*
 * A walk through all span events of a recording in order of time: a stack per track, the place in
 * the tree that each span has, and calls back when one opens, closes or counts. Memory is that of
 * the stacks and trees, whatever the number of events.
 *
 * Nothing in the file is trusted. An end without begin is counted and ignored; an end that names a
 * span further out closes what is inside of it (`cut`); what is still open at the end of its track
 * is closed there (`unclosed`); a time that goes back is taken as the latest seen so far. The
 * spans concerned carry NRG_ROW_ flags.
 *
 * Two trees: `paths`, by nesting alone, and `rows`, which may tell numbered spans apart (`by`).
 * They are the same tree unless numbers matter. Walk as often as needed; places stay the same.
 *
 * Init, run, release; recording and catalog must outlive it. 0 or -errno. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_WALK_H
#define NRG_ATTRIBUTE_WALK_H

#include "attribute/attribution.h"
#include "attribute/span_tree.h"
#include "base/arena.h"
#include "record/read/span_catalog.h"
#include "record/read/spans.h"

struct nrg_open_span {
    uint32_t path, row; /* nodes */
    int64_t name;       /* span_name.id */
    int64_t begin_ns;
    uint8_t flags;  /* NRG_ROW_UNCLOSED, NRG_ROW_CLOCK */
    bool folded;    /* no row of its own: it counts to the one around it */
    bool elsewhere; /* placed by a path, not by the span around it */
    bool is_step;   /* a numbered one, and the outermost */
    uint32_t step;  /* that it is part of, or is: they are counted from 1; 0: none */
    int64_t number; /* its own; NRG_MISSING */
};

enum nrg_span_walk_what { NRG_WALK_OPEN, NRG_WALK_CLOSE, NRG_WALK_COUNT };

struct nrg_span_walk_event {
    enum nrg_span_walk_what what;
    int64_t t_ns;                     /* never before that of the event before */
    size_t track;                     /* index of the catalog's tracks */
    const struct nrg_open_span *span; /* that opens or closes; of a count the innermost, or NULL */
    const struct nrg_open_span *around; /* what it stands in on the track; NULL: nothing */
    size_t depth;                       /* spans around it, or for a count, open */
    uint32_t name;                      /* of a count: index of the catalog's names */
    int64_t amount;
};

typedef int (*nrg_span_walk_fn)(void *arg, const struct nrg_span_walk_event *event);

struct nrg_span_stack {
    struct nrg_open_span *spans;
    size_t n, cap;
    size_t beyond; /* opened where there was no room */
};

struct nrg_span_walk {
    struct nrg_arena memory; /* of the arrays */
    const struct nrg_span_catalog *catalog;
    struct nrg_span_tree paths, rows_own;
    struct nrg_span_tree *rows; /* &paths, or &rows_own */
    enum nrg_rows_by by;
    struct nrg_span_reader *reader;
    struct nrg_span_stack *stacks; /* per track */
    uint32_t *path_nodes;          /* per path of the catalog */
    uint8_t *name_is_numbered;     /* per name: of the kind that `by` tells apart */
    uint8_t *name_is_step;
    uint32_t numbered_row;       /* innermost numbered span that is open somewhere; 0 */
    uint32_t n_steps, open_step; /* open_step: the last one that is open somewhere; 0 */
    int64_t *last_ns, *end_ns;   /* per track: its last event; where it ends at the latest */
    size_t *by_end;              /* tracks in order of end_ns */
    size_t next_end;
    int64_t now_ns;
    uint64_t spans, unmatched_ends, unclosed, cut, unknown; /* of the last walk */
    size_t damaged;
    nrg_span_walk_fn each;
    void *arg;
};

/* source: the events, instead of those of the recording; NULL: those. */
int nrg_span_walk_init(struct nrg_span_walk *walk, struct nrg_recording *recording,
                       const struct nrg_span_source *source, const struct nrg_span_catalog *catalog,
                       enum nrg_rows_by by);
void nrg_span_walk_release(struct nrg_span_walk *walk);

/* Spans that are open at end_ns are closed there; tracks may end earlier (walk->end_ns). */
int nrg_span_walk_run(struct nrg_span_walk *walk, int64_t end_ns, nrg_span_walk_fn each, void *arg);

#endif
