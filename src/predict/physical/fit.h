/*
 * The physical model of a device: joules per unit of work, none of them negative.
 *
 *   operator     E = call + mac x MACs + byte x (bytes read and written)     per group of kinds,
 *                    and not less than the cheapest call of any kind: below some size a call
 *                    costs what launching it costs
 *   module       E = sum of its operators + operator x their number + rest x bytes of operators
 *                    without a node + copied x bytes that batched products rearrange
 *                    + score x bytes of attention's scores
 *   with resources (`all` features)  E = a x E_gpu + b x t of the node itself: what the wall meter
 *                    would read, rebuilt from the GPU's own counter. Without a GPU counter, time
 *                    and time times utilisation.
 *
 * Fits are least squares of relative errors on distinct measurements. Coefficients of modules are
 * fitted with the operators' measured energies and used with predicted ones. Rows outside of the
 * mask are never used. Predictions are made in estimate.h.
 *
 * Ownership: fit, use, release. Errors: 0, or -errno with err. Threads: a model is constant after
 * the fit.
 */
#ifndef NRG_PREDICT_PHYSICAL_FIT_H
#define NRG_PREDICT_PHYSICAL_FIT_H

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

struct nrg_group {
    const char *name;
    double joules[NRG_OPERATOR_UNITS];
    struct nrg_range range[NRG_OPERATOR_UNITS]; /* of what was trained on; calls: unused */
    size_t rows;
    unsigned forms; /* of kinds that were measured, see kinds.h; 0: unknown */
    double q;       /* half width of the interval in ln(energy); NAN: not calibrated */
};

/* Modules are of one kind when their operators are of the same groups, whatever their class. */
struct nrg_module_kind {
    uint64_t groups; /* bits, see nrg_group_bit */
    double q;        /* as nrg_group.q */
};

enum nrg_feature_set { NRG_SET_STATIC, NRG_SET_ALL };

struct nrg_physical {
    enum nrg_feature_set features;
    struct nrg_group *groups; /* the last two are stand-ins for kinds not measured */
    size_t n, cap;            /* those two not counted */
    struct nrg_module_kind *module_kinds;
    size_t n_module_kinds, cap_module_kinds;
    double floor_j; /* the cheapest call of any kind */
    double module_joules[NRG_MODULE_UNITS];
    struct nrg_range module_range[NRG_MODULE_UNITS];
    double least_j[NRG_NODE_LEVELS]; /* the smallest energy that was trained on */
    double law[NRG_LAW_TERMS];
    struct nrg_range law_range[NRG_LAW_TERMS]; /* of time, utilisations and clocks */
    double q[NRG_NODE_LEVELS];                 /* as nrg_group.q, of all rows of a level */
    double stand_in[NRG_NODE_LEVELS]; /* what a stand-in adds to it, for its share of the energy */
    double seam[NRG_NODE_LEVELS];     /* ln: so much more than its parts a whole may use */
    /* Mean |predicted - measured| / measured on held-out models, as in score.h; NAN: unknown. */
    double expected_error[NRG_NODE_LEVELS];
    bool held_out_models;     /* false: only rows could be held out */
    size_t rows, unused_rows; /* distinct; without the features needed */
};

/* mask: the rows that may be used, n flags; NULL: all. 0, or -errno with err. */
int nrg_physical_fit(struct nrg_physical *model, const struct nrg_dataset *set, const bool *mask,
                     enum nrg_feature_set features, struct nrg_error *err);
void nrg_physical_release(struct nrg_physical *model);

/* The group of the kind; *known false: a stand-in, because the kind was not measured. */
const struct nrg_group *nrg_physical_group(const struct nrg_physical *model, const char *kind,
                                           bool has_macs, bool *known);
/* The bit of a measured group; groups beyond the 63rd share one, and a stand-in has none. */
uint64_t nrg_group_bit(const struct nrg_physical *model, const struct nrg_group *group);
/* False: only operators were measured. */
bool nrg_physical_has_modules(const struct nrg_physical *model);

#endif
