/* Statistics over repeated runs, for text and JSON alike. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "report/run/report.h"

double nrg_report_program_j(const struct nrg_summary *run)
{
    return run->program.energy_j;
}

double nrg_report_machine_j(const struct nrg_summary *run)
{
    return run->total_j;
}

double nrg_report_duration_s(const struct nrg_summary *run)
{
    return run->duration_s;
}

struct nrg_spread nrg_report_spread(const struct nrg_report *r,
                                    double (*value)(const struct nrg_summary *))
{
    double *values = nrg_calloc(r->n_runs + 1, sizeof *values);
    size_t n = 0;
    for (size_t i = 0; values && i < r->n_runs; i++)
        if (!isnan(value(&r->runs[i])))
            values[n++] = value(&r->runs[i]);
    struct nrg_spread spread = nrg_spread_of(values, n);
    free(values);
    return spread;
}
