/* The outputs of `nrg attribute`: which ones were asked for, and where they go. */
#ifndef NRG_CLI_ATTRIBUTE_SHOW_H
#define NRG_CLI_ATTRIBUTE_SHOW_H

#include "cli/internal.h"
#include "report/attribution/report.h"

struct nrg_attribute_outputs {
    const char *json, *csv, *folded, *trace; /* "-": stdout; NULL: not asked for */
    int trace_limit;                         /* 0: all */
    size_t top;
    double min_share; /* 0..1 */
};

/* Checks that stdout is not asked for twice. 0, or 2 after saying so. */
int nrg_attribute_check_outputs(const struct nrg_cli *cli,
                                const struct nrg_attribute_outputs *outputs);

/* Writes all of them; the table goes to stdout unless something else does. Exit code 0 or 1. */
int nrg_attribute_show(const struct nrg_cli *cli, const struct nrg_attribution_report *report,
                       const struct nrg_attribute_outputs *outputs, bool earlier_columns);

#endif
