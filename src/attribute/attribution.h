/*
 * Joules per span: what `nrg attribute` shows, from a recording alone.
 *
 * Rows are places in the tree of spans (a path of names: epoch > step > net > layer1 > conv1), in
 * the order of a walk through it, each after its parent. All calls of one path are one row,
 * unless `by` asks for each step, epoch or cycle apart.
 *
 * Laws, held by tests: energy_self_j of all rows + unattributed_j + idle_j + other_processes_j =
 * total_j to rounding, per domain and in sum; energy_j = energy_self_j + energy_j of the children;
 * a number that is not known is NAN, never 0; a row whose spans are too short for the sensor has
 * an interval that says so and the flag NRG_ROW_UNRESOLVED.
 *
 * Init by nrg_attribution_make, release. Strings belong to the attribution. 0 or -errno with err.
 * One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_ATTRIBUTION_H
#define NRG_ATTRIBUTE_ATTRIBUTION_H

#include "energy/summary.h"
#include "record/read/recording.h"

enum nrg_method {
    NRG_METHOD_AUTO,
    NRG_METHOD_INTEGRATE, /* energy between begin and end of each span */
    NRG_METHOD_NEAREST,   /* reading closest to the end, times duration */
    NRG_METHOD_WINDOW,    /* mean of the readings inside, times duration */
    NRG_METHOD_REGRESS,   /* power per class of spans, fitted over all intervals of the sensor */
    NRG_METHOD_CPU_TIME,  /* of a modelled source: its law, applied to the spans' CPU time */
    NRG_METHOD_MIXED      /* of a sum over domains whose methods differ */
};

/* When a sensor was updated that is read faster than it updates, as a regression found it: at
 * from_ns
 * + phase_s + any number of periods. */
struct nrg_updates_found {
    bool sought; /* and the rest is filled; else updates are on no grid, or nobody looked */
    bool lost;   /* what each update showed can't be told */
    int64_t from_ns;
    double phase_s, period_s;
    double window_s; /* of a gauge, how long of each update it sees; 0: all of it, or not known */
    double mean_updates; /* a running mean of so many; 0: it is none */
};

enum nrg_idle_mode {
    NRG_IDLE_APART, /* idle energy is a row of its own */
    NRG_IDLE_SHARE, /* spans get the idle energy of the time they are open */
    NRG_IDLE_NONE   /* it is not separated: all energy counts as active */
};

enum nrg_lag_mode { NRG_LAG_AUTO, NRG_LAG_NONE, NRG_LAG_GIVEN };

enum nrg_rows_by {
    NRG_BY_PATH,   /* a row per place in the tree */
    NRG_BY_NAME,   /* a row per (kind, name), wherever it was called from: flat */
    NRG_BY_MODULE, /* the tree of qualified module names, forward and backward in sum */
    NRG_BY_STEP,   /* each step apart; and so on */
    NRG_BY_EPOCH,
    NRG_BY_CYCLE
};

/* Flags of a row */
enum {
    NRG_ROW_UNRESOLVED = 1, /* the sensor can't tell it from its surroundings: see the interval */
    NRG_ROW_MERGED = 2,     /* always together with others: one number for all (see merged_with) */
    NRG_ROW_UNCLOSED = 4,   /* a span of it was open when the recording ended */
    NRG_ROW_UNCOVERED = 8,  /* part of its time has no reading */
    NRG_ROW_CLOCK = 16      /* time went back, or spans overlapped: cut to nest */
};

/* Of method regress: the terms of regress/, or the one model (model/fit.h), which takes their
 * place.
 */
enum nrg_engine_kind { NRG_ENGINE_TERMS, NRG_ENGINE_MODEL };

