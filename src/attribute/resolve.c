/*
 * What would resolve a row that is not resolved, and how much of it: from the same errors that made
 * its interval.
 *
 * What comes from scatter (a regression, the rates of cpu-time) shrinks with the square root of the
 * readings, so that an interval of W around E needs (W / E)^2 times as many: a longer run, or a
 * higher rate as far as the sensor has more to tell. Integration needs readings as far apart as
 * the row's stretches are long, or enough repetitions for a regression. Bounds and idle power that
 * is not known stay, however long the run is.
 */
#include <math.h>
#include <stdio.h>

#include "attribute/internal.h"

#define LEAST_TIMES      1.1  /* "1.0 times" is no advice */
#define MOST_TIMES       1000 /* beyond this, it is no advice */
#define UPDATES_PER_READ 10   /* of a counter: a regression's rows are no shorter */
#define LEAST_CALLS      8.0  /* in the mean, for a regression */
#define LEAST_INTERVALS  30.0

static double width_j(const struct nrg_engine *e, const struct nrg_part *part,
                      const struct nrg_row_error *error, double work_s)
{
    return error->below_j + error->above_j + 2 * e->z * sqrt(error->variance_j2) +
           part->idle_most_w * work_s;
}

/* The part whose error is largest. */
static size_t worst_part(const struct nrg_engine *e, const struct nrg_row_part *parts,
                         double work_s)
{
    size_t worst = 0;
    for (size_t p = 1; p < e->n_parts; p++)
        if (width_j(e, &e->parts[p], &parts[p].whole, work_s) >
            width_j(e, &e->parts[worst], &parts[worst].whole, work_s))
            worst = p;
    return worst;
}

/* How many times as often the sensor could be read, with something new each time. */
static double faster(const struct nrg_part *part, double updates)
{
    const struct nrg_channel *c = &part->channel->channel;
    if (c->provenance == NRG_ESTIMATED || c->update_ns <= 0)
        return 1;
    return (double)part->channel->period_ns / (updates * (double)c->update_ns);
}

static struct nrg_remedy more_of(double times, double faster_times)
{
    if (!(times <= MOST_TIMES))
        return (struct nrg_remedy){NRG_REMEDY_NONE, NAN};
    times = fmax(times, LEAST_TIMES);
    return (struct nrg_remedy){times <= faster_times ? NRG_REMEDY_RATE : NRG_REMEDY_LONGER, times};
}

static struct nrg_remedy for_integration(const struct nrg_engine *e, const struct nrg_part *part,
                                         const struct nrg_attribution_row *row)
{
    double short_by = 1 / row->updates_per_call, rate = faster(part, 1);
    double intervals = e->out->duration_s * 1e9 / (double)part->width_ns;
    if (short_by > 1 && short_by <= rate)
        return more_of(short_by, rate);
    double times = fmax(LEAST_CALLS / (double)row->calls, LEAST_INTERVALS / intervals);
    return more_of(times > 1 ? times : INFINITY, 0);
}

void nrg_regress_scatter(const struct nrg_engine *e, struct nrg_view *v)
{
    for (size_t p = 0; p < e->n_parts; p++) {
        const struct nrg_regress_result *r = &e->parts[p].regressed;
        bool fitted = e->parts[p].method == NRG_METHOD_REGRESS && r->covariance && e->class_of &&
                      e->walk.rows == &e->walk.paths;
        for (size_t i = 1; fitted && i < e->walk.paths.n; i++) {
            uint32_t c = e->class_of[i];
            if (c < e->n_classes)
                v->parts[v->view_of[i] * e->n_parts + p].whole.doubt_j +=
                    r->t * sqrt(fmax(0, r->covariance[c * e->n_classes + c])) * e->rows[i].cost_s;
        }
    }
}

/* Times as many readings as bring the scatter down, beside what they leave as it is. */
static double readings(double scatter_j, double rest_j, double energy_j)
{
    double room_j = energy_j - rest_j;
    return room_j > 0 ? scatter_j / room_j * (scatter_j / room_j) : INFINITY;
}

