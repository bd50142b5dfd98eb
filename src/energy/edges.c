/*
 * See edges.h. An edge cuts the step between two readings into a part before it and one after. Of a
 * counter's step, each part has at most all of it, and at most what the highest power makes of its
 * time. The highest is what readings in the run and around its edges show, and no less than would
 * put the whole step on its longer side: a run that is shorter than a period shows no other. A
 * gauge had at each moment between two readings the power of one of them, or one between.
 */
#include "energy/edges.h"

#include <math.h>

/* A step, and the edges in it: from `in_ns` to `out_ns` is the time whose energy is asked for. */
struct step {
    struct nrg_reading_point from, to;
    int64_t in_ns, out_ns;
};

/* False where no two readings are around it, or nothing is known between them. */
static bool find_step(const struct nrg_timeline *tl, int64_t t_ns, size_t *at)
{
    size_t begun = tl->n ? nrg_timeline_up_to(tl, t_ns) : 0;
    *at = begun - 1;
    return begun && begun < tl->n && !nrg_point_gap(tl, begun - 1);
}

static double seconds(int64_t ns)
{
    return (double)ns * 1e-9;
}

/* Of a step, or where a reader was quicker than the counter, as it would be over an update. */
static double step_w(const struct nrg_timeline *tl, size_t at)
{
    struct nrg_reading_point from = nrg_point_at(tl, at), to = nrg_point_at(tl, at + 1);
    int64_t apart_ns = to.t_ns - from.t_ns;
    return (to.sum_j - from.sum_j) / seconds(apart_ns > tl->update_ns ? apart_ns : tl->update_ns);
}

/* Also outside of the run: what the device did there, it may have done until the edge. */
static double highest_w(const struct nrg_timeline *tl, size_t at, double seen_w)
{
    size_t first = at ? at - 1 : 0, last = at + 2 < tl->n ? at + 1 : at;
    for (size_t i = first; i <= last; i++)
        if (!nrg_point_gap(tl, i))
            seen_w = fmax(seen_w, step_w(tl, i));
    return seen_w;
}

static struct nrg_edge_doubt of_counter(const struct step *s, double most_w)
{
    double step_j = s->to.sum_j - s->from.sum_j, apart_s = seconds(s->to.t_ns - s->from.t_ns);
    double in_s = seconds(s->out_ns - s->in_ns), out_s = apart_s - in_s;
    double said_j = step_j * in_s / apart_s;
    most_w = fmax(most_w, step_j / fmax(in_s, out_s)); /* all of it may be there */
    return (struct nrg_edge_doubt){said_j - fmax(0, step_j - most_w * out_s),
                                   fmin(step_j, most_w * in_s) - said_j};
}

static struct nrg_edge_doubt of_gauge(const struct step *s)
{
    double in_s = seconds(s->out_ns - s->in_ns);
    double slope = (s->to.gauge - s->from.gauge) / seconds(s->to.t_ns - s->from.t_ns);
    double said_j = (s->from.gauge + slope * (seconds(s->in_ns - s->from.t_ns) + in_s / 2)) * in_s;
    return (struct nrg_edge_doubt){said_j - fmin(s->from.gauge, s->to.gauge) * in_s,
                                   fmax(s->from.gauge, s->to.gauge) * in_s - said_j};
}

/*
 * Readings of a counter that are no further apart than its updates jump by one of them or not at
 * all: what an update is worth is in the interval anyway, and holds this. So it is with the part of
 * a gauge's step that is no longer than an update.
 */
static void add_step(const struct nrg_timeline *tl, size_t at, int64_t begin_ns, int64_t end_ns,
                     double most_w, struct nrg_edge_doubt *sum)
{
    struct step s = {.from = nrg_point_at(tl, at), .to = nrg_point_at(tl, at + 1)};
    int64_t apart_ns = s.to.t_ns - s.from.t_ns;
    s.in_ns = begin_ns > s.from.t_ns ? begin_ns : s.from.t_ns;
    s.out_ns = end_ns < s.to.t_ns ? end_ns : s.to.t_ns;
    if (apart_ns <= tl->update_ns)
        return;
    struct nrg_edge_doubt doubt = tl->is_gauge ? of_gauge(&s) : of_counter(&s, most_w);
    double beyond = tl->is_gauge ? (double)(apart_ns - tl->update_ns) / (double)apart_ns : 1;
    sum->below_j += beyond * fmax(0, doubt.below_j);
    sum->above_j += beyond * fmax(0, doubt.above_j);
}

/* A counter may have been read at any moment of the time that a reading took, which is no longer
 * than that between readings, whatever a damaged file says. */
static void add_width(const struct nrg_timeline *tl, size_t at, int64_t t_ns, double seen_w,
                      struct nrg_edge_doubt *sum)
{
    double apart_s = seconds(nrg_point_ns(tl, at + 1) - nrg_point_ns(tl, at));
    double took_s = fmin(seconds(nrg_timeline_took_ns(tl, t_ns)), apart_s);
    double off_j = tl->is_gauge ? 0 : took_s / 2 * seen_w;
    sum->below_j += off_j;
    sum->above_j += off_j;
}

/* Where a counter is held because no reading came any more, it may have gone on with any power. */
static void add_held(const struct nrg_timeline *tl, int64_t begin_ns, int64_t end_ns, double seen_w,
                     struct nrg_edge_doubt *sum)
{
    int64_t held_ns;
    double held_j = nrg_timeline_counter_held(tl, begin_ns, end_ns, &held_ns);
    if (held_ns <= 0)
        return;
    double most_w = fmax(highest_w(tl, 0, seen_w), highest_w(tl, tl->n - 2, seen_w));
    sum->below_j += fmax(0, held_j);
    sum->above_j += fmax(0, most_w * seconds(held_ns) - held_j);
}

struct nrg_edge_doubt nrg_timeline_edges(const struct nrg_timeline *tl, int64_t begin_ns,
                                         int64_t end_ns, double seen_w)
{
    struct nrg_edge_doubt sum = {0};
    const int64_t edges_ns[] = {begin_ns, end_ns};
    size_t at, last = SIZE_MAX;
    for (size_t i = 0; i < 2 && end_ns > begin_ns; i++) {
        if (!find_step(tl, edges_ns[i], &at))
            continue;
        double most_w = highest_w(tl, at, fmax(0, seen_w));
        if (at != last)
            add_step(tl, at, begin_ns, end_ns, most_w, &sum);
        add_width(tl, at, edges_ns[i], most_w, &sum);
        last = at;
    }
    if (end_ns > begin_ns)
        add_held(tl, begin_ns, end_ns, fmax(0, seen_w), &sum);
    return sum;
}
