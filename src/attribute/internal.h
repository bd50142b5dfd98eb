/*
 * What the parts of the attribution share while one is made: the windows of time, the domains at
 * work, the walk, the cells, and the sums per row. Inside src/attribute; built up by
 * attribution.c in the order of the fields, and gone when the rows are made.
 */
#ifndef NRG_ATTRIBUTE_ENGINE_H
#define NRG_ATTRIBUTE_ENGINE_H

#include "attribute/cells.h"
#include "energy/cursor.h"
#include "attribute/regress/fit.h"
#include "attribute/row_error.h"
#include "attribute/walk.h"

/* An energy domain at work. */
struct nrg_part {
    struct nrg_attribution_domain *out;
    const struct nrg_domain *domain;
    const struct nrg_recorded_channel *channel;
    const struct nrg_timeline *tl;
    size_t pool;      /* of tracks that use its energy */
    int64_t width_ns; /* how far apart the sensor's news are */
    double lag_s;
    enum nrg_method method;
    double ceiling_w;               /* power above idle that nothing exceeds */
    double edge_noise_j2;           /* variance of one edge, besides that of the update's phase */
    double update_s;                /* phase of the update: uniform over this; 0 for gauges */
    double *idle_w;                 /* per cell, never more than the cell has; NAN: all of it */
    float *other;                   /* per cell: part of the work that is not the workload's */
    double slack_s;                 /* of the lag: what is not known of it */
    double idle_error_w;            /* standard error */
    double factor_low, factor_high; /* calibration: the truth is within energy times these */
    double *class_w;                /* of a regression: per path, above idle */
    double *below_w, *above_w;      /* how far the truth may be from class_w */
    bool idle_known;                /* idle_w is more than a zero that stands for it */
    bool everything_idle;           /* power did not follow the load */
    struct nrg_regress_result regressed;
};

struct nrg_row_sums {
    uint64_t calls, stretches;
    double self_ns, work_s; /* work_s: self time times the share of the work */
    unsigned flags;
    uint32_t merged_with; /* place that has the number; 0: none */
    uint32_t counts;      /* first of its list + 1; 0: none */
};

struct nrg_row_part {
    double energy_j, covered_ns;
    double moved_ns;  /* covered, but its energy stands in the row it is merged with */
    uint64_t unknown; /* stretches without a reading, of nearest and window */
    struct nrg_row_error self, whole;
};

struct nrg_count_sum {
    uint32_t name, next; /* next of the same row + 1; 0: none */
    double amount;
};

/* How long spans are, found out in a first walk. */
struct nrg_survey {
    struct nrg_survey_path {
        double self_ns;
        uint64_t stretches;
        bool elsewhere; /* placed by a path: not part of the time of the row above */
    } * paths;          /* per node of walk.paths */
    size_t cap_paths;
    bool *rows_elsewhere; /* the same per node of walk.rows */
    size_t cap_rows;
    double ns_by_log2[64]; /* self time in stretches of 2^i ns up to twice that */
};

struct nrg_engine {
    struct nrg_recording *recording;
    const struct nrg_attribution_options *options;
    struct nrg_attribution *out;
    struct nrg_error *err;
    double z;
    struct nrg_span_ns *windows;
    size_t n_windows;
    bool clip; /* only what is inside the windows counts */
    struct nrg_frame frame;
    struct nrg_span_catalog catalog;
    struct nrg_walk walk;
    struct nrg_cells cells;
    struct nrg_survey survey;
    struct nrg_part *parts;
    size_t n_parts;
    uint32_t *class_of;             /* of the regressions: per path; UINT32_MAX: none */
    size_t n_classes, rest_class;   /* rest_class: of those that were too many; SIZE_MAX */
    struct nrg_row_sums *rows;      /* per node of walk.rows */
    struct nrg_row_part *row_parts; /* [node * n_parts + part] */
    struct nrg_count_sum *counts;
    size_t n_counts, cap_counts;
};

/* nearest and window take single readings instead of energy between instants. */
static inline bool nrg_method_reads(enum nrg_method method)
{
    return method == NRG_METHOD_NEAREST || method == NRG_METHOD_WINDOW;
}

/* survey.c: the first walk. Fills the cells' open time and where tracks end. */
int nrg_survey_make(struct nrg_engine *engine);
void nrg_survey_release(struct nrg_survey *survey);

/* parts.c: the domains, their pools, lag and idle power. */
int nrg_parts_make(struct nrg_engine *engine);
int nrg_parts_idle(struct nrg_engine *engine);
/* parts_other.c: what other processes have of each. */
int nrg_parts_other(struct nrg_engine *engine);
void nrg_parts_release(struct nrg_engine *engine);

/* method.c: the method of each domain; whether one of them is a regression. */
void nrg_method_choose(struct nrg_engine *engine);
bool nrg_method_regresses(const struct nrg_engine *engine);

/* distribute.c: energy of every stretch to its row, and, where there is one, to the slicer. */
struct nrg_slicer;
int nrg_distribute(struct nrg_engine *engine, struct nrg_slicer *slicer);

/* regress_use.c: powers of the paths for those parts whose method it is; where that fails the
 * method becomes integrate, and the part says why. Needs the rows' memory, and leaves it zero. */
int nrg_regress_parts(struct nrg_engine *engine);
/* Intervals of the rows from the regressions. */
int nrg_regress_errors(struct nrg_engine *engine);

int nrg_attribution_note(struct nrg_attribution *attribution, const char *what, const char *why,
                         ...) __attribute__((format(printf, 3, 4)));

#endif
