/*
 * The physical model of a device: joules per unit of work, none of them negative.
 *
 *   operator     E = call + mac x MACs + byte x (bytes read and written)     per group of kinds,
 *                    and not less than the cheapest call of any kind: below some size a call
 *                    costs what launching it costs
 *   module       E = sum of its operators + operator x their number + rest x bytes of operators
 *                    without a node + copied x bytes that batched products rearrange
 *                    + score x bytes of attention's scores
 *   with resources (`all` features)  E = a x E_gpu + b x t of the node itself: that is what the
 *                    wall meter would read, rebuilt from the GPU's own counter. Without a GPU
 *                    counter, time and time times utilisation.
 *
 * Fits are least squares of relative errors on distinct measurements. Coefficients of modules are
 * fitted with the operators' measured energies and used with predicted ones. Nothing here looks at
 * rows outside of the mask it is given.
 */
#ifndef NRG_PREDICT_PHYSICAL_H
#define NRG_PREDICT_PHYSICAL_H

#include "predict/dataset/measurements.h"

enum nrg_operator_unit { NRG_PER_CALL, NRG_PER_MAC, NRG_PER_BYTE, NRG_OPERATOR_UNITS };
enum nrg_module_unit {
    NRG_PER_OPERATOR,
    NRG_PER_REST_BYTE,
    NRG_PER_COPIED_BYTE,
    NRG_PER_SCORE_BYTE,
    NRG_MODULE_UNITS
};
enum nrg_law_term {
    NRG_LAW_GPU_ENERGY,
    NRG_LAW_TIME,
    NRG_LAW_TIME_GPU,
    NRG_LAW_TIME_GPU_MEM,
    NRG_LAW_TIME_GPU_HZ,
    NRG_LAW_TIME_CPU,
    NRG_LAW_TERMS
};
extern const char *const nrg_operator_unit_names[NRG_OPERATOR_UNITS];
extern const char *const nrg_module_unit_names[NRG_MODULE_UNITS];
extern const char *const nrg_law_term_names[NRG_LAW_TERMS];

struct nrg_range {
    double low, high;
};

struct nrg_group {
    const char *name;
    double joules[NRG_OPERATOR_UNITS];
    struct nrg_range range[NRG_OPERATOR_UNITS]; /* of what was trained on; calls: unused */
    size_t rows;
    unsigned forms; /* of kinds that were measured, see kinds.h; 0: not told apart */
    double q;       /* half width of the interval in ln(energy); NAN: not calibrated */
};

enum nrg_feature_set { NRG_SET_STATIC, NRG_SET_ALL };

struct nrg_physical {
    enum nrg_feature_set features;
    struct nrg_group *groups; /* the last two stand for kinds that nobody measured */
    size_t n, cap;            /* those two not counted */
    double floor_j;           /* the cheapest call of any kind */
    double module_joules[NRG_MODULE_UNITS];
    struct nrg_range module_range[NRG_MODULE_UNITS];
    double least_j[NRG_NODE_LEVELS]; /* the smallest energy that was trained on */
    double law[NRG_LAW_TERMS];
    struct nrg_range law_range[NRG_LAW_TERMS]; /* of time, utilisations and clocks */
    double q[NRG_NODE_LEVELS];                 /* as nrg_group.q, of all rows of a level */
    double expected_error[NRG_NODE_LEVELS];    /* mean |error| on held-out models; NAN: unknown */
    bool held_out_models;                      /* false: only rows could be held out */
    size_t rows, unused_rows;                  /* distinct; without the features needed */
};

struct nrg_estimate {
    double energy_j, low_j, high_j; /* bounds NAN: not calibrated */
    double less_j, more_j; /* what it may be less or more by, being smaller than all seen */
    double beyond;         /* how far out of range, energy-weighted ln; 0: inside */
    double widen;          /* what that adds to the interval's half width, ln */
    double own;            /* the operator's own half width, ln; of a sum energy-weighted */
    bool unknown_kind;     /* some of it by a stand-in */
};

/* Which rows may be used: n of them, or NULL for all. 0, or -errno with err. */
int nrg_physical_fit(struct nrg_physical *model, const struct nrg_dataset *set, const bool *mask,
                     enum nrg_feature_set features, struct nrg_error *err);
void nrg_physical_release(struct nrg_physical *model);

/*
 * The fit's intervals: every model of the mask is held out in turn, and the relative errors on it
 * are collected (rows instead of models where there is but one model). 0 or -errno.
 */
int nrg_physical_calibrate(struct nrg_physical *model, const struct nrg_dataset *set,
                           const bool *mask, double confidence, struct nrg_error *err);

/* The group that stands for the kind; *known false: a stand-in for kinds that nobody measured. */
const struct nrg_group *nrg_physical_group(const struct nrg_physical *model, const char *kind,
                                           bool has_macs, bool *known);
/* True: the group was measured, but in another form than this kind has. */
bool nrg_group_other_form(const struct nrg_group *group, const char *kind);
/* One operator: x is 1, MACs, bytes. Bounds are those of an operator of its own. */
void nrg_physical_operator(const struct nrg_physical *model, const char *kind,
                           const double x[NRG_OPERATOR_UNITS], struct nrg_estimate *out);
/*
 * Estimates of composites: starts as zeros, parts are added, finish adds what goes on beside the
 * operators and sets the bounds of that level.
 */
void nrg_estimate_add(struct nrg_estimate *sum, const struct nrg_estimate *part, double count);
void nrg_physical_finish(const struct nrg_physical *model, enum nrg_node_level level,
                         const double beside[NRG_MODULE_UNITS], struct nrg_estimate *sum);
/* False: operators alone were measured. */
bool nrg_physical_has_modules(const struct nrg_physical *model);
/* How far outside of a range, in ln: 0 inside. */
double nrg_range_beyond(struct nrg_range range, double value);

/* -ENODATA: the row has not the features that the model needs. */
int nrg_physical_row(const struct nrg_physical *model, const struct nrg_dataset *set, size_t row,
                     struct nrg_estimate *out);

#endif
