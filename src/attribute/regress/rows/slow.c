/*
 * Columns that change slowly over a run: see rows.h. Each is idle's own column, or the reading,
 * times a factor of the moment. From row to row factors go along a line. So passes over all rows,
 * of which searches make many, make the columns that do, and others from them in steps of time:
 * within a step, a factor is taken to go straight from where it begins to where it ends.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/regress/internal.h"
#include "base/mem.h"

#define STEPS      128 /* of a run */
#define WORTH_ROWS 6   /* of a step */
#define FIRST      NRG_COLUMN_DRIFT
#define N          (NRG_COLUMN_IDLE - FIRST)
#define LINE       (NRG_COLUMN_IDLE_SHAPES + NRG_IDLE_LINE)
#define HEAT       (NRG_COLUMN_IDLE_SHAPES + NRG_IDLE_HEAT)

double nrg_row_position(const struct nrg_regress_options *o, int64_t t_ns)
{
    double span = (double)(o->end_ns - o->begin_ns);
    return 2 * (double)(t_ns - o->begin_ns) / fmax(span, 1) - 1;
}

/* An average that began with its first reading has seen nothing of before. */
static double average_age_ns(const struct nrg_rowgen *gen)
{
    double tau_ns = gen->kernel.tau_s * 1e9, since_ns = (double)(gen->seen.to_ns - gen->first_ns);
    double old = exp(-since_ns / tau_ns);
    return old < 1 ? tau_ns - since_ns * old / (1 - old) : 0;
}

int64_t nrg_rowgen_moment_ns(const struct nrg_rowgen *gen)
{
    double age_ns = nrg_kernel_lag_s(&gen->kernel) * 1e9;
    if (gen->kernel.kind == NRG_KERNEL_LEVEL)
        age_ns += (double)(gen->seen.to_ns - gen->seen.from_ns) / 2;
    if (gen->kernel.kind == NRG_KERNEL_EXP)
        age_ns = average_age_ns(gen) + gen->kernel.near_s * 1e9;
    return gen->seen.to_ns - (int64_t)age_ns;
}

static double second_drift(double at)
{
    return at * at - 1.0 / 3;
}

void nrg_rowgen_drift(struct nrg_rowgen *gen, double expected_y)
{
    double at = nrg_row_position(gen->options, nrg_rowgen_moment_ns(gen));
    if (gen->drift) {
        nrg_rowgen_set(gen, NRG_COLUMN_DRIFT, expected_y * at);
        nrg_rowgen_set(gen, NRG_COLUMN_DRIFT2, expected_y * second_drift(at));
    }
}

static bool is_of_reading(size_t column)
{
    return column < NRG_COLUMN_IDLE_SHAPES;
}

/* The columns of a reading that drifts, and of idle power that goes along a line, are there. */
static bool readings_drift(const struct nrg_regress_options *o, bool drift)
{
    return drift && !(o->idle_shape_w[NRG_IDLE_BEND] > 0);
}

static bool idle_drifts(const struct nrg_regress_options *o, bool drift)
{
    return drift || o->idle_shape_w[NRG_IDLE_LINE] > 0;
}

/* Factors of the columns from FIRST on; 0: there is none. The reading itself stands for its
 * expected value: before there is a fit, there is no other. Where idle power may drift, that is
 * enough till then: such a column has the reading's noise. */
static void find_factors(const struct nrg_regress_options *o, bool drift, int64_t t_ns,
                         double factor[N])
{
    double at = nrg_row_position(o, t_ns), shapes[NRG_IDLE_SHAPES] = {0};
    bool of_reading = readings_drift(o, drift), line = idle_drifts(o, drift);
    factor[NRG_COLUMN_DRIFT - FIRST] = of_reading ? at : 0;
    factor[NRG_COLUMN_DRIFT2 - FIRST] = of_reading ? second_drift(at) : 0;
    factor[NRG_COLUMN_IDLE_OFF - FIRST] = o->idle_error_w > 0;
    if (line && drift)
        nrg_idle_shapes(&o->course, t_ns, shapes);
    else if (line)
        shapes[NRG_IDLE_LINE] = nrg_idle_line(&o->course, t_ns);
    for (size_t i = 0; i < NRG_IDLE_SHAPES; i++) {
        bool used = i == NRG_IDLE_LINE ? line : drift && o->idle_shape_w[i] > 0;
        factor[NRG_COLUMN_IDLE_SHAPES + i - FIRST] = used ? shapes[i] : 0;
    }
}