struct nrg_attribution_options {
    enum nrg_method method;
    enum nrg_engine_kind engine;
    enum nrg_idle_mode idle;
    enum nrg_lag_mode lag;
    double lag_s;  /* with NRG_LAG_GIVEN */
    double idle_w; /* given by the user, of the sum of domains; NAN: to be found */
    enum nrg_rows_by by;
    const char *const *domains; /* only these; NULL: those of the total */
    int64_t run;                /* run.id; 0: all of kind run and system */
    double confidence;          /* 0: 0.95 */
    /* Only this time, in seconds from the begin of the first run: restricts sums, not the fit. */
    bool has_range;
    double from_s, to_s;
    size_t buckets; /* without a range: energy over time in at most so many; 0: not wanted */
    /* Further units: "tokens/outer", what was counted anywhere inside of a class of spans, and
     * "tokens", all of it, over the program's energy. Ends with NULL; NULL: none. Not with a range
     */
    const char *const *per;
    /* Of the same recording: when its sensors were updated is not sought again. NULL: none */
    const struct nrg_attribution *before;
};

/* What would resolve a row that is not resolved. */
enum nrg_remedy_kind {
    NRG_REMEDY_NONE,     /* nothing that nrg can name */
    NRG_REMEDY_LONGER,   /* a run that is `times` as long, or as many more repetitions */
    NRG_REMEDY_RATE,     /* readings `times` as often, or that */
    NRG_REMEDY_BASELINE, /* idle power is not known */
    NRG_REMEDIES
};

struct nrg_remedy {
    enum nrg_remedy_kind how;
    double times; /* NAN: does not apply */
};

struct nrg_row_count {
    const char *name; /* "tokens" */
    double amount;    /* counted while a span of the row was open */
    double direct;    /* of it, while a span of the row was the innermost one of its thread */
};

struct nrg_attribution_row {
    const char *name, *kind, *detail;
    const char *root; /* of a module: the name of the model that it is part of; "": not known */
    size_t parent;    /* index of a row before it; SIZE_MAX: top */
    unsigned depth;   /* 0: top */
    int64_t number;   /* of the step, epoch or cycle; NRG_MISSING */
    uint64_t calls;
    double time_s; /* inclusive; where tracks overlap, the sum over tracks */
    double self_time_s;
    double energy_j; /* inclusive */
    double energy_self_j;
    double low_j, high_j;               /* interval of energy_j at the confidence asked for */
    double self_low_j, self_high_j;     /* of energy_self_j */
    double scaled_low_j, scaled_high_j; /* as low_j, high_j, with the scale of what is estimated */
    double self_scaled_low_j, self_scaled_high_j;
    double random_j, self_random_j; /* parts of the intervals that differ from call to call */
    enum nrg_provenance provenance; /* the worst of the domains that it has energy of */
    const double *domain_j;         /* inclusive, per domain of the attribution */
    enum nrg_method method;
    unsigned flags;
    struct nrg_remedy remedy; /* of a row that is not resolved */
    size_t merged_with;       /* row that carries the group's number; SIZE_MAX */
    double updates_per_call;  /* of the sensor, within one self stretch: how resolved it is */
    const struct nrg_row_count *counts;
    size_t n_counts;
    /* filled by nrg_attribution_join (model_join.h); NAN: not known */
    double macs, flops, read_bytes, written_bytes; /* per call */
};

/*
 * What an estimate does not know of itself: the truth of all rows is between their energy times
 * `low` and times `high`, with one factor for all of them. So it is no part of a row's interval: it
 * widens all rows alike, and hides none behind another. NAN: nothing is estimated.
 */
struct nrg_scale {
    double low, high;
};

struct nrg_attribution_domain {
    const struct nrg_domain *domain; /* energy, provenance, method of the whole */
    enum nrg_method method;
    char why[160];       /* why auto chose it */
    double lag_s;        /* that was used; 0: none */
    char lag_source[32]; /* "driver", "given", "fitted", "none" */
    double idle_w;       /* NAN: not known */
    char idle_source[32];
    double unattributed_j, idle_j, other_processes_j, total_j;
    double residual;        /* of a regression: rms of what it does not explain, relative; NAN */
    struct nrg_scale scale; /* of an estimate */
    struct nrg_updates_found updates;
};

/* Single steps, without the first ones; n 0: not looked at, or none is left. */
struct nrg_unit_spread {
    size_t n;
    double median_j, low_j, high_j; /* the middle half of them */
    double rest_j, rest_s;          /* of all n */
    size_t first;                   /* so many are apart */
    double first_j, first_s;
    bool given; /* their number, by the user; else by the rule of views/unit_spread.c */
};

