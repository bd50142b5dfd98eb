/* See rows.h: readings as rows see them, several of a counter that is read faster than is of use.
 */
#include <math.h>

#include "attribute/regress/rows/borders.h"
#include "base/stats.h"

#define CHOICE   4   /* readings, one of which ends a row */
#define PUNCTUAL 0.9 /* resultant of their phases: below, readings come at any time */

void nrg_observer_init(struct nrg_observer *o, const struct nrg_regress_options *options)
{
    const struct nrg_timeline *tl = options->timeline;
    *o = (struct nrg_observer){.timeline = tl,
                               .begin_ns = options->begin_ns,
                               .end_ns = options->end_ns,
                               .merged_ns = options->merged_ns,
                               .edges = options->edges,
                               .n_edges = options->n_edges,
                               .period_ns = options->punctual_ns ? tl->period_ns : 0,
                               .punctual_ns = options->punctual_ns,
                               .unsure = options->unsure,
                               .unsure_end = options->n_unsure ? options->unsure + options->n_unsure
                                                               : options->unsure,
                               .restart = true};
    if (options->borders) {
        o->border = options->borders->t_ns;
        o->border_end = o->border + options->borders->n;
        o->steady_ns = options->steady_ns;
        o->kept = options->borders->of == tl ? options->borders->seen : NULL;
        o->kept_end = o->kept ? o->kept + options->borders->n_seen : NULL;
    }
    if (o->kept)
        return;
    while (o->next < tl->n && nrg_point_ns(tl, o->next) < o->begin_ns)
        o->next++;
}

/* Observations come in order of time. */
static bool is_unsure(struct nrg_observer *o, int64_t from_ns, int64_t to_ns)
{
    while (o->unsure < o->unsure_end && o->unsure->end_ns <= from_ns)
        o->unsure++;
    return o->unsure < o->unsure_end && o->unsure->begin_ns < to_ns;
}

/* So do edges, which do not overlap: those that are over are left behind. */
static void pass_edges(struct nrg_observer *o, int64_t from_ns)
{
    for (; o->n_edges && o->edges->end_ns <= from_ns; o->n_edges--)
        o->edges++;
}

static bool is_edge(const struct nrg_observer *o, int64_t to_ns)
{
    return o->n_edges && to_ns > o->edges->begin_ns;
}

/* Nothing begins or ends from one reading to another: all between them tells the same. */
static bool is_steady(struct nrg_observer *o, int64_t from_ns, int64_t to_ns)
{
    if (to_ns - from_ns > o->steady_ns)
        return false;
    while (o->border < o->border_end && *o->border <= from_ns)
        o->border++;
    return o->border == o->border_end || *o->border >= to_ns;
}

/* Whether a row from one reading to another takes the next one in, whatever runs then. */
static bool goes_on(const struct nrg_observer *o, int64_t from_ns, int64_t to_ns)
{
    for (size_t i = 0; i < o->n_edges && to_ns > o->edges[i].begin_ns; i++)
        if (to_ns < o->edges[i].end_ns)
            return true;
    return to_ns - from_ns < o->merged_ns;
}

/* How far a reading is from when readings mostly come, of those that are made so often. */
static int64_t unpunctual_ns(int64_t t_ns, int64_t due_ns, int64_t period_ns)
{
    int64_t late = (t_ns - due_ns) % period_ns;
    late += late < 0 ? period_ns : 0;
    return late < period_ns - late ? late : period_ns - late;
}

double nrg_reading_period_s(const struct nrg_timeline *tl)
{
    int64_t step[501];
    size_t n = 0, stride = tl->n > 501 ? tl->n / 501 + 1 : 1;
    for (size_t i = 0; i + 1 < tl->n && n < 501; i += stride)
        step[n++] = nrg_point_ns(tl, i + 1) - nrg_point_ns(tl, i);
    if (!n)
        return 1e-9;
    return fmax(1, (double)nrg_median_i64(step, n)) / 1e9;
}

int64_t nrg_observer_due(const struct nrg_timeline *tl)
{
    double sine = 0, cosine = 0, period = (double)tl->period_ns;
    int64_t first_ns = tl->n ? nrg_point_ns(tl, 0) : 0;
    for (size_t i = 0; tl->period_ns > 0 && i < tl->n; i++) {
        double turn =
            2 * M_PI * (double)((nrg_point_ns(tl, i) - first_ns) % tl->period_ns) / period;
        sine += sin(turn);
        cosine += cos(turn);
    }
    if (tl->period_ns <= 0 || hypot(sine, cosine) < PUNCTUAL * (double)tl->n)
        return 0;
    return first_ns + llround(atan2(sine, cosine) / (2 * M_PI) * period);
}

