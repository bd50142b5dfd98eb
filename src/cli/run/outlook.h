/*
 * What a run will not be able to tell, said as it starts, while it can still be started otherwise.
 * A line each, no more than three.
 */
#ifndef NRG_CLI_RUN_OUTLOOK_H
#define NRG_CLI_RUN_OUTLOOK_H

#include <stdbool.h>
#include <stdio.h>

#include "sensors/registry.h"

struct nrg_run_outlook {
    const struct nrg_probe *sensors;
    double rate_hz; /* as the user gave it, 0: not given */
    bool has_baseline;
    bool marks_spans; /* for certain */
    bool asks_server; /* --llm */
};

void nrg_run_outlook_print(const struct nrg_run_outlook *outlook, FILE *out);

#endif
