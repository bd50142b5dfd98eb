/*
 * Readers of data sets: our own CSV and JSON (docs/dataset.md), recordings, IrEne's folder of four
 * CSVs, and the Jetson study's CSVs with engine infos. Each adds to a data set; the caller finishes
 * it when everything is read. Nothing in a file is trusted; errors name file and line.
 */
#ifndef NRG_PREDICT_DATASET_READ_H
#define NRG_PREDICT_DATASET_READ_H

#include "attribute/attribution.h"
#include "predict/dataset/measurements.h"

struct nrg_read_options {
    const char *device;      /* name instead of the file's own, or NULL */
    const char *layers;      /* engine info or model summary for layer statistics, or NULL */
    bool original_layers;    /* the Jetson study's own features, with their known errors */
    const char *graph;       /* model file for recordings that keep none, or NULL */
    enum nrg_idle_mode idle; /* of recordings: whose the idle energy is */
};

/* A file or folder of any form that we know. 0, or -errno with err. */
int nrg_dataset_read(struct nrg_dataset *set, const char *path,
                     const struct nrg_read_options *options, struct nrg_error *err);

/* ---- one function per form; `text` is writable and used up ---- */

int nrg_dataset_read_csv(struct nrg_dataset *set, char *text, size_t size, const char *name,
                         const struct nrg_read_options *options, struct nrg_error *err);
int nrg_dataset_read_json(struct nrg_dataset *set, const char *text, size_t size, const char *name,
                          const struct nrg_read_options *options, struct nrg_error *err);

/*
 * Recordings of modules and operators, with the graph of their model. Those in a row that
 * nrg.torch.measure made of one model are read as one: it may have been interrupted. The device of
 * recordings must be the same, unless options name one.
 */
int nrg_dataset_read_recordings(struct nrg_dataset *set, const char *const *paths, size_t n,
                                const struct nrg_read_options *options, struct nrg_error *err);

/* IrEne: the texts of ml1, ml2, module and model; any may be NULL but one. */
#define NRG_IRENE_FILES 4
extern const char *const nrg_irene_names[NRG_IRENE_FILES];
struct nrg_text {
    char *text; /* NULL: no such file */
    size_t size;
    const char *name;
};
int nrg_dataset_read_irene(struct nrg_dataset *set, const struct nrg_text files[NRG_IRENE_FILES],
                           const char *device, struct nrg_error *err);

/* Jetson: the training rows of one layer type ("convolutional", "pooling", "dense"). */
int nrg_dataset_read_jetson(struct nrg_dataset *set, struct nrg_text file, const char *type,
                            const char *model, const struct nrg_read_options *options,
                            struct nrg_error *err);
/* Jetson: statistics of power and run time per layer, with the layers' description. */
int nrg_dataset_read_jetson_stats(struct nrg_dataset *set, struct nrg_text power,
                                  struct nrg_text run_time, const char *layers, const char *model,
                                  const struct nrg_read_options *options, struct nrg_error *err);

#endif
