/*
 * What the files of src/attribute share.
 *
 * The engine: the windows of time, the domains, the walk, the cells, and the sums per place in the
 * tree of spans, built up in the order of the fields. It runs once, whatever is to be shown. Only
 * rows per step, epoch or cycle are decided here (options->by), because the walk has to tell their
 * numbers apart.
 *
 * Views: the rows of the result as a tree. A view maps each place that the walk knows (a node of
 * walk.rows) to a row. Self energies simply add up. The error of all that is inside a row is not
 * the sum of the errors of its parts, which is far larger: it is that of the spans through which
 * time entered the row. A span enters all rows that hold it but not the span around it.
 *
 * Set recording, options, out (with its memory) and err; open, run, make views, release. The engine
 * owns its arrays; rows and the names that a view makes up are in the arena of the result.
 * Functions return 0 or a negative errno; `open` fills err. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_INTERNAL_H
#define NRG_ATTRIBUTE_INTERNAL_H

#include "attribute/cells/cells.h"
#include "attribute/regress/fit.h"
#include "attribute/row_error.h"
#include "attribute/walk.h"
#include "base/arena.h"
#include "energy/cursor.h"
#include "record/read/span_catalog.h"

/* Less time than this without a reading is rounding of times, not a gap. */
#define NRG_UNCOVERED_NS 1000
/* CPUs: who has more shows when it comes and goes. */
#define NRG_TRICKLE 0.02
/* Shorter cells say little about power. */
#define NRG_LEAST_CELL_S 0.05

/* A single step; the outermost one, where steps stand in steps. */
struct nrg_single_step {
    const char *name, *detail;
    int64_t number, begin_ns;
    double energy_j, time_s;
    size_t nth; /* of its number and detail, in order of time */
};

struct nrg_single_steps {
    struct nrg_single_step *items;
    size_t n, cap;
    bool complete; /* with their energies; else the methods do not tell them in passing */
};

/* What the rows of an attribution point into. */
struct nrg_rows_memory {
    struct nrg_arena arena;
    struct nrg_span_catalog catalog; /* names */
    struct nrg_single_steps steps;
};

/* An interval of a counter that the edge of a span cuts, and how it is divided: divide.c. */
struct nrg_division {
    int64_t t_ns;
    size_t from;  /* point that begins the interval */
    double sum_j; /* of the timeline at that moment */
    double off_j; /* what it may be off by, each time alike */
    double variance_j2;
    double alone_s; /* time on one side of it that its neighbour alone speaks for */
};

/* Others beside rows that are integrated: they draw `w` in all of a cell, whatever the workload
 * does in it, and nrg_part.other of the rest. Of a GPU that others share by a rule (parts_other.c)
 * there is doubt_part alone, whatever the method. */
struct nrg_others_level {
    float w;
    float all_w;      /* the same where a cell has less than they should have had */
    float doubt_w;    /* of w, what matters if their watts are others: not what idle power had */
    float doubt_part; /* joules of theirs beyond w, as a part of the workload's */
    float unsteady_j; /* by how much they may have come early or late in the cell: one deviation */
    float edge_j;     /* the same of a moment between two cells, by ticks */
};

/* What readings lack in a cell before a regression explains them (own_timeline.h). */
struct nrg_taken_off {
    double idle_w;
    double mine; /* the part of the rest that is left */
};

