/* See cursor.h. Each piece between two readings is a straight line of power. */
#include "energy/cursor.h"

#include <math.h>

#include "base/search.h"
#include "base/stats.h"

/* Beyond the readings, as nrg_timeline_end says. NAN: not known. */
static void hold_power(struct nrg_energy_cursor *c, double power_w, int64_t end_ns)
{
    c->end_ns = end_ns;
    c->known = !isnan(power_w);
    c->w0 = c->known ? power_w : 0;
    c->slope_w = 0;
}

static void before_first(struct nrg_energy_cursor *c)
{
    struct nrg_held_end end = nrg_timeline_end(c->tl, true);
    int64_t first = nrg_point_ns(c->tl, 0), held = first - end.reach_ns;
    if (c->begin_ns < held)
        hold_power(c, NAN, held);
    else
        hold_power(c, end.power_w, first);
}

static void after_last(struct nrg_energy_cursor *c)
{
    struct nrg_held_end end = nrg_timeline_end(c->tl, false);
    int64_t held = nrg_point_ns(c->tl, c->tl->n - 1) + end.reach_ns;
    if (c->begin_ns < held)
        hold_power(c, end.power_w, held);
    else
        hold_power(c, NAN, INT64_MAX);
}

/* The piece from c->begin_ns up to the next point, which is not the first. */
static void set_between(struct nrg_energy_cursor *c)
{
    size_t i = (size_t)c->next - 1;
    const struct nrg_timeline *tl = c->tl;
    struct nrg_reading_point from = nrg_point_at(tl, i), to = nrg_point_at(tl, i + 1);
    bool more = c->n_more && c->more->from == i;
    c->end_ns = more ? c->more->t_ns : to.t_ns;
    double dt = (double)(c->end_ns - c->from_ns) * 1e-9;
    c->known = !from.gap;
    c->w0 = c->slope_w = 0;
    if (from.gap)
        return;
    if (tl->is_gauge) {
        c->slope_w = (to.gauge - from.gauge) / dt;
        c->w0 = from.gauge + c->slope_w * ((double)(c->begin_ns - from.t_ns) * 1e-9 + c->lag_s);
    } else {
        c->w0 = ((more ? c->more->sum_j : to.sum_j) - c->from_j) / dt;
    }
}

static void set_piece(struct nrg_energy_cursor *c)
{
    if (c->next < 0)
        before_first(c);
    else if ((size_t)c->next >= c->tl->n)
        after_last(c);
    else
        set_between(c);
}

/* The interval up to point `next`, from its begin on. */
static void set_next(struct nrg_energy_cursor *c, size_t next)
{
    c->next = (ptrdiff_t)next;
    struct nrg_reading_point from = nrg_point_at(c->tl, next - 1);
    c->from_ns = from.t_ns;
    c->from_j = from.sum_j;
}

static void pass_more(struct nrg_energy_cursor *c)
{
    if ((ptrdiff_t)c->more->from == c->next - 1) {
        c->from_ns = c->more->t_ns;
        c->from_j = c->more->sum_j;
    }
    c->more++;
    c->n_more--;
}

void nrg_energy_cursor_init(struct nrg_energy_cursor *c, const struct nrg_timeline *tl,
                            int64_t begin_ns, double lag_s)
{
    *c = (struct nrg_energy_cursor){.tl = tl, .begin_ns = begin_ns, .lag_s = lag_s, .next = -1};
    if (!tl || !tl->n) {
        hold_power(c, NAN, INT64_MAX);
        return;
    }
    if (begin_ns >= nrg_point_ns(tl, 0))
        set_next(c, nrg_timeline_up_to(tl, begin_ns));
    set_piece(c);
}

void nrg_energy_cursor_refine(struct nrg_energy_cursor *c, const struct nrg_energy_point *more,
                              size_t n)
{
    if (!n)
        return;
    c->more = more;
    c->n_more = n;
    while (c->n_more && c->more->t_ns <= c->begin_ns)
        pass_more(c);
    set_piece(c);
}

/* Goes on after the point that ended a piece. */
static void pass_point(struct nrg_energy_cursor *c)
{
    if (c->next < 0 && c->begin_ns >= nrg_point_ns(c->tl, 0))
        set_next(c, 1);
    else if (c->next >= 0 && c->n_more && (ptrdiff_t)c->more->from == c->next - 1)
        pass_more(c);
    else if (c->next >= 0 && (size_t)c->next < c->tl->n)
        set_next(c, (size_t)c->next + 1);
}

