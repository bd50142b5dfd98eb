/*
 * The contract between the readers of layer times (one file and one const struct each) and
 * import/join.c, which places and writes what they found. `match` decides by the first tokens of
 * the document, by the header of a table, or not at all: what a database holds its reader finds
 * out. `read` gets the document once and puts spans into the sink, on the clock of the file. Adding
 * a format is one file and one line in read.c.
 *
 * What is odd but no reason to stop is counted and reported in a note. Errors are negative errno
 * with err. One thread at a time. Inside src/import.
 */
#ifndef NRG_IMPORT_LAYERS_READ_H
#define NRG_IMPORT_LAYERS_READ_H

#include "base/input.h"
#include "base/json/stream.h"
#include "import/join.h"
#include "import/span_sink.h"

enum { NRG_LAYER_HEAD = 48 }; /* tokens that `match` sees */

enum nrg_layer_form { NRG_LAYER_JSON, NRG_LAYER_TABLE, NRG_LAYER_DATABASE };

struct nrg_layer_head {
    enum nrg_layer_form form;
    char line[2048]; /* of a table: its header, cut */
    size_t n;        /* of a JSON document */
    struct {
        enum nrg_json_token token;
        char text[40]; /* cut */
    } tokens[NRG_LAYER_HEAD];
};

struct nrg_layer_import {
    const struct nrg_import_join_options *options;
    struct nrg_input input; /* for progress; may be empty */
    FILE *in;               /* the document */
    struct nrg_json_stream json;
    struct nrg_span_sink *sink;
    struct nrg_import_layers *file; /* wall_clock, cycles and notes are the reader's */
    int64_t base_ns;                /* to be added to the times in the sink */
    uint64_t ticks;
    bool lost_note; /* out of memory for a note: the import fails at its end */
};

struct nrg_layer_format {
    const char *name;
    enum nrg_layer_form form;
    unsigned json_flags;
    bool (*match)(const struct nrg_layer_head *head); /* NULL: all of its form */
    int (*read)(struct nrg_layer_import *im, struct nrg_error *err);
};

extern const struct nrg_layer_format nrg_layers_trt, nrg_layers_torch_phase;
extern const struct nrg_layer_format nrg_layers_trtexec_profile, nrg_layers_trtexec_times;
extern const struct nrg_layer_format nrg_layers_ort, nrg_layers_chrome;
extern const struct nrg_layer_format nrg_layers_nsys, nrg_layers_gpu_csv;

/* Reads one file, or an open, seekable stream, into a new im->sink. Release im in any case. */
int nrg_layer_import_file(struct nrg_layer_import *im, const char *path, struct nrg_error *err);
int nrg_layer_import_stream(struct nrg_layer_import *im, FILE *in, const char *path,
                            struct nrg_error *err);
void nrg_layer_import_release(struct nrg_layer_import *im);

/* For readers: a line for the user. A note that can't be kept sets lost_note. */
void nrg_layer_note(struct nrg_layer_import *im, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The note "1 span ..." or "3 spans ...", unless count is 0. */
void nrg_layer_count(struct nrg_layer_import *im, uint64_t count, const char *one, const char *many,
                     const char *rest);
/* A track of kind "log" in the domain that the user chose: its id, or -errno. */
int64_t nrg_layer_track(struct nrg_layer_import *im, const char *name);
/*
 * Adds a span to the sink. 1: added; 0: its times are impossible, and *bad was raised; -errno, also
 * for ids that the sink could not give.
 */
int nrg_layer_span(struct nrg_layer_import *im, const struct nrg_sink_span *span, uint64_t *bad);
/* Called for each event: shows progress now and then. */
static inline void nrg_layer_tick(struct nrg_layer_import *im)
{
    if (im->options->progress && !(++im->ticks & 8191))
        im->options->progress(im->options->progress_arg, im->file->path,
                              nrg_input_done_bytes(&im->input), im->input.size_bytes);
}
/* The first line of a table behind what its program said before it: as nrg_lines_next. */
struct nrg_lines;
int nrg_layer_header(struct nrg_lines *lines);
/* For readers that need a second look: back to the document's first token, with an empty sink. */
int nrg_layer_restart(struct nrg_layer_import *im, struct nrg_error *err);
int nrg_layer_out_of_memory(const struct nrg_layer_import *im, struct nrg_error *err);

/* Whether token i of the head is of that kind. */
bool nrg_layer_head_is(const struct nrg_layer_head *head, size_t i, enum nrg_json_token token);
/* Whether the head has that key anywhere. */
bool nrg_layer_head_has(const struct nrg_layer_head *head, const char *key);

#endif
