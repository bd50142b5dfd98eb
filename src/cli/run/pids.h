/* The processes that `nrg run --pid` follows: the option, and waiting for their end. */
#ifndef NRG_CLI_RUN_PIDS_H
#define NRG_CLI_RUN_PIDS_H

#include "cli/cli.h"

#define NRG_RUN_PIDS 64

struct nrg_run_pids {
    int32_t pids[NRG_RUN_PIDS];
    size_t n;
};

extern const struct nrg_opt_type nrg_opt_pids;
#define NRG_OPT_PIDS (&nrg_opt_pids) /* struct nrg_run_pids: "4242,4243", may be repeated */

/* Waits until that time, a request to stop (stop.h), or the end of all processes. */
void nrg_run_pids_wait(const struct nrg_run_pids *given, int64_t until_ns);

#endif
