/*
 * nrg doctor --fix: root changes what a user lacks. So the user's own view is what counts: sensors
 * are probed with his ids and groups, as a new login would have them, and commands that speak of
 * "$USER" and "$(id -gn)" mean him.
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

/* Takes the ids of a user, and root's again. Between them nothing has a privilege. */
int nrg_guise_begin(struct nrg_guise *guise, const char *user, struct nrg_error *err);
void nrg_guise_end(struct nrg_guise *guise);

/*
 * Shows and runs the remedies of a problem that are commands and open nothing to everybody, until
 * one succeeds. Returns whether one did.
 */
bool nrg_repair(const struct nrg_finding *problem, const char *user);

#endif
