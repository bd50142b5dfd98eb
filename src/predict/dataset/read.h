/*
 * Reads a data set: our own CSV and JSON (docs/dataset.md), recordings, IrEne's folder of four
 * CSVs, the Jetson study's CSVs with engine infos, or ML.ENERGY's list of configurations. Nothing
 * in a file is trusted.
 *
 * Ownership: rows are added to the caller's data set, which the caller finishes when everything is
 * read. Errors: 0, or -errno with err, which names file and line. Threads: one per data set.
 */
#ifndef NRG_PREDICT_DATASET_READ_H
#define NRG_PREDICT_DATASET_READ_H

#include "attribute/attribution.h"
#include "predict/dataset/measurements.h"

struct nrg_read_options {
    const char *device;      /* which of several devices is meant, or the name of one; or NULL */
    const char *layers;      /* engine info or model summary for layer statistics, or NULL */
    bool original_layers;    /* the Jetson study's own features, with their known errors */
    const char *graph;       /* model file for recordings that keep none, or NULL */
    enum nrg_idle_mode idle; /* of recordings: whose the idle energy is */
    const char *tasks;       /* of ML.ENERGY's rows: a list with commas; NULL: all */
    /* Of language models: "MODEL=config.json"… or a file for all; NULL-terminated, or NULL. */
    const char *const *configs;
    const char *const *exclude; /* models; NULL-terminated, or NULL */
    double gpus; /* of recordings of servers: GPUs of one; 0: those whose energy was recorded */
};

/* A file or folder of any form that we know. 0, or -errno with err. */
int nrg_dataset_read(struct nrg_dataset *set, const char *path,
                     const struct nrg_read_options *options, struct nrg_error *err);

/*
 * After everything is read, before nrg_dataset_finish: keeps the rows of the device that is meant,
 * without the excluded models. -EINVAL when a device, model, task or config of the options is of no
 * row.
 */
int nrg_dataset_choose(struct nrg_dataset *set, const struct nrg_read_options *options,
                       struct nrg_error *err);

/* The model with that name, as nrg calls it or as the file does; NULL: none. */
const char *nrg_dataset_model(const struct nrg_dataset *set, const char *name);

#endif
