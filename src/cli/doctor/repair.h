/*
 * nrg doctor --fix: root changes what a user lacks. So the user's own view is what counts: sensors
 * are probed with his ids and groups, as a new login would have them, and commands that speak of
 * "$USER" and "$(id -gn)" mean him. What setcap gave to the program's file is his, too.
 *
 * Remedies are run one at a time, the least harmful of all problems first, and after each the
 * caller looks again: what one has solved needs no other.
 */
#ifndef NRG_CLI_DOCTOR_REPAIR_H
#define NRG_CLI_DOCTOR_REPAIR_H

#include <sys/types.h>

#include "base/error.h"
#include "cli/doctor/diagnosis.h"

struct nrg_guise {
    gid_t *groups; /* of root, to return to */
    int n_groups;
};

/* Takes the ids of a user, and root's again. Between them nothing has a privilege but those that
 * the program's file would give to the user. */
int nrg_guise_begin(struct nrg_guise *guise, const char *user, struct nrg_error *err);
void nrg_guise_end(struct nrg_guise *guise);

/* The commands that were run. Zeros, then nrg_repairs_release. */
struct nrg_repairs {
    char **commands;
    size_t n, cap;
};

/*
 * Shows and runs the next remedy that is a command, opens nothing to everybody and was not run
 * before. 1, whether or not it succeeded; 0: there is none; -ENOMEM.
 */
int nrg_repair(struct nrg_repairs *repairs, const struct nrg_findings *problems, const char *user);
void nrg_repairs_release(struct nrg_repairs *repairs);

#endif
