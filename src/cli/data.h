/* What nrg dataset, train and evaluate share: reading data sets and reporting odd entries. */
#ifndef NRG_CLI_DATA_H
#define NRG_CLI_DATA_H

#include "cli/internal.h"
#include "predict/dataset/read.h"

struct nrg_data_options {
    const char *device, *layers, *graph, *tasks;
    int original_layers, idle, gpus;
    struct nrg_list exclude, configs;
};

extern const struct nrg_choice nrg_data_layer_features[], nrg_data_idle_rules[];
/* Of nrg train and nrg evaluate. */
extern const struct nrg_choice nrg_feature_sets[];

#define NRG_OPT_CONFIDENCE NRG_OPT_NUMBER_IN(1e-9, 1 - 1e-9, "a number above 0 and below 1")

/* Rows for a command's option table; `field` is the values' member of that type. */
/* clang-format off */
#define NRG_DATA_OPTIONS(type, field)                                                              \
    {"device", 0, NRG_OPT_STRING, "NAME",                                                          \
     "the device's name, or which of several devices is meant", offsetof(type, field.device)},     \
    {"layers", 0, NRG_OPT_STRING, "FILE",                                                          \
     "engine info or model_summary.json that describes layers of statistics",                      \
     offsetof(type, field.layers)},                                                                \
    {"layer-features", 0, NRG_OPT_CHOICE(nrg_data_layer_features), "WORD",                         \
     "features of layers: ", offsetof(type, field.original_layers)},                               \
    {"graph", 0, NRG_OPT_STRING, "FILE", "the model's graph, for recordings that keep none",       \
     offsetof(type, field.graph)},                                                                 \
    {"idle", 0, NRG_OPT_CHOICE(nrg_data_idle_rules), "WORD", "idle energy of recordings: ",        \
     offsetof(type, field.idle)},                                                                  \
    {"exclude", 0, NRG_OPT_LIST, "MODEL", "leave a model out, by nrg's or the file's name; repeatable", \
     offsetof(type, field.exclude)},                                                               \
    {"task", 0, NRG_OPT_STRING, "NAME,NAME", "of language models: rows of these tasks alone",      \
     offsetof(type, field.tasks)},                                                                 \
    {"config", 0, NRG_OPT_LIST, "[MODEL=]FILE",                                                    \
     "of language models: the config.json of rows whose model's name contains MODEL",              \
     offsetof(type, field.configs)},                                                               \
    {"gpus", 0, NRG_OPT_COUNT, "N",                                                                \
     "of recordings of servers: GPUs of one (default: those whose energy was recorded)",           \
     offsetof(type, field.gpus)}
/* clang-format on */

/*
 * Reads all paths into one data set, of one device unless `any_devices`. Reports odd entries on
 * stderr. Exit code 0, 1 or 2; the caller releases the set in any case.
 */
int nrg_data_read(struct nrg_cli *cli, const struct nrg_data_options *options, int argc,
                  char **argv, bool any_devices, struct nrg_dataset *set);

/* Writes a data set in nrg's own form: JSON when the name ends in .json, else CSV. 0 or 1. */
int nrg_data_write(const struct nrg_dataset *set, const char *path);

#endif
