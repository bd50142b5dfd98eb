/*
 * What was recorded of one domain, as the model wants it: readings in seconds from the run's begin,
 * and slices of who ran when. Made once, then only read.
 *
 * A slice is a stretch of one class with a constant rate of work (CPU seconds per second, or its
 * share of a GPU). Slices come in order of their begins; those of different classes may overlap.
 *
 * Init, add slices, finish; release. 0 or -errno. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_MODEL_FACTS_H
#define NRG_ATTRIBUTE_MODEL_FACTS_H

#include "attribute/regress/fit.h"
#include "base/arena.h"

struct nrg_fact_slice {
    double begin_s, end_s;
    uint32_t class_;
    float rate;
    float calls;   /* how many calls it is, or the part of one; 0: they are not counted */
    float unsure2; /* of a rate that is the mean of a cell: square by which it may be off */
};

struct nrg_fact_class {
    double work_s;        /* seconds times rates */
    double calls, call_s; /* how many there were, and the work of one in the mean; 0: not counted */
    double middle_s;      /* of its work, in time */
};

struct nrg_facts {
    bool is_gauge;
    double begin_s, end_s;         /* of the readings that count: of baselines, too */
    double run_begin_s, run_end_s; /* of those of the run: what drifts has its mean there */
    double update_s, step;         /* of the sensor; step: J of a counter, W of a gauge */
    double period_s;               /* of reading */
    double mean_w;                 /* of the whole run: the unit of all priors */
    double idle_w, idle_error_w;   /* NAN: nothing is known of it */
    size_t n;                      /* readings */
    double *t_s, *value;           /* J up to then, or W */
    bool *gap;                     /* nothing is known between this reading and the next one */
    struct nrg_fact_slice *slices;
    size_t n_slices, cap_slices;
    struct nrg_fact_class *classes;
    size_t n_classes, others_class, spans; /* spans: classes before this one are spans' */
    int64_t origin_ns;
    struct nrg_arena memory;
};

/* Readings of baselines are rows as all others, in which nothing of the workload runs: then idle
 * power needs no other prior. They are in order of time, and apart. */
int nrg_facts_init(struct nrg_facts *facts, const struct nrg_regress_options *options,
                   const struct nrg_span_ns *baselines, size_t n_baselines);
int nrg_facts_add(struct nrg_facts *facts, const struct nrg_class_activity *activity);
/* Sums of the classes, once all slices are there. */
void nrg_facts_finish(struct nrg_facts *facts);
void nrg_facts_release(struct nrg_facts *facts);

#endif