/* An energy domain at work. */
struct nrg_part {
    struct nrg_attribution_domain *out;
    const struct nrg_domain *domain;
    const struct nrg_recorded_channel *channel;
    const struct nrg_timeline *tl;
    struct nrg_division *divisions; /* in order of time */
    size_t n_divisions;
    struct nrg_energy_point *points; /* of the timeline there, as many; NULL: there are none */
    size_t pool;                     /* of tracks that use its energy */
    int64_t width_ns;                /* the sensor's resolution in time: nrg_timeline_width_ns */
    double lag_s;
    enum nrg_method method;
    double ceiling_w;               /* power above idle that nothing exceeds */
    double edge_noise_j2;           /* variance of one edge, besides that of the update's phase */
    double update_s;                /* phase of the update: uniform over this; 0 for gauges */
    double *idle_w;                 /* per cell, set by nrg_part_set_idle; NAN: all of it */
    double *most_w;                 /* per cell: what it drew */
    const float *other;             /* per cell: part of the work that is not the workload's */
    float *own_other;               /* `other` where it was corrected by others' watts; NULL */
    struct nrg_others_level *level; /* per cell, of integration: what others draw all along; NULL */
    double others_less, others_more; /* by which part of theirs they may be off */
    double slack_s;                  /* of the lag: what is not known of it */
    double idle_error_w;             /* standard error, as far as readings tell */
    double idle_most_w;              /* where it is not known: what it may be; 0 */
    double least_w;                  /* least power that was seen; NAN */
    double factor_low, factor_high;  /* calibration: the truth is within energy times these */
    double *class_w;                 /* of a regression: per path, above idle */
    double *below_w, *above_w;       /* how far the truth may be from class_w */
    double adds;                     /* of a regression: as in struct nrg_class_split */
    double others_j;                 /* of a regression: other processes'; NAN: not known by it */
    bool idle_known;                 /* false: idle_w is only a stand-in */
    bool idle_corrected;             /* of a regression: idle_w is known, but readings correct it */
    bool idle_guessed;               /* of a regression: it began in the middle of its range */
    double baseline_busy;            /* CPUs that were busy then, with other things */
    /* CPUs that others had all through the run beyond those, too few to tell what they draw, and
     * what they are taken to draw: idle power of a regression has it in it; 0: none */
    double trickle_busy, trickle_w;
    double woken_w; /* that the recorder drew more in the baseline than in the run (idle.c) */
    double baseline_off_w;           /* idle_w is this much less than it was while that was seen, or
                                        before the run */
    double baseline_error_w;         /* of what a regression began with, standard error */
    double baseline_moved_w;         /* and by how much it took it to be more; 0 */
    double idle_change_w;            /* of integration: from the baseline before to that after */
    bool idle_in_rests;              /* where the program rests, readings say by how much */
    double idle_less_w, idle_more_w; /* of integration: by which idle power may be off, each row's
                                        alike */
    bool idle_found;               /* of integration: idle power is what a regression made of it */
    double found_others_w;         /* and so are others, per CPU second */
    struct nrg_idle_course course; /* of idle power in a regression, from the baseline on */
    struct nrg_heat heat;
    bool everything_idle; /* power did not follow the load */
    struct nrg_regress_result regressed;
    struct nrg_timeline *updated;    /* the same: energies at the times of updates; NULL */
    struct nrg_taken_off *taken_off; /* the same, per cell; NULL: nothing was */
    struct nrg_left_over *left_over; /* of a regression, where numbered spans ask for it; NULL */
};

struct nrg_row_sums {
    uint64_t calls, stretches;
    double self_ns, work_s; /* work_s: self time times the share of the work */
    double cost_s;          /* of a regression: what a class's power is multiplied by */
    unsigned flags;
    uint32_t path;        /* of its spans */
    uint32_t merged_with; /* place that has the number; 0: none */
    uint32_t counts;      /* its list */
};

struct nrg_row_part {
    double energy_j, covered_ns;
    double moved_ns;  /* covered, but its energy stands in the row it is merged with */
    uint64_t unknown; /* stretches without a reading, of nearest and window */
    struct nrg_row_error self, whole;
    double others_j; /* that others had beside it, as far as their watts matter */
};

/* Lists of counts in one array: a list is the number of its first entry, 0 when it is empty. */
struct nrg_counts {
    struct nrg_count_sum {
        uint32_t name, next; /* next: number of the list's next entry, from 1; 0: none */
        double amount;
    } * items;
    size_t n, cap;
};

/* How long spans are, found in a first walk. Tracks of one pool say nothing of another's energy. */
struct nrg_survey {
    struct nrg_survey_path {
        double self_ns;
        uint64_t stretches;
    } * paths; /* [node of walk.paths * n_pools + pool] */
    size_t n_pools, cap_paths;
    bool *rows_elsewhere; /* per node of walk.rows: placed by a path, so not part of the time of
                             the row above */
    size_t cap_rows;
    double (*ns_by_log2)[64]; /* per pool: self time in stretches of 2^i ns up to twice that */
};