static void set_slow(struct nrg_rowgen *gen, uint32_t column, double factor)
{
    double of = is_of_reading(column) ? gen->y : gen->x[NRG_COLUMN_IDLE];
    if (factor != 0)
        nrg_rowgen_set(gen, column, factor * of);
}

void nrg_rowgen_set_slow(struct nrg_rowgen *gen)
{
    double factor[N];
    find_factors(gen->options, gen->drift, nrg_rowgen_moment_ns(gen), factor);
    for (uint32_t i = 0; i < N; i++)
        set_slow(gen, FIRST + i, factor[i]);
}

/* What slow columns are made from in a step: idle's column and the readings, and both times what
 * goes along a line. */
enum base { IDLE, IDLE_LINE, READING, READING_LINE, BASES };

/* Of a base; readings have none. */
static size_t column_of(enum base base)
{
    return base == IDLE ? NRG_COLUMN_IDLE : base == IDLE_LINE ? LINE : NRG_COLUMN_DRIFT;
}

/* A temperature does not go along lines that are known. */
static bool is_made(size_t column)
{
    return column >= FIRST && column < NRG_COLUMN_IDLE && column != LINE && column != HEAT &&
           column != NRG_COLUMN_DRIFT;
}

/* A column with a base, in the sum as it is. Readings in it are less what is known to be idle. */
static double with_base(const struct nrg_slow *s, const struct nrg_gram *sum, enum base base,
                        size_t column)
{
    if (base != READING)
        return sum->a[nrg_packed(column, column_of(base))];
    return sum->b[column] + s->idle_w * sum->a[nrg_packed(column, NRG_COLUMN_IDLE)];
}

static double readings_squared(const struct nrg_slow *s, const struct nrg_gram *sum)
{
    double idle = sum->a[nrg_packed(NRG_COLUMN_IDLE, NRG_COLUMN_IDLE)];
    return sum->yy + s->idle_w * (2 * sum->b[NRG_COLUMN_IDLE] + s->idle_w * idle);
}

bool nrg_slow_is_worth_it(size_t rows)
{
    return rows >= WORTH_ROWS * STEPS;
}

int nrg_slow_init(struct nrg_slow *s, const struct nrg_regress_options *o, bool drift, size_t n)
{
    *s = (struct nrg_slow){.options = o, .drift = drift, .n = n};
    s->idle_w = isnan(o->idle_w) ? 0 : o->idle_w;
    s->before = nrg_calloc(BASES * n, sizeof *s->before);
    return s->before ? 0 : -ENOMEM;
}

void nrg_slow_release(struct nrg_slow *s)
{
    free(s->before);
    *s = (struct nrg_slow){0};
}

/* How much of each base is in the columns of a step. */
static void find_parts(const struct nrg_slow *s, double parts[N][BASES])
{
    double begin[N], end[N];
    find_factors(s->options, s->drift, s->begin_ns, begin);
    find_factors(s->options, s->drift, s->end_ns, end);
    for (size_t i = 0; i < N; i++) {
        enum base base = is_of_reading(FIRST + i) ? READING : IDLE, line = base + 1;
        size_t along = column_of(line) - FIRST;
        double more = end[along] - begin[along];
        double slope = more != 0 ? (end[i] - begin[i]) / more : 0;
        memset(parts[i], 0, sizeof parts[i]);
        parts[i][line] = slope;
        parts[i][base] = begin[i] - slope * begin[along];
    }
}

static double product(const double parts[BASES], const double with[BASES])
{
    double sum = 0;
    for (size_t k = 0; k < BASES; k++)
        sum += parts[k] * with[k];
    return sum;
}

/* What slow columns have with one another, and with readings; bases: what these have with one
 * another. */
