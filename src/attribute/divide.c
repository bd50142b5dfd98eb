/*
 * Where in an interval of a counter its energy was used, when the edge of a span cuts it. By time,
 * a span that draws more than the one before it would lose to it at each call, and always the same.
 * The intervals before and after show the powers of both sides, where nothing cuts them: the
 * interval is divided in proportion to what these powers would have used. Where only one of them is
 * whole, or there are more edges, a side has what its power uses, and the others the rest. A
 * reading shows the counter's last update, which is half an update old in the mean. The result is
 * a point more of the timeline for each such edge, for the flows alone.
 *
 * What the two powers do not explain of the interval may belong to either side, unless it is no
 * more than the counter's own phase and rounding, which are random. These come in by four readings:
 * the two of the interval, and those at the other ends of its neighbours. Where one power alone
 * says what a side used, nothing shows that it was drawn there, too: how much powers differ between
 * the ends of stretches, beyond these readings, says what that may be off by.
 *
 * Refuses: gauges, whose readings are not known to be of that time; recordings in which most
 * intervals lie between others that are cut.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "attribute/internal.h"
#include "base/mem.h"

#define RANDOM_SIGMAS 2.0
#define PERIOD_OFF    1.1 /* times what the driver says: a counter's period may be that */

/* An interval with edges in it. */
struct cut {
    struct nrg_grid grid;
    int64_t first_ns, last_ns; /* edges */
};

struct part_cuts {
    struct nrg_part *part; /* NULL: it is not divided */
    struct nrg_grid grid;
    struct cut last; /* index 0: none yet */
    uint32_t before; /* number of the interval that was cut before that one */
    double level_j;  /* of the last point in this interval, from its begin on */
    double mean_w;   /* of all */
    size_t cap;
    /* Squares of how much power differs between the ends of a stretch of whole intervals */
    double change_w2, stretches;
};

/* An interval that is to be divided: how long its sides are, in the counter's time, and what they
 * use at the powers of the neighbours; NAN: the neighbour is cut, too. */
struct sides {
    double before_s, after_s;
    double before_j, after_j;
    double width_s;             /* of the interval */
    double before_j2, after_j2; /* what a reading is off by at that power, as a square */
};

/* Where the energy is divided: what came before the edge, and what that may be off by. */
struct cut_energy {
    double before_j, off_j; /* off_j: each time alike */
    double variance_j2;
    double alone_s; /* time of a side for which its neighbour's power stands alone */
};

struct divider {
    struct nrg_engine *e;
    struct part_cuts *parts;
};

/* The square of what one reading is off by, by the phase of its update and rounding. */
static double reading_j2(const struct nrg_part *part, double power_w)
{
    double phase_j = power_w * part->update_s * PERIOD_OFF;
    return phase_j * phase_j / 12 + part->edge_noise_j2;
}

static int add_division(struct part_cuts *c, int64_t t_ns, struct cut_energy at)
{
    const struct nrg_grid *g = &c->last.grid;
    /* The timeline is late everywhere: points are as late as it is in the mean. */
    double level_j = at.before_j - c->mean_w * c->part->update_s / 2;
    level_j = fmin(fmax(level_j, c->level_j), g->energy_j);
    c->level_j = level_j;
    struct nrg_division division = {.t_ns = t_ns,
                                    .from = g->from,
                                    .sum_j = nrg_point_j(g->tl, g->from) + level_j,
                                    .off_j = at.off_j,
                                    .variance_j2 = at.variance_j2,
                                    .alone_s = at.alone_s};
    return nrg_append(&c->part->divisions, &c->part->n_divisions, &c->cap, &division,
                      sizeof division);
}

static struct sides find_sides(const struct part_cuts *c, uint32_t next)
{
    const struct nrg_grid *g = &c->last.grid;
    double width_s = (double)(g->end_ns - g->begin_ns) * 1e-9, late_s = c->part->update_s / 2;
    double before_s = (double)(c->last.first_ns - g->begin_ns) * 1e-9 + late_s;
    double after_s = (double)(g->end_ns - c->last.last_ns) * 1e-9 - late_s;
    struct sides s = {.before_s = fmin(before_s, width_s), .after_s = fmax(after_s, 0)};
    s.before_j = g->index > c->before + 1 ? fmax(g->before_w, 0) * s.before_s : NAN;
    s.after_j = next > g->index + 1 ? fmax(g->after_w, 0) * s.after_s : NAN;
    s.width_s = width_s;
    s.before_j2 = reading_j2(c->part, g->before_w);
    s.after_j2 = reading_j2(c->part, g->after_w);
    return s;
}

/* What four readings, of which the first two are on the side before, are off by in sum: how much
 * each counts, as parts of what one is off by on its side. */
static double sum_j2(const struct sides *s, const double *parts)
{
    return (parts[0] * parts[0] + parts[1] * parts[1]) * s->before_j2 +
           (parts[2] * parts[2] + parts[3] * parts[3]) * s->after_j2;
}

