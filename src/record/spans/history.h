/*
 * What threads had open, and when: for work that was launched by a thread and done later elsewhere,
 * such as kernels of a GPU, which are reported up to seconds after their launch. A stack of spans
 * is a path (span_path of the recording); each begin and end of a span adds the path from then on.
 *
 * Nothing is kept until a program says that launches will come (`launches` in mark/ring.h). Memory
 * is bounded: a thread's history holds its last events, all together at most about 16 MB, and
 * what was launched before that stays without a path. Histories of threads that have ended stay
 * until their place is needed.
 *
 * Embedded in the rows: zeroed, release. Errors: what does not fit is not kept. Not thread-safe.
 */
#ifndef NRG_RECORD_SPANS_HISTORY_H
#define NRG_RECORD_SPANS_HISTORY_H

#include "base/map.h"
#include "record/spans/lane.h"
#include "record/spans/texts.h"

struct nrg_span_histories {
    struct nrg_span_history **items;
    size_t n, cap, last; /* last: found last */
    size_t n_moments;    /* kept in all of them */
    struct nrg_map paths;
};

void nrg_span_histories_release(struct nrg_span_histories *histories);

/* Begins to remember what the lane's thread has open. Does nothing the second time. */
void nrg_span_history_open(struct nrg_span_histories *histories, struct nrg_span_lane *lane,
                           struct nrg_span_texts *texts);
/* Takes the begin or end in lane->next. */
void nrg_span_history_add(struct nrg_span_histories *histories, struct nrg_span_lane *lane,
                          struct nrg_span_texts *texts);
/* The lane will be freed. */
void nrg_span_history_leave(struct nrg_span_lane *lane);

/*
 * The path that a thread of the lane's process had open at a time; 0: none, NRG_MISSING: not known
 * (any more).
 */
int64_t nrg_span_history_path(struct nrg_span_histories *histories,
                              const struct nrg_span_lane *lane, int32_t tid, int64_t t_ns);

#endif
