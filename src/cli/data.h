/* What nrg dataset, nrg train and nrg evaluate share: reading data sets, and saying what was odd.
 */
#ifndef NRG_CLI_DATA_H
#define NRG_CLI_DATA_H

#include "cli/common.h"
#include "predict/dataset/internal.h"

struct nrg_data_options {
    const char *device, *layers, *layer_features, *graph, *idle;
    struct nrg_list exclude;
};

/* Rows for a command's option table; `field` is the values' member of that type. */
#define NRG_DATA_OPTIONS(type, field)                                                              \
    {"device",                                                                                     \
     0,                                                                                            \
     NRG_OPT_STRING,                                                                               \
     "NAME",                                                                                       \
     "the device's name, or which of several devices is meant",                                    \
     offsetof(type, field) + offsetof(struct nrg_data_options, device)},                           \
        {"layers",                                                                                 \
         0,                                                                                        \
         NRG_OPT_STRING,                                                                           \
         "FILE",                                                                                   \
         "engine info or model_summary.json that describes layers of statistics",                  \
         offsetof(type, field) + offsetof(struct nrg_data_options, layers)},                       \
        {"layer-features",                                                                         \
         0,                                                                                        \
         NRG_OPT_STRING,                                                                           \
         "WORD",                                                                                   \
         "features of layers: corrected (default), or original with the study's errors",           \
         offsetof(type, field) + offsetof(struct nrg_data_options, layer_features)},               \
        {"graph",                                                                                  \
         0,                                                                                        \
         NRG_OPT_STRING,                                                                           \
         "FILE",                                                                                   \
         "the model's graph, for recordings that keep none",                                       \
         offsetof(type, field) + offsetof(struct nrg_data_options, graph)},                        \
        {"idle",                                                                                   \
         0,                                                                                        \
         NRG_OPT_STRING,                                                                           \
         "WORD",                                                                                   \
         "idle energy of recordings: apart (default), share or none",                              \
         offsetof(type, field) + offsetof(struct nrg_data_options, idle)},                         \
    {                                                                                              \
        "exclude", 0, NRG_OPT_LIST, "MODEL", "leave a model out; may be repeated",                 \
            offsetof(type, field) + offsetof(struct nrg_data_options, exclude)                     \
    }

/*
 * Reads all paths into one data set of one device, unless `any_devices`. Says on stderr what was
 * odd. Exit code 0, 1 or 2; the caller releases the set in any case.
 */
int nrg_data_read(struct nrg_cli *cli, const struct nrg_data_options *options, int argc,
                  char **argv, bool any_devices, struct nrg_dataset *set);

#endif
