/*
 * The contract between the readers of layer times (import_<name>.c, one const struct each) and
 * import_join.c, which places and writes what they found. A reader is asked with the first tokens
 * of the document (`match`), then given the document once (`read`), and puts spans into the sink
 * on the clock of the file. Adding a format is one file and one line in layer_import.c.
 *
 * What is odd but no reason to stop is counted and said in a note. Inside src/record.
 */
#ifndef NRG_RECORD_LAYER_IMPORT_H
#define NRG_RECORD_LAYER_IMPORT_H

#include "base/input.h"
#include "base/json_stream.h"
#include "import/join.h"
#include "import/span_sink.h"

enum { NRG_LAYER_HEAD = 48 }; /* tokens that `match` sees */

struct nrg_layer_head {
    size_t n;
    struct {
        enum nrg_json_token token;
        char text[40]; /* cut */
    } tokens[NRG_LAYER_HEAD];
};

struct nrg_layer_import {
    const struct nrg_import_join_options *options;
    struct nrg_input input; /* for progress; may be empty */
    struct nrg_json_stream json;
    struct nrg_span_sink *sink;
    struct nrg_import_layers *file; /* wall_clock, cycles and notes are the reader's */
    int64_t base_ns;                /* to be added to the times in the sink */
    uint64_t ticks;
};

struct nrg_layer_format {
    const char *name;
    unsigned json_flags;
    bool (*match)(const struct nrg_layer_head *head);
    int (*read)(struct nrg_layer_import *im, struct nrg_error *err);
};

extern const struct nrg_layer_format nrg_layers_trt, nrg_layers_torch_phase;
extern const struct nrg_layer_format nrg_layers_trtexec_profile, nrg_layers_trtexec_times;
extern const struct nrg_layer_format nrg_layers_ort, nrg_layers_chrome;

/* Reads one file, or an open, seekable stream, into im->sink, which is made. Release im after. */
int nrg_layer_import_file(struct nrg_layer_import *im, const char *path, struct nrg_error *err);
int nrg_layer_import_stream(struct nrg_layer_import *im, FILE *in, const char *path,
                            struct nrg_error *err);
void nrg_layer_import_release(struct nrg_layer_import *im);

/* For readers. */
int nrg_layer_note(struct nrg_layer_import *im, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* "1 span" or "3 spans" and the rest, unless count is 0. */
int nrg_layer_count(struct nrg_layer_import *im, uint64_t count, const char *one, const char *many,
                    const char *rest);
/* Called for each event: shows progress now and then. */
static inline void nrg_layer_tick(struct nrg_layer_import *im)
{
    if (im->options->progress && !(++im->ticks & 8191))
        im->options->progress(im->options->progress_arg, im->file->path,
                              nrg_input_done_bytes(&im->input), im->input.size_bytes);
}
int nrg_layer_out_of_memory(const struct nrg_layer_import *im, struct nrg_error *err);

/* "{", "[" of the head, or a key of that name. */
bool nrg_layer_head_is(const struct nrg_layer_head *head, size_t i, enum nrg_json_token token);
/* A key of the head's first objects. */
bool nrg_layer_head_has(const struct nrg_layer_head *head, const char *key);

#endif