static inline struct nrg_survey_path *nrg_survey_at(const struct nrg_survey *survey, size_t path,
                                                    size_t pool)
{
    return &survey->paths[path * survey->n_pools + pool];
}

/* Spans that were made from those of the recording, and take their place. */
struct nrg_given_spans {
    struct nrg_span_catalog *catalog; /* the engine takes what is in it */
    const struct nrg_span_source *source;
};

/* Classes of time without any span, by how long there was none already. What is later than that, or
 * before the first span, is in the class of no span. */
#define NRG_GAP_AGES 11

struct nrg_engine {
    struct nrg_recording *recording;
    const struct nrg_given_spans *given; /* NULL: the recording's */
    const struct nrg_attribution_options *options;
    struct nrg_attribution *out;
    struct nrg_error *err;
    struct nrg_arena memory; /* windows, parts and sums */
    double z;
    struct nrg_span_ns *windows;
    size_t n_windows;
    bool clip; /* only what is inside the windows counts */
    struct nrg_frame frame;
    struct nrg_span_catalog catalog;
    struct nrg_span_walk walk;
    struct nrg_cells cells;
    struct nrg_survey survey;
    struct nrg_part *parts;
    size_t n_parts;
    uint32_t *class_of;             /* of the regressions: per path; UINT32_MAX: none */
    size_t n_classes, rest_class;   /* rest_class: of those that were too many; SIZE_MAX */
    size_t before_class;            /* threads that have not marked anything yet */
    size_t apart_class;             /* threads that are outside of spans for long */
    size_t aged_class;              /* time without spans: the first of NRG_GAP_AGES */
    size_t other_class;             /* other processes */
    size_t untracked_class;         /* processes of the workload without spans */
    struct nrg_row_sums *rows;      /* per node of walk.rows */
    struct nrg_row_part *row_parts; /* [node * n_parts + part] */
    struct nrg_counts counts;
    struct nrg_cpu_time *cpu_time; /* of cputime/; NULL */
    struct nrg_buckets *buckets;   /* energy over time; NULL: not wanted */
    struct nrg_measured
        *measured; /* single steps as readings have them; NULL: none are asked for */
};

/* attribution.c: as nrg_attribution_make, of spans that are given; NULL: of the recording's. */
int nrg_attribution_of(struct nrg_attribution *attribution, struct nrg_recording *recording,
                       const struct nrg_attribution_options *options,
                       const struct nrg_given_spans *given, struct nrg_error *err);

/* Which time, which names: what can be wrong with a recording or the options. */
int nrg_engine_open(struct nrg_engine *engine);
int nrg_engine_run(struct nrg_engine *engine);
void nrg_engine_release(struct nrg_engine *engine);

/* nearest and window take single readings instead of energy between instants. */
static inline bool nrg_method_reads(enum nrg_method method)
{
    return method == NRG_METHOD_NEAREST || method == NRG_METHOD_WINDOW;
}

/* These find the errors of rows on their own, not at the edges of spans. */
static inline bool nrg_method_bounds_rows(enum nrg_method method)
{
    return method == NRG_METHOD_REGRESS || method == NRG_METHOD_CPU_TIME;
}

/* cells/cpu.c: the time with a span open is known: makes weights and shares. */
int nrg_cells_weigh(struct nrg_cells *cells, struct nrg_frame *frame,
                    const struct nrg_span_catalog *catalog);
/* Adds an amount that was used evenly between two instants. */
void nrg_cells_spread(const struct nrg_cells *cells, int64_t from_ns, int64_t to_ns, double amount,
                      float *column, size_t stride);

/* survey.c: the first walk. Fills the cells' open time and where tracks end. */
int nrg_survey_make(struct nrg_engine *engine);
void nrg_survey_release(struct nrg_survey *survey);