static void add_pairs(const struct nrg_slow *s, const double parts[N][BASES],
                      const double bases[BASES][BASES], struct nrg_gram *sum)
{
    for (size_t i = 0; i < N; i++) {
        double with[BASES], known;
        if (!is_made(FIRST + i))
            continue;
        for (size_t k = 0; k < BASES; k++)
            with[k] = product(parts[i], bases[k]);
        known = with[READING] - s->idle_w * with[IDLE];
        sum->b[FIRST + i] += known;
        for (size_t k = 0; k <= i; k++)
            if (is_made(FIRST + k))
                sum->a[nrg_packed(FIRST + i, FIRST + k)] += product(parts[k], with);
    }
}

/* What a column has got with the bases since the step before. Steps change nothing of that, so the
 * next one goes on from here. */
static void take_step(struct nrg_slow *s, const struct nrg_gram *sum, size_t column,
                      double with[BASES])
{
    double *before = s->before + BASES * column;
    for (enum base k = 0; k < BASES; k++) {
        double now = with_base(s, sum, k, column);
        with[k] = now - before[k];
        before[k] = now;
    }
}

static bool is_base(size_t column)
{
    return column == column_of(IDLE) || column == column_of(IDLE_LINE) ||
           column == column_of(READING_LINE);
}

/* Adds the columns that are made, of the rows of a step. */
static void end_step(struct nrg_slow *s, struct nrg_gram *sum)
{
    double parts[N][BASES], bases[BASES][BASES];
    find_parts(s, parts);
    for (size_t c = 0; c < s->n; c++) {
        double with[BASES];
        bool seen = with_base(s, sum, IDLE, c) != s->before[BASES * c + IDLE];
        if (is_made(c) || (!seen && !is_base(c)))
            continue;
        take_step(s, sum, c, with);
        for (enum base k = 0; k < BASES; k++)
            if (k != READING && column_of(k) == c)
                memcpy(bases[k], with, sizeof with);
        for (size_t i = 0; seen && i < N; i++)
            if (is_made(FIRST + i))
                sum->a[nrg_packed(c, FIRST + i)] += product(parts[i], with);
    }
    for (enum base k = 0; k < BASES; k++)
        bases[READING][k] = bases[k][READING];
    bases[READING][READING] = readings_squared(s, sum) - s->before_yy;
    s->before_yy = readings_squared(s, sum);
    add_pairs(s, parts, bases, sum);
}

static void begin_step(struct nrg_slow *s, double number)
{
    const struct nrg_regress_options *o = s->options;
    double step_ns = (double)(o->end_ns - o->begin_ns) / STEPS;
    s->begin_ns = o->begin_ns + (int64_t)(number * step_ns);
    s->end_ns = o->begin_ns + (int64_t)((number + 1) * step_ns);
}

void nrg_slow_row(struct nrg_slow *s, struct nrg_rowgen *gen, struct nrg_gram *sum)
{
    int64_t t_ns = nrg_rowgen_moment_ns(gen);
    if (!s->begun || t_ns < s->begin_ns || t_ns >= s->end_ns) {
        nrg_slow_end(s, sum);
        begin_step(s, floor((nrg_row_position(s->options, t_ns) + 1) / 2 * STEPS));
        s->begun = true;
    }
    if (idle_drifts(s->options, s->drift))
        set_slow(gen, LINE, nrg_idle_line(&s->options->course, t_ns));
    if (s->drift && s->options->idle_shape_w[NRG_IDLE_HEAT] > 0)
        set_slow(gen, HEAT, nrg_idle_heat(&s->options->course, t_ns));
    if (readings_drift(s->options, s->drift))
        set_slow(gen, NRG_COLUMN_DRIFT, nrg_row_position(s->options, t_ns));
}

void nrg_slow_end(struct nrg_slow *s, struct nrg_gram *sum)
{
    if (s->begun)
        end_step(s, sum);
    s->begun = false;
}

int nrg_slow_peek(const struct nrg_slow *s, struct nrg_gram *copy)
{
    struct nrg_slow own = *s;
    own.before = nrg_calloc(BASES * s->n, sizeof *own.before);
    if (!own.before)
        return -ENOMEM;
    memcpy(own.before, s->before, BASES * s->n * sizeof *own.before);
    nrg_slow_end(&own, copy);
    nrg_slow_release(&own);
    return 0;
}