/*
 * Both sides together used what the interval did. Its first reading is off by e1, the one before
 * it by e0, its last by e2 and the next by e3, and each power by the difference of two of them:
 * with a the part of the time and f that of the energy before the edge, what the powers do not
 * explain is e1 - e2 + a (e1 - e0) + (1 - a) (e3 - e2). Of the energy before the edge, (1 - f) e1
 * and f e2 are missing, and f (1 - f) of the difference of both powers.
 */
static struct cut_energy divide_both(const struct sides *s, double all_j)
{
    double sum_j = s->before_j + s->after_j, f = s->before_j / sum_j;
    double a = fmin(s->before_s / s->width_s, 1), share = f * (1 - f);
    double g = s->before_j > 0 ? share * sum_j * s->before_s / (s->before_j * s->width_s) : 0;
    double h = s->after_j > 0 ? share * sum_j * s->after_s / (s->after_j * s->width_s) : 0;
    double unexplained[] = {a, 1 + a, 2 - a, 1 - a}, before[] = {g, 1 - f + g, f + h, h};
    double off_j = fabs(all_j - sum_j) - RANDOM_SIGMAS * sqrt(sum_j2(s, unexplained));
    return (struct cut_energy){
        .before_j = all_j * f, .off_j = fmax(off_j, 0), .variance_j2 = sum_j2(s, before)};
}

/* Before the edge is what the power of that side uses. */
static struct cut_energy divide_before(const struct sides *s, double all_j)
{
    double a = s->before_s / s->width_s, parts[] = {a, 1 + a, 0, 0};
    return (struct cut_energy){.before_j = fmin(s->before_j, all_j),
                               .variance_j2 = sum_j2(s, parts),
                               .alone_s = s->before_s};
}

/* After it is what the power of that side uses, and before it the rest. */
static struct cut_energy divide_after(const struct sides *s, double all_j)
{
    double a = s->after_s / s->width_s, parts[] = {0, 0, 1 + a, a};
    return (struct cut_energy){.before_j = fmax(all_j - s->after_j, 0),
                               .variance_j2 = sum_j2(s, parts),
                               .alone_s = s->after_s};
}

static int divide_once(struct part_cuts *c, const struct sides *s)
{
    double all_j = c->last.grid.energy_j, sum_j = s->before_j + s->after_j;
    int64_t t_ns = c->last.first_ns;
    if (!isnan(sum_j) && sum_j > 0)
        return add_division(c, t_ns, divide_both(s, all_j));
    if (!isnan(s->before_j))
        return add_division(c, t_ns, divide_before(s, all_j));
    if (!isnan(s->after_j))
        return add_division(c, t_ns, divide_after(s, all_j));
    return 0;
}

/* Two edges that are so close that what is between them is less than the readings are off by: as
 * the rest, it would have that, where it is not less than nothing. It draws as the sides do. */
static int divide_around(struct part_cuts *c, const struct sides *s, double between_j)
{
    struct cut_energy at = divide_both(s, c->last.grid.energy_j - between_j);
    at.variance_j2 += between_j * between_j;
    int rc = add_division(c, c->last.first_ns, at);
    at.before_j += between_j;
    return rc ? rc : add_division(c, c->last.last_ns, at);
}

/* Several: what is between the first and the last has the rest. */
static int divide_twice(struct part_cuts *c, const struct sides *s)
{
    double all_j = c->last.grid.energy_j, first_j = 0;
    double between_s = (double)(c->last.last_ns - c->last.first_ns) * 1e-9;
    double between_j = between_s * (c->last.grid.before_w + c->last.grid.after_w) / 2;
    int rc = 0;
    if (s->before_j > 0 && s->after_j > 0 && between_j >= 0 &&
        between_j * between_j < s->before_j2 + s->after_j2)
        return divide_around(c, s, between_j);
    if (!isnan(s->before_j)) {
        struct cut_energy first = divide_before(s, all_j);
        first_j = first.before_j;
        rc = add_division(c, c->last.first_ns, first);
    }
    if (!rc && !isnan(s->after_j)) {
        struct cut_energy last = divide_after(s, all_j);
        last.before_j = fmax(last.before_j, first_j);
        rc = add_division(c, c->last.last_ns, last);
    }
    return rc;
}

/* The next interval that is cut has number `next`. */
static int settle_cut(struct part_cuts *c, uint32_t next)
{
    const struct nrg_grid *g = &c->last.grid;
    bool one = g->index && g->end_ns != INT64_MAX && g->to == g->from + 1;
    if (!one || nrg_point_gap(g->tl, g->from) || !(g->energy_j > 0))
        return 0;
    struct sides s = find_sides(c, next);
    c->level_j = 0;
    return c->last.first_ns == c->last.last_ns ? divide_once(c, &s) : divide_twice(c, &s);
}

