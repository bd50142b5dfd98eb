/*
 * The readers of data sets, one function per form; read.c chooses. Private to dataset/.
 *
 * Ownership: rows go into the caller's data set; texts belong to the caller. Errors: 0, or -errno
 * with err. Threads: one per data set.
 */
#ifndef NRG_PREDICT_DATASET_INTERNAL_H
#define NRG_PREDICT_DATASET_INTERNAL_H

#include "attribute/recorded_model.h"
#include "base/csv.h"
#include "base/map.h"
#include "predict/dataset/join.h"
#include "predict/dataset/read.h"

/* ---- forms; `text` is writable and used up ---- */

/* A file in memory. */
struct nrg_text {
    char *text; /* NULL: no such file */
    size_t size;
    const char *name;
};

/*
 * Reads a CSV: `header` gets its first record, `row` each further one, which must have as many
 * cells. An empty file is -ENODATA.
 */
int nrg_csv_read(struct nrg_text file, void *arg,
                 int (*header)(void *arg, const struct nrg_csv *csv, struct nrg_error *err),
                 int (*row)(void *arg, const struct nrg_csv *csv, struct nrg_error *err),
                 struct nrg_error *err);

int nrg_dataset_read_csv(struct nrg_dataset *set, char *text, size_t size, const char *name,
                         const struct nrg_read_options *options, struct nrg_error *err);
int nrg_dataset_read_json(struct nrg_dataset *set, const char *text, size_t size, const char *name,
                          const struct nrg_read_options *options, struct nrg_error *err);

/*
 * Recordings of modules and operators, with the graph of their model. Consecutive
 * recordings that nrg.torch.measure made of one model are read as one, because it may have been
 * interrupted. All must be of one device, unless options name it.
 */
int nrg_dataset_read_recordings(struct nrg_dataset *set, const char *const *paths, size_t n,
                                const struct nrg_read_options *options, struct nrg_error *err);

/* IrEne: the texts of ml1, ml2, module and model; at least one is not NULL. */
#define NRG_IRENE_FILES 4
extern const char *const nrg_irene_names[NRG_IRENE_FILES];
int nrg_dataset_read_irene(struct nrg_dataset *set, const struct nrg_text files[NRG_IRENE_FILES],
                           const char *device, struct nrg_error *err);

/* Jetson: the training rows of one layer type, enum nrg_layer_type. */
int nrg_dataset_read_jetson(struct nrg_dataset *set, struct nrg_text file, int type,
                            const char *model, const struct nrg_read_options *options,
                            struct nrg_error *err);
/* Jetson: statistics of power and run time per layer, with the layers' description. */
int nrg_dataset_read_jetson_stats(struct nrg_dataset *set, struct nrg_text power,
                                  struct nrg_text run_time, const char *layers, const char *model,
                                  const struct nrg_read_options *options, struct nrg_error *err);

/* ML.ENERGY: a JSON list of configurations of language models. */
int nrg_dataset_read_mlenergy(struct nrg_dataset *set, const char *text, size_t size,
                              const char *name, const struct nrg_read_options *options,
                              struct nrg_error *err);

/* ---- recordings: recording_run.c has the spans of programs that ran, recording.c the rest ---- */

/* All operator spans of one kind inside of one module. */
struct nrg_kind_sum {
    const char *family;
    uint32_t node;
    double module_calls;
    size_t last_parent; /* row whose calls are in module_calls */
    struct nrg_seen seen;
};

struct nrg_reading {
    struct nrg_dataset *set;
    const struct nrg_read_options *options;
    const char *path;
    struct nrg_error *err;
    struct nrg_recording *recording;
    struct nrg_attribution a;
    bool has_attribution;
    struct nrg_analysis graph; /* as the recording keeps it, or as given */
    struct nrg_join join;
    struct nrg_map nodes; /* of the tree, by path */
    struct nrg_kind_sum *kinds;
    size_t n_kinds, cap_kinds;
    size_t joined, foreign;
    bool several; /* recordings: one without a usable row does not spoil the others */
};

int nrg_reading_note(const struct nrg_reading *reading, const char *text);
int nrg_reading_no_memory(const struct nrg_reading *reading);

/* NULL, or why the row's energy can't be used. */
const char *nrg_reading_unusable(const struct nrg_attribution_row *row);
struct nrg_seen nrg_reading_seen(const struct nrg_reading *reading,
                                 const struct nrg_attribution_row *row);

/* True: tokens of generate() were counted, and the user says what model it is. */
bool nrg_reading_is_generation(const struct nrg_reading *reading);
/* All calls of generate() as one row (generation.c). */
int nrg_reading_generation(struct nrg_reading *reading, const char *device);

/* True: a recording of nrg llm proxy. */
bool nrg_reading_is_relay(const struct nrg_reading *reading);
/* A server's recording as one row (serving.c); *found: it is one. */
int nrg_reading_serving(struct nrg_reading *reading, const char *device, bool relay, bool *found);

/* Gives the forward spans of modules, and of the operators in them, to the join. */
int nrg_reading_run_spans(struct nrg_reading *reading);

#endif