/*
 * Joules per step, epoch, cycle, sample, token: whatever was counted. A count belongs to the class
 * of spans (kind and name, wherever it was called from) that was innermost on its thread when it
 * was made, and divides the energy of that class; without a span, the program's.
 */
struct nrg_unit_use {
    const char *name;         /* "step", "tokens" */
    const char *kind;         /* "step", "epoch", "cycle", "counter" */
    const char *of, *of_kind; /* whose energy is divided: of_kind may be NRG_OF_PROGRAM, _MACHINE */
    bool inside;              /* of a counter: counted anywhere inside of it, not directly in it */
    double amount, energy_j, low_j, high_j, time_s;
    double scaled_low_j, scaled_high_j; /* as of a row */
    enum nrg_provenance provenance;
    unsigned flags; /* as of a row */
    size_t ranks;   /* processes of a job that have it in common; 0: none */
    struct nrg_unit_spread spread;
};
#define NRG_OF_PROGRAM "program" /* as the report has it */
#define NRG_OF_MACHINE "machine" /* the total, where the program's part is not known */

/* What nrg.torch counts while a model generates text (python/nrg/torch/_generate.py), and in which
 * spans: requests and generated tokens directly in a call (kind span), tokens of the prompt and of
 * the output in its phases. */
#define NRG_GENERATE       "generate"
#define NRG_PREFILL        "prefill"
#define NRG_DECODE         "decode"
#define NRG_UNIT_REQUESTS  "requests"
#define NRG_UNIT_GENERATED "generated tokens"
#define NRG_UNIT_INPUT     "input tokens"
#define NRG_UNIT_OUTPUT    "output tokens"

struct nrg_attribution_buckets; /* buckets.h */

struct nrg_attribution {
    struct nrg_attribution_row *rows;
    size_t n_rows;
    struct nrg_attribution_domain *domains;
    size_t n_domains;
    double total_j, total_uncertainty_j, total_low_j, total_high_j;
    double unattributed_j, idle_j, other_processes_j; /* idle_j 0 unless it is apart */
    struct nrg_scale scale; /* of the estimated domains together; the total's interval has it */
    enum nrg_provenance provenance;
    enum nrg_method method;
    enum nrg_idle_mode idle;
    double begin_s, duration_s;
    double from_s, to_s;                           /* of a range; NAN: the whole run */
    const struct nrg_attribution_buckets *buckets; /* NULL: not asked for */
    struct nrg_unit_use *units;                    /* of all spans, whatever the view */
    size_t n_units, cap_units;
    uint64_t spans, dropped, unclosed, unmatched_ends, cut; /* of the events */
    struct nrg_summary summary;                             /* the run that it is part of */
    struct nrg_missing *notes;                              /* for the user: what and why */
    size_t n_notes, cap_notes;
    void *memory; /* what rows point into */
};

const char *nrg_method_name(enum nrg_method method);   /* "regress" */
const char *nrg_remedy_name(enum nrg_remedy_kind how); /* "longer run" */

/* Adds a note for the user. */
int nrg_attribution_note(struct nrg_attribution *attribution, const char *what, const char *why,
                         ...) __attribute__((format(printf, 3, 4)));

int nrg_attribution_make(struct nrg_attribution *attribution, struct nrg_recording *recording,
                         const struct nrg_attribution_options *options, struct nrg_error *err);
void nrg_attribution_release(struct nrg_attribution *attribution);
/* The counter of that name that was made directly in a class of spans; NULL: none, or not above 0.
 */
const struct nrg_unit_use *nrg_attribution_counted(const struct nrg_attribution *attribution,
                                                   const char *name, const char *of,
                                                   const char *of_kind);
/*
 * Fills the units' spread; for methods nearest and window by attributing once more with each step
 * apart. skip: so many first steps are apart; -1: by the rule of views/unit_spread.c.
 */
int nrg_attribution_spread(struct nrg_attribution *attribution, struct nrg_recording *recording,
                           const struct nrg_attribution_options *options, int skip,
                           struct nrg_error *err);

/*
 * Makes a list of an attribution by name: the largest first. `operators`: keeps operators, kernels
 * and layers, and one row for all else. To be called last: it changes the numbers of rows.
 */
int nrg_attribution_list(struct nrg_attribution *attribution, bool operators);

#endif