struct nrg_remedy nrg_row_remedy(const struct nrg_engine *e, const struct nrg_attribution_row *row,
                                 const struct nrg_row_part *parts, double work_s, bool leaf)
{
    size_t p = worst_part(e, parts, work_s);
    const struct nrg_part *part = &e->parts[p];
    const struct nrg_row_error *error = &parts[p].whole;
    double idle_j = part->idle_most_w * work_s, scatter_j = 2 * error->doubt_j;
    double known_j = width_j(e, part, error, work_s) - idle_j;
    if (part->idle_guessed || (idle_j > 0 && known_j <= row->energy_j))
        return (struct nrg_remedy){NRG_REMEDY_BASELINE, NAN};
    if (part->method == NRG_METHOD_CPU_TIME)
        return more_of(
            readings(hypot(scatter_j, 2 * e->z * sqrt(error->variance_j2)), 0, row->energy_j), 0);
    if (part->method != NRG_METHOD_REGRESS)
        return for_integration(e, part, row);
    /* Beside scatter, a class may have waited, which no reading tells. Sums have scatter alone. */
    if (!leaf || !(scatter_j > 0) || scatter_j > known_j)
        scatter_j = known_j;
    return more_of(readings(scatter_j, known_j - scatter_j, row->energy_j),
                   faster(part, UPDATES_PER_READ));
}

/* ---- in words ---- */

static const char *const names[] = {"nothing", "longer run", "rate", "baseline"};

const char *nrg_remedy_name(enum nrg_remedy_kind how)
{
    return names[how];
}

struct found {
    size_t rows;
    double least, most;
};

/* "1.3 to 12", "40" */
static void show_times(char *buf, size_t size, const struct found *f)
{
    int least = f->least < 10 ? 1 : 0, most = f->most < 10 ? 1 : 0;
    if (f->most < 1.05 * f->least)
        snprintf(buf, size, "%.*f", most, f->most);
    else
        snprintf(buf, size, "%.*f to %.*f", least, f->least, most, f->most);
}

static void note_remedy(struct nrg_attribution *a, enum nrg_remedy_kind how, const struct found *f)
{
    static const char what[] = "not resolved";
    const char *rows = f->rows == 1 ? "row" : "rows";
    char times[48];
    show_times(times, sizeof times, f);
    if (!f->rows)
        return;
    if (how == NRG_REMEDY_LONGER)
        nrg_attribution_note(a, what,
                             "%zu %s: a run about %s times as long, or as many times the steps, "
                             "would resolve them",
                             f->rows, rows, times);
    else if (how == NRG_REMEDY_RATE)
        nrg_attribution_note(a, what,
                             "%zu %s: about %s times as many readings would resolve them: --rate, "
                             "or a longer run",
                             f->rows, rows, times);
    else if (how == NRG_REMEDY_BASELINE)
        nrg_attribution_note(a, what, "%zu %s: nrg run --baseline 5s would resolve them", f->rows,
                             rows);
    else
        nrg_attribution_note(a, what,
                             "%zu %s: neither a longer run nor a higher rate would resolve them; "
                             "the row around them may be",
                             f->rows, rows);
}

void nrg_note_remedies(struct nrg_attribution *a)
{
    struct found found[NRG_REMEDIES] = {0};
    for (size_t i = 0; i < a->n_rows; i++) {
        struct found *f = &found[a->rows[i].remedy.how];
        double times = a->rows[i].remedy.times;
        if (!(a->rows[i].flags & NRG_ROW_UNRESOLVED))
            continue;
        f->least = f->rows++ ? fmin(f->least, times) : times;
        f->most = fmax(f->most, times);
    }
    for (enum nrg_remedy_kind how = 0; how < NRG_REMEDIES; how++)
        note_remedy(a, how, &found[how]);
}
