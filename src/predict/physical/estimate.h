/*
 * Predictions of the physical model: energy of an operator, of a module, of a row of a data set,
 * each with an interval.
 *
 * Intervals are coherent. What lies outside of what was measured widens an interval by its own
 * share of the energy. A whole is never less certain than its parts together: its interval lies
 * within those of its composite parts, added end to end, and that of its own work.
 *
 * Nothing is owned. Errors: -ENODATA where said. Threads: pure.
 */
#ifndef NRG_PREDICT_PHYSICAL_ESTIMATE_H
#define NRG_PREDICT_PHYSICAL_ESTIMATE_H

#include "predict/physical/fit.h"

struct nrg_estimate {
    double energy_j, low_j, high_j; /* bounds NAN: not calibrated */
    double less_j, more_j; /* more room in the interval: it is smaller than all measured ones */
    double beyond;         /* distance outside of the range, energy-weighted ln; 0: inside */
    double widen;          /* what that adds to the interval's half width, ln */
    double smaller;        /* of it, because the whole is smaller than all measured ones */
    double own;            /* the operator's own half width, ln; of a sum energy-weighted */
    double stand_in_j;     /* by a stand-in for a kind that was not measured */
    uint64_t groups;       /* that were measured and are in it */
    bool unknown_kind;     /* some of it by a stand-in */
    bool other_form;       /* some of it by another form of its kind */
};

/* True: the group was measured, but in another form than this kind has. */
bool nrg_group_other_form(const struct nrg_group *group, const char *kind);
/* One operator: x is 1, MACs, bytes. Bounds are those of an operator of its own. */
void nrg_physical_operator(const struct nrg_physical *model, const char *kind,
                           const double x[NRG_OPERATOR_UNITS], struct nrg_estimate *out);
/*
 * Estimates of composites: start with zeros and add the operators. finish adds the energy that a
 * module has beside its operators, and sets the bounds of that level.
 */
void nrg_estimate_add(struct nrg_estimate *sum, const struct nrg_estimate *part, double count);
void nrg_physical_finish(const struct nrg_physical *model, enum nrg_node_level level,
                         const double beside[NRG_MODULE_UNITS], struct nrg_estimate *sum);

/* A module as its composite parts and its own work, which is all operators outside of those. */
struct nrg_parts {
    struct nrg_estimate own; /* finished by nrg_estimate_within */
    double beside[NRG_MODULE_UNITS];
    double low_j, high_j; /* of the composite parts, end to end */
    size_t n;             /* how many they are */
    double least_j;       /* that its own work uses in any case */
};
/* Makes the bounds of a finished estimate hold within those of its parts. */
void nrg_estimate_within(const struct nrg_physical *model, enum nrg_node_level level,
                         struct nrg_parts *parts, struct nrg_estimate *whole);
/* ln(measured / its parts as they were measured, with its own work); NAN: no composite parts. */
double nrg_physical_seam(const struct nrg_physical *model, const struct nrg_dataset *set,
                         size_t row);

/* -ENODATA: the row lacks features that the model needs. */
int nrg_physical_row(const struct nrg_physical *model, const struct nrg_dataset *set, size_t row,
                     struct nrg_estimate *out);

#endif