/* The whole intervals between two that are cut: the first and the last of them, if they are two. */
static void note_stretch(struct part_cuts *c)
{
    const struct nrg_grid *g = &c->grid;
    double width_s = (double)c->part->width_ns * 1e-9;
    if (!c->last.grid.index || g->end_ns == INT64_MAX || g->index < c->last.grid.index + 3)
        return;
    double first_w = c->last.grid.after_w, last_w = g->before_w, change_w = last_w - first_w;
    double noise_j2 = 2 * (reading_j2(c->part, first_w) + reading_j2(c->part, last_w));
    c->change_w2 += change_w * change_w - noise_j2 / (width_s * width_s);
    c->stretches++;
}

static int add_cut(struct part_cuts *c, int64_t t_ns)
{
    nrg_grid_at(&c->grid, t_ns);
    if (t_ns <= c->grid.begin_ns)
        return 0; /* between two intervals: cuts none */
    if (c->grid.index == c->last.grid.index) {
        c->last.last_ns = t_ns;
        return 0;
    }
    int rc = settle_cut(c, c->grid.index);
    note_stretch(c);
    c->before = c->last.grid.index;
    c->last = (struct cut){.grid = c->grid, .first_ns = t_ns, .last_ns = t_ns};
    return rc;
}

static int on_event(void *arg, const struct nrg_span_walk_event *ev)
{
    struct divider *d = arg;
    const struct nrg_engine *e = d->e;
    int rc = 0;
    for (size_t p = 0; !rc && ev->what != NRG_WALK_COUNT && p < e->n_parts; p++)
        if (d->parts[p].part && e->parts[p].pool == e->cells.track_pool[ev->track])
            rc = add_cut(&d->parts[p], ev->t_ns);
    return rc;
}

/* Of two intervals, each differs by half of the square. */
static void doubt_alone(struct part_cuts *c)
{
    double unsteady_w2 = c->stretches > 0 ? fmax(c->change_w2 / c->stretches / 2, 0) : 0;
    for (size_t i = 0; i < c->part->n_divisions; i++) {
        struct nrg_division *d = &c->part->divisions[i];
        d->variance_j2 += unsteady_w2 * d->alone_s * d->alone_s;
    }
}

static int make_points(struct nrg_engine *e, struct nrg_part *part)
{
    struct nrg_energy_point *points =
        nrg_arena_array(&e->memory, part->n_divisions, sizeof *points);
    if (!points)
        return -ENOMEM;
    for (size_t i = 0; i < part->n_divisions; i++) {
        const struct nrg_division *d = &part->divisions[i];
        points[i] = (struct nrg_energy_point){d->t_ns, d->sum_j, d->from};
    }
    part->points = points;
    return 0;
}

/* Where spans are shorter than two intervals, hardly one is between two that are whole. */
static bool can_divide(const struct nrg_engine *e, const struct nrg_part *part)
{
    double stretches = 0, width_s = (double)part->width_ns * 1e-9;
    for (size_t i = 0; i < e->walk.paths.n; i++)
        stretches += (double)nrg_survey_at(&e->survey, i, part->pool)->stretches;
    return part->method == NRG_METHOD_INTEGRATE && !part->tl->is_gauge && part->tl->n > 2 &&
           part->channel->channel.provenance != NRG_ESTIMATED &&
           2 * stretches < e->out->duration_s / width_s;
}

static double mean_power_w(const struct nrg_timeline *tl)
{
    double s = (double)(nrg_point_ns(tl, tl->n - 1) - nrg_point_ns(tl, 0)) * 1e-9;
    return s > 0 ? (nrg_point_j(tl, tl->n - 1) - nrg_point_j(tl, 0)) / s : 0;
}

int nrg_divide_intervals(struct nrg_engine *e)
{
    struct divider d = {.e = e};
    bool any = false;
    d.parts = nrg_arena_array(&e->memory, e->n_parts + 1, sizeof *d.parts);
    if (!d.parts)
        return -ENOMEM;
    for (size_t p = 0; p < e->n_parts; p++) {
        if (!can_divide(e, &e->parts[p]))
            continue;
        any = true;
        d.parts[p].part = &e->parts[p];
        d.parts[p].mean_w = mean_power_w(e->parts[p].tl);
        nrg_grid_init(&d.parts[p].grid, e->parts[p].tl, e->parts[p].width_ns);
    }
    int rc = any ? nrg_span_walk_run(&e->walk, e->cells.begin_ns[e->cells.n], on_event, &d) : 0;
    for (size_t p = 0; !rc && p < e->n_parts; p++) {
        if (!d.parts[p].part)
            continue;
        rc = settle_cut(&d.parts[p], UINT32_MAX);
        doubt_alone(&d.parts[p]);
        if (!rc && e->parts[p].n_divisions)
            rc = make_points(e, &e->parts[p]);
    }
    return rc;
}