void nrg_energy_cursor_advance(struct nrg_energy_cursor *c, int64_t t_ns)
{
    while (t_ns > c->end_ns) {
        struct nrg_energy_at at = nrg_energy_cursor_at(c, c->end_ns);
        c->sum_j = at.energy_j;
        c->covered_ns = at.covered_ns;
        c->begin_ns = c->end_ns;
        pass_point(c);
        set_piece(c);
    }
}

/* NAN: not known. */
static double power_of(const struct nrg_timeline *tl, size_t from, size_t to)
{
    if (to >= tl->n || to <= from)
        return NAN;
    struct nrg_reading_point a = nrg_point_at(tl, from), b = nrg_point_at(tl, to);
    return a.gap ? NAN : (b.sum_j - a.sum_j) * 1e9 / (double)(b.t_ns - a.t_ns);
}

static double known_or(double power_w, double otherwise_w)
{
    return isnan(power_w) ? otherwise_w : power_w;
}

size_t nrg_grid_end_of(const struct nrg_grid *g, size_t from)
{
    size_t to = from + 1;
    int64_t from_ns = from < g->tl->n ? nrg_point_ns(g->tl, from) : 0;
    while (to + 1 < g->tl->n && nrg_point_ns(g->tl, to) - from_ns < g->width_ns)
        to++;
    return to;
}

void nrg_grid_init(struct nrg_grid *g, const struct nrg_timeline *tl, int64_t width_ns)
{
    /* Readings come a little early or late: nine tenths of an update are one. */
    *g = (struct nrg_grid){.tl = tl, .width_ns = width_ns - width_ns / 10};
    g->begin_ns = INT64_MIN;
    g->end_ns = tl && tl->n ? nrg_point_ns(tl, 0) : INT64_MAX;
}

/* The interval after this one was looked at for its power: the next one is that. */
static void set_interval(struct nrg_grid *g)
{
    const struct nrg_timeline *tl = g->tl;
    bool first = g->index == 1;
    double last_w = g->own_w;
    g->from = first ? 0 : g->to;
    g->to = first ? nrg_grid_end_of(g, 0) : g->next_to;
    g->own_w = first ? power_of(tl, 0, g->to) : g->next_w;
    g->begin_ns = g->end_ns;
    g->energy_j = 0;
    if (g->to >= tl->n) { /* after the last reading nothing is known */
        g->end_ns = INT64_MAX;
        g->before_w = g->after_w = 0;
        return;
    }
    g->end_ns = nrg_point_ns(tl, g->to);
    g->energy_j = nrg_point_j(tl, g->to) - nrg_point_j(tl, g->from);
    g->next_to = nrg_grid_end_of(g, g->to);
    g->next_w = power_of(tl, g->to, g->next_to);
    double own_w = known_or(g->own_w, 0);
    g->before_w = first ? own_w : known_or(last_w, own_w);
    g->after_w = known_or(g->next_w, own_w);
}

void nrg_grid_advance(struct nrg_grid *g, int64_t t_ns)
{
    while (t_ns >= g->end_ns && g->end_ns != INT64_MAX) {
        g->last_energy_j = g->energy_j;
        g->last_begin_ns = g->begin_ns;
        g->index++;
        set_interval(g);
    }
}

int64_t nrg_timeline_width_ns(const struct nrg_timeline *tl, const struct nrg_recorded_channel *ch)
{
    int64_t some[257],
        update_ns = tl->held_ns > ch->channel.update_ns ? tl->held_ns : ch->channel.update_ns;
    size_t n = 0, step = tl->n / 256 + 1;
    for (size_t i = 0; i + 1 < tl->n && n < 257; i += step)
        if (!nrg_point_gap(tl, i))
            some[n++] = nrg_point_ns(tl, i + 1) - nrg_point_ns(tl, i);
    if (!n)
        return tl->period_ns > 0 ? tl->period_ns : 1;
    int64_t median = nrg_median_i64(some, n), width = median > update_ns ? median : update_ns;
    return width > 0 ? width : 1;
}