/*
 * A counter shows its last update, so a reading that comes late shows the same, but is taken for
 * one of a later moment. Where readings come faster than rows are long, a row ends with the one of
 * the next few that came when readings mostly do: all are then of the same age.
 */
static size_t punctual(const struct nrg_observer *o, size_t to, bool after_gap)
{
    const struct nrg_timeline *tl = o->timeline;
    size_t best = to;
    if (!o->period_ns || !o->merged_ns || after_gap)
        return to;
    for (size_t i = to + 1; i < to + CHOICE && i < tl->n; i++) {
        if (nrg_point_gap(tl, i - 1) || nrg_point_ns(tl, i) > o->end_ns ||
            nrg_point_j(tl, i) == nrg_point_j(tl, i - 1))
            break;
        if (unpunctual_ns(nrg_point_ns(tl, i), o->punctual_ns, o->period_ns) <
            unpunctual_ns(nrg_point_ns(tl, best), o->punctual_ns, o->period_ns))
            best = i;
    }
    return best;
}

/*
 * A counter that stands still gives no reading until it moves, and then one for all the time since
 * it last moved. If it stands still at first, that time is not known: readings begin at its first
 * move. Readings that follow one another faster than merged_ns are one: when in its own period the
 * counter was updated is not known, and weighs the less the longer a row is.
 */
static bool observe_counter(struct nrg_observer *o, struct nrg_observation *seen)
{
    const struct nrg_timeline *tl = o->timeline;
    size_t from = o->next, to = from + 1;
    struct nrg_reading_point first = nrg_point_at(tl, from), before = first, at = first;
    pass_edges(o, first.t_ns);
    for (; to < tl->n; to++, before = at) {
        at = nrg_point_at(tl, to);
        if (before.gap || at.sum_j != first.sum_j)
            break;
    }
    while (to + 1 < tl->n && !before.gap && !at.gap) {
        bool must = goes_on(o, first.t_ns, at.t_ns);
        if (!must && !o->border)
            break;
        struct nrg_reading_point next = nrg_point_at(tl, to + 1);
        if (next.t_ns > o->end_ns || !(must || is_steady(o, first.t_ns, next.t_ns)))
            break;
        before = at;
        at = next;
        to++;
    }
    if (to >= tl->n || at.t_ns > o->end_ns)
        return false;
    size_t best = punctual(o, to, before.gap);
    bool gap = best > to ? nrg_point_gap(tl, best - 1) : before.gap;
    at = best > to ? nrg_point_at(tl, best) : at;
    *seen = (struct nrg_observation){.from_ns = first.t_ns,
                                     .to_ns = at.t_ns,
                                     .y = at.sum_j - first.sum_j,
                                     .restart = o->restart || o->skipped || o->edge,
                                     .edge = is_edge(o, at.t_ns)};
    seen->usable = !gap && !(o->restart && nrg_point_j(tl, from + 1) == first.sum_j) &&
                   !is_unsure(o, first.t_ns, at.t_ns);
    o->skipped = !seen->usable;
    o->edge = seen->edge;
    o->restart = gap;
    o->next = best;
    return true;
}

static bool observe_gauge(struct nrg_observer *o, struct nrg_observation *seen)
{
    const struct nrg_timeline *tl = o->timeline;
    size_t at = o->next;
    if (at >= tl->n || nrg_point_ns(tl, at) > o->end_ns)
        return false;
    bool first = !o->started, gap = !first && nrg_point_gap(tl, at - 1);
    *seen =
        (struct nrg_observation){.from_ns = first ? nrg_point_ns(tl, at) : nrg_point_ns(tl, at - 1),
                                 .to_ns = nrg_point_ns(tl, at),
                                 .y = nrg_point_gauge(tl, at),
                                 .restart = first || gap};
    seen->usable = !is_unsure(o, seen->from_ns, seen->to_ns);
    o->started = true;
    o->next++;
    return true;
}

bool nrg_observe(struct nrg_observer *o, struct nrg_observation *seen)
{
    if (o->kept) {
        if (o->kept == o->kept_end)
            return false;
        *seen = *o->kept++;
        return true;
    }
    if (o->next >= o->timeline->n)
        return false;
    return o->timeline->is_gauge ? observe_gauge(o, seen) : observe_counter(o, seen);
}
