/* What `nrg run` and `nrg report` share: the options about results, and showing a recording. */
#ifndef NRG_CLI_SHOW_H
#define NRG_CLI_SHOW_H

#include "cli/internal.h"
#include "record/read/recording.h"

struct nrg_show_options {
    const char *json;
    int split; /* enum nrg_split */
    double carbon_g_per_kwh, price_per_kwh;
    bool all_processes;
    int print; /* enum nrg_print */
};

/* One number for scripts, instead of text and on stdout alone. */
enum nrg_print { NRG_PRINT_NOTHING, NRG_PRINT_ENERGY };

extern const struct nrg_choice nrg_split_rules[], nrg_print_choices[];

/* Rows for a command's option table; `field` is the values' member of type nrg_show_options. */
/* clang-format off */
#define NRG_SHOW_OPTIONS(type, field)                                                              \
    {"json", 'j', NRG_OPT_FILE, "FILE", "all results as JSON, to stdout or FILE",                  \
     offsetof(type, field.json)},                                                                  \
    {"print", 0, NRG_OPT_CHOICE(nrg_print_choices), "WHAT",                                        \
     "one number on stdout, for scripts: ", offsetof(type, field.print)},                          \
    {"split", 0, NRG_OPT_CHOICE(nrg_split_rules), "RULE", "energy per process: ",                  \
     offsetof(type, field.split)},                                                                 \
    {"carbon-intensity", 0, NRG_OPT_NUMBER_IN(0, 1e9, "a number, 0 or more"), "G_PER_KWH",         \
     "also show grams of CO2 equivalent", offsetof(type, field.carbon_g_per_kwh)},                 \
    {"price", 0, NRG_OPT_NUMBER_IN(0, 1e9, "a number, 0 or more"), "PER_KWH",                      \
     "also show what the energy costs", offsetof(type, field.price_per_kwh)},                      \
    {"all-processes", 0, NRG_OPT_FLAG, NULL, "list every process, not only the largest",           \
     offsetof(type, field.all_processes)}
/* clang-format on */

/* False when --print and --json both want stdout. */
bool nrg_show_fits(const struct nrg_show_options *options);
/* Summaries of all runs but the baseline. 0 or -errno with err. */
struct nrg_report;
int nrg_report_make(struct nrg_report *report, struct nrg_recording *recording,
                    const struct nrg_show_options *options, struct nrg_error *err);
void nrg_report_release(struct nrg_report *report);
/* Prints text to `text_out` (NULL: none), and JSON and the number where asked. Exit code 0 or 1. */
int nrg_show(struct nrg_recording *recording, const struct nrg_show_options *options,
             FILE *text_out);

#endif