/* parts.c: the domains, their pools, lag and idle power. */
int nrg_parts_make(struct nrg_engine *engine);
int nrg_parts_idle(struct nrg_engine *engine);
/* Idle power between two baselines, of domains that are integrated. Needs the methods. */
void nrg_parts_idle_ends(struct nrg_engine *engine);
/* Of those with one baseline: how far it may have gone from there. Needs others' watts. */
void nrg_parts_idle_drift(struct nrg_engine *engine);
/* By how much it is more in a cell than in the middle of the run. */
double nrg_part_idle_line_w(const struct nrg_engine *engine, const struct nrg_part *part,
                            size_t cell);
/* Mean power of each cell; NAN where it is not known. */
void nrg_part_fill_power(const struct nrg_engine *engine, const struct nrg_part *part,
                         double *power_w);
/* idle_bound.c: keeps what each cell drew, of which nothing is known where it is NAN. */
void nrg_part_note_power(const struct nrg_engine *engine, struct nrg_part *part,
                         const double *power_w);
/* Idle power of a cell, within nothing and what it drew; INFINITY: all of it, whatever power does
 * inside of the cell. */
void nrg_part_set_idle(struct nrg_part *part, size_t cell, double w);
/* Notes the reason where rows would surprise; source NULL: it is not known. */
void nrg_part_note_idle(struct nrg_engine *engine, const struct nrg_part *part, const char *source);
/* Idle power by the baselines, and its error; says who was busy then. False: there is none, or the
 * run, which drew no more than least_w for a while (NAN: not known), does not allow it. */
bool nrg_part_baseline(struct nrg_engine *engine, struct nrg_part *part, double least_w,
                       double *idle_w);
/* What the sensor's calibration, or another reading of the same, leaves open of its energy. */
void nrg_part_calibrate(struct nrg_part *part);
/*
 * How far idle power may have gone from where one baseline saw it, either way. Where the run draws
 * just what the baseline did for a while, something would have had to make up for what idle power
 * changed by: so nothing ran then, and idle power shows. That must be so all along the run.
 */
double nrg_part_drift_w(const struct nrg_engine *engine, const struct nrg_part *part);
/* What neither rows nor idle nor others have. Where they have more than was measured, idle and
 * others have less: the rest is negative only as far as rows alone are more than that. */
void nrg_domain_settle(struct nrg_attribution_domain *domain, double rows_j);
/* parts_other.c: which part of each is other processes'. */
int nrg_parts_other(struct nrg_engine *engine);
/* other_watts.c: what others' CPU seconds drew, for the domains that are integrated. Corrects their
 * idle power and others' part. Needs the methods. 0 or -ENOMEM. */
int nrg_other_watts(struct nrg_engine *engine);
/* How old CPU times are at most, of whoever runs. */
double nrg_busy_tick_s(const struct nrg_engine *engine);
/* How far others' CPU time differs from cell to cell, beyond what ticks make. */
double nrg_others_scatter_s(const struct nrg_cells *c, double tick_s);
void nrg_parts_release(struct nrg_engine *engine);

/* heat.c: the temperature of what a domain measures, against that of the baseline. False: none was
 * recorded, or it hardly changed. Its arrays are the engine's. */
bool nrg_heat_find(struct nrg_engine *engine, const struct nrg_part *part, enum nrg_idle_seen seen,
                   struct nrg_heat *heat);

/* method.c: the method of each domain. */
void nrg_method_choose(struct nrg_engine *engine);
/* Tracks of the pool have spans open at the same time: integration can't tell their watts apart. */
bool nrg_method_together(const struct nrg_engine *engine, size_t pool);
/* What integration gets wrong at the edges of a stretch, as part of the stretch, if power there
 * changes by as much as it is; INFINITY where stretches are short. */
double nrg_method_edge_error(const struct nrg_engine *engine, const struct nrg_part *part);

/* stairs.c: counters that are read faster than they update, for integration. Needs the methods. */
int nrg_stairs_join(struct nrg_engine *engine);

/* divide.c: divides intervals that edges of spans cut, for the flows. Needs the methods. */
int nrg_divide_intervals(struct nrg_engine *engine);

/* singles.c: no single step has less than nothing. After all that gives rows their energy. -ENOMEM
 */
