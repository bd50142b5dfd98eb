/* Between runner.c, which runs the commands, and cooling.c, which waits in between. */
#ifndef NRG_CLI_COMPARE_INTERNAL_H
#define NRG_CLI_COMPARE_INTERNAL_H

#include "cli/compare/runner.h"
#include "cli/internal.h"

/* The machine before the first run; NAN: not known. */
struct nrg_idle_machine {
    double power_w, temperature_c;
};

struct nrg_compare_session {
    struct nrg_cli *cli;
    struct nrg_compare_runner *r;
    unsigned random;
    struct nrg_idle_machine idle;
    int64_t spent_ns[2]; /* by side, of runs of this time, with what was waited after them */
    int done[2], left[2];
};

/*
 * Runs `nrg run OPTIONS MORE -o path [-- COMMAND]`; the output of all goes to a log beside it. Its
 * exit code, or -errno.
 */
int nrg_compare_record(const struct nrg_compare_session *session, const char *path,
                       const char *const *more, char *const *command);

struct nrg_idle_machine nrg_compare_measure_idle(const struct nrg_compare_session *session);
/* At most the time that the user gave; a request to stop ends it. */
void nrg_compare_cool_down(const struct nrg_compare_session *session);

#endif
