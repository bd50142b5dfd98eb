/*
 * What keeps nrg from measuring here, or makes it measure less or worse, with what helps. A problem
 * is something that can be changed, or that leaves the processors without a sensor; a note is
 * something to know. Remedies come from one table, sensors/fixes.c.
 *
 * The diagnosis is the caller's (nrg_diagnosis_release). Everything is read through ctx->root. One
 * thread. 0 or -ENOMEM.
 */
#ifndef NRG_CLI_DOCTOR_DIAGNOSIS_H
#define NRG_CLI_DOCTOR_DIAGNOSIS_H

#include "sensors/driver.h"
#include "sensors/fixes.h"

#define NRG_MAX_REMEDIES 8

struct nrg_doctor_remedy {
    char text[NRG_FIX_BYTES];    /* as it is shown */
    char command[NRG_FIX_BYTES]; /* for a shell, "" */
    bool tried;                  /* by nrg's tests (fixes.h) */
    enum nrg_harm harm;
};

struct nrg_finding {
    char what[128], why[400];
    struct nrg_doctor_remedy *remedies; /* best first */
    size_t n_remedies;
};

struct nrg_findings {
    struct nrg_finding *items;
    size_t n, cap;
};

struct nrg_diagnosis {
    struct nrg_findings problems, notes;
};

int nrg_diagnose(const struct nrg_context *ctx, const struct nrg_probe *probe,
                 struct nrg_diagnosis *out);
void nrg_diagnosis_release(struct nrg_diagnosis *diagnosis);

/* For the parts below. `remedies` are lines as drivers give them, "" for none. */
int nrg_findings_add(struct nrg_findings *list, const char *what, const char *remedies,
                     const char *why, ...) __attribute__((format(printf, 4, 5)));

/* surroundings.c: kernel settings, container, clock, governor, other profilers, disk. */
int nrg_diagnose_surroundings(const struct nrg_context *ctx, struct nrg_diagnosis *out);

#endif
