/* What `nrg run` and `nrg report` share: the options about results, and showing a recording. */
#ifndef NRG_CLI_SHOW_H
#define NRG_CLI_SHOW_H

#include "cli/common.h"
#include "record/read/recording.h"

struct nrg_show_options {
    const char *json;
    const char *split;
    double carbon_g_per_kwh;
    bool all_processes;
};

/* Rows for a command's option table; `field` is the values' member of type nrg_show_options. */
#define NRG_SHOW_OPTIONS(type, field)                                                              \
    {"json",                                                                                       \
     'j',                                                                                          \
     NRG_OPT_FILE,                                                                                 \
     "FILE",                                                                                       \
     "all results as JSON, to stdout or FILE",                                                     \
     offsetof(type, field) + offsetof(struct nrg_show_options, json)},                             \
        {"split",                                                                                  \
         0,                                                                                        \
         NRG_OPT_STRING,                                                                           \
         "RULE",                                                                                   \
         "energy per process: active (above idle, by CPU time; default) or busy-time",             \
         offsetof(type, field) + offsetof(struct nrg_show_options, split)},                        \
        {"carbon-intensity",                                                                       \
         0,                                                                                        \
         NRG_OPT_NUMBER,                                                                           \
         "G_PER_KWH",                                                                              \
         "also show grams of CO2 equivalent",                                                      \
         offsetof(type, field) + offsetof(struct nrg_show_options, carbon_g_per_kwh)},             \
    {                                                                                              \
        "all-processes", 0, NRG_OPT_FLAG, NULL, "list every process, not only the largest",        \
            offsetof(type, field) + offsetof(struct nrg_show_options, all_processes)               \
    }

/* Checks the words given; 0 or 2 after saying what is wrong. */
int nrg_show_check(const struct nrg_cli *cli, const struct nrg_show_options *options);

/* Prints text to `text_out` (NULL: none) and JSON where asked. Exit code 0 or 1. */
int nrg_show(struct nrg_recording *recording, const struct nrg_show_options *options,
             FILE *text_out);

#endif