int nrg_singles_settle(struct nrg_engine *engine);
/* within_total.c: after it, rows of a domain have no more than its total. */
void nrg_rows_within_total(struct nrg_engine *engine);

/* A stretch that lasts longer is not counted as a call: all that it uses goes by time. */
#define NRG_CALL_NS (2 * NRG_NS_PER_S)

/* distribute.c: energy of every stretch to its row, and, where there is one, to the slicer. */
struct nrg_slicer;
int nrg_distribute(struct nrg_engine *engine, struct nrg_slicer *slicer);

/* regress/use.c: powers of the paths for those parts whose method it is; where that fails the
 * method becomes integrate, and the part says why. Needs the rows' memory, and leaves it zero. */
int nrg_regress_parts(struct nrg_engine *engine);
/* regress/errors.c: intervals of the rows from the regressions. */
int nrg_regress_errors(struct nrg_engine *engine);
/* Of a sum of classes, each with what its power is multiplied by: half of its interval as a part of
 * it; NAN: some of it is not known, or shares idle power. */
double nrg_regress_sum_error(struct nrg_engine *engine, size_t part, double *cost_s);

/* cputime/parts.c: finds the modelled domains, before the other methods are chosen. Fills err where
 * that method was asked for and none is. */
int nrg_cputime_choose(struct nrg_engine *engine);
/* Adds the energy of their rows; without CPU times the method becomes integrate. */
int nrg_cputime_parts(struct nrg_engine *engine);
void nrg_cputime_release(struct nrg_engine *engine);
/* cputime/errors.c: adds the bounds of a view's rows. */
struct nrg_view;
/* Adds the energies of single steps. */
void nrg_cputime_steps(const struct nrg_engine *engine, struct nrg_single_steps *steps);
int nrg_cputime_errors(const struct nrg_engine *engine, struct nrg_view *view);

/* Energy that becomes known only after the walk, spread over the time of its readings. */
void nrg_cputime_buckets(struct nrg_engine *engine);

/* Node 0 is the top. */
struct nrg_view_node {
    const char *name, *kind, *detail;
    const char *root; /* as a row's; NULL: none */
    uint32_t parent;
    int64_t number;
    struct nrg_row_sums sums;
    uint64_t other_calls; /* backward calls of a module: shown when there are no others */
};

struct nrg_view {
    struct nrg_arena memory; /* of the arrays, but for nodes and parts */
    enum nrg_rows_by by;
    struct nrg_view_node *nodes;
    struct nrg_row_part *parts; /* [node * n_parts + part]; whole: of all that is inside */
    size_t n, cap, cap_parts;
    uint32_t *view_of;                 /* per node of walk.rows */
    double *inside_ns, *inside_work_s; /* of a flat view, per node; NULL */
    double *inside_j;                  /* the same, [node * n_parts + part] */
    double *inside_others_j;           /* as inside_j, of others_j */
};

/* views/view.c. Fails with -ENOMEM only. */
int nrg_view_make(struct nrg_view *view, const struct nrg_engine *engine, enum nrg_rows_by by,
                  struct nrg_arena *arena);
void nrg_view_release(struct nrg_view *view);
/* Adds a node; its number or -ENOMEM. */
int64_t nrg_view_node(struct nrg_view *view, const struct nrg_engine *engine,
                      struct nrg_view_node node);
/* True when `inner` is `outer` or below it. */
bool nrg_view_holds(const struct nrg_view *view, uint32_t outer, uint32_t inner);
/* Name, kind, detail and root of a place. */
struct nrg_view_node nrg_view_describe(const struct nrg_engine *engine,
                                       const struct nrg_span_node *place);

/* views/module.c: fills view_of with modules by their qualified names. */
int nrg_view_modules(struct nrg_view *view, const struct nrg_engine *engine,
                     struct nrg_arena *arena);

/* Rows as the result has them, in an arena. */
struct nrg_view_rows {
    struct nrg_attribution_row *rows;
    size_t n;
    double *part_j; /* per part: the self energy of all rows */
    struct nrg_attribution_buckets *buckets;
};

/* views/rows.c: the rows of a view of what the engine found. */
int nrg_view_rows(struct nrg_view_rows *rows, const struct nrg_engine *engine, enum nrg_rows_by by,
                  struct nrg_arena *arena);
/* resolve.c: of a row that is not resolved, with its parts and its seconds of work. `leaf`: it
 * holds no other row. */
struct nrg_remedy nrg_row_remedy(const struct nrg_engine *engine,
                                 const struct nrg_attribution_row *row,
                                 const struct nrg_row_part *parts, double work_s, bool leaf);
/* Adds what is scatter in the errors of a view's rows by regression. */
void nrg_regress_scatter(const struct nrg_engine *engine, struct nrg_view *view);
/* Adds what would resolve which rows to the notes. */
void nrg_note_remedies(struct nrg_attribution *attribution);

/* notes.c: what was odd about the spans, the readings and idle power. Names the source of idle
 * power that a regression moved. */
void nrg_note_all(struct nrg_engine *engine);

/* A row of which nothing is known. */
struct nrg_attribution_row nrg_row_unknown(const char *name, const char *kind, const char *detail);
/* Whether anything is known of a place's own energy in a part. */
bool nrg_row_known(const struct nrg_engine *engine, size_t part, const struct nrg_row_sums *sums,
                   const struct nrg_row_part *row);
/* views/counts.c: adds to the entry of that name in a list, which may be new. 0 or -ENOMEM. */
int nrg_counts_add(struct nrg_counts *counts, uint32_t *list, uint32_t name, double amount);
/* What was counted in each row. */
int nrg_rows_counts(const struct nrg_engine *engine, const struct nrg_view *view,
                    struct nrg_attribution_row *rows, const size_t *row_of,
                    struct nrg_arena *arena);
/* What was counted while its thread had no span open. */
int nrg_rows_counted_outside(const struct nrg_engine *engine, struct nrg_arena *arena,
                             struct nrg_row_count **counts, size_t *n);

/* What units are made of. */
struct nrg_unit_sources {
    const struct nrg_view_rows *paths;   /* a row per place */
    const struct nrg_view_rows *classes; /* a row per class of spans; may be empty without counts */
    const struct nrg_row_count *outside; /* counted outside of all spans */
    size_t n_outside;
    struct nrg_unit_use whole; /* the program, or the machine: all but name, kind and amount */
};

/* views/unit_use.c: steps and the like, what was counted, and what `per` asks for. -ENOMEM, or
 * -EINVAL with err: there is nothing of such a name. */
int nrg_units_find(struct nrg_attribution *attribution, const struct nrg_unit_sources *sources,
                   const char *const *per, struct nrg_error *err);
/* views/counter_use.c: adds what was counted, by the class of spans that it was counted in. */
int nrg_units_counted(struct nrg_attribution *attribution, const struct nrg_unit_sources *sources);
/* Adds the units that a text of options->per asks for. */
int nrg_units_asked(struct nrg_attribution *attribution, const struct nrg_unit_sources *sources,
                    const char *asked, struct nrg_error *err);
/* units.c: the units of the result, for which the rows are made already. */
int nrg_units_make(struct nrg_engine *engine);
/* Its rows do not tell what was counted in which spans: the counters are to be added afterwards. */
bool nrg_units_need_paths(const struct nrg_engine *engine);
int nrg_units_by_path(struct nrg_attribution *attribution, struct nrg_recording *recording,
                      const struct nrg_attribution_options *options, struct nrg_error *err);
/* It says that a row is one rank's part of a job. */
bool nrg_detail_is_rank(const char *detail);
bool nrg_row_inside_own_kind(const struct nrg_view_rows *rows, size_t i);
/* views/unit_spread.c: skip as of nrg_attribution_spread. 0 or -ENOMEM. */
int nrg_unit_spread(const struct nrg_single_steps *steps, int skip, struct nrg_unit_use *unit);
/* The same of rows that have each step apart. */
int nrg_single_steps_of_rows(struct nrg_single_steps *steps, const struct nrg_view_rows *rows);

#endif
