/* See streams.h. The number is sought by parabolas through the three best trials. */
#include "attribute/regress/load/streams.h"

#include <errno.h>
#include <math.h>

#define MOST_TRIALS 7
#define SAME_NUMBER 0.005
#define SIGMAS      2.0

struct trial {
    double adds;
    double left; /* unexplained: rows times the logarithm of its square */
    struct nrg_regress_result result;
    struct nrg_updates_found updates;
};

struct search {
    struct nrg_engine *e;
    struct nrg_part *part;
    const struct nrg_slicer *slicer;
    struct trial trials[MOST_TRIALS]; /* the best one first */
    size_t n;
    double rows;
    double step; /* the last one, from the best trial so far */
};

/* A parabola through the three best trials. */
struct parabola {
    double at;   /* its minimum between 0 and 1 */
    double bend; /* (y - least y) / (x - at)^2 */
};

static double square_of(const struct trial *t)
{
    return t->result.residual * t->result.residual;
}

static struct parabola through(const struct trial *t)
{
    double x0 = t[0].adds, x1 = t[1].adds, x2 = t[2].adds;
    double y0 = square_of(&t[0]), y1 = square_of(&t[1]), y2 = square_of(&t[2]);
    double slope1 = (y1 - y0) / (x1 - x0), slope2 = (y2 - y0) / (x2 - x0);
    double bend = (slope2 - slope1) / (x2 - x1);
    double at = bend > 0 ? (x0 + x1 - slope1 / bend) / 2 : x0;
    return (struct parabola){fmin(fmax(at, 0), 1), bend};
}

/* Puts a trial where it belongs. */
static void add_trial(struct search *s, struct trial trial)
{
    size_t i = s->n++;
    trial.left = 2 * s->rows * log(trial.result.residual);
    for (; i > 0 && s->trials[i - 1].left > trial.left; i--)
        s->trials[i] = s->trials[i - 1];
    s->trials[i] = trial;
}

/* 0, or -errno: also where there is nothing to compare with. */
static int try_number(struct search *s, double adds)
{
    struct nrg_class_split split = {
        .adds = adds, .n_whole = s->e->n_classes, .n_classes = s->e->n_classes};
    struct trial trial = {.adds = adds};
    int rc = nrg_regress_classes(s->e, s->part, s->slicer, &split, &trial.result, &trial.updates);
    if (!rc && !isfinite(nrg_split_gain(&s->trials[0].result, &trial.result)))
        rc = -ENODATA;
    if (rc)
        nrg_regress_result_release(&trial.result);
    else
        add_trial(s, trial);
    return rc;
}

static bool was_tried(const struct search *s, double adds)
{
    for (size_t i = 0; i < s->n; i++)
        if (fabs(s->trials[i].adds - adds) < SAME_NUMBER)
            return true;
    return false;
}

static int search(struct search *s)
{
    int rc = try_number(s, 1);
    if (!rc && !s->trials[0].result.only_rounding)
        rc = try_number(s, 0.5);
    while (!rc && s->n > 2 && s->n < MOST_TRIALS) {
        double next = through(s->trials).at;
        s->step = fabs(next - s->trials[0].adds);
        if (was_tried(s, next))
            break;
        rc = try_number(s, next);
    }
    return rc == -ENODATA || rc == -EDOM ? 0 : rc;
}

/* The best trial, or the better one of the ends where that is hardly worse. */
static size_t choose(const struct search *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->trials[i].adds == 0 || s->trials[i].adds == 1)
            return s->trials[i].left - s->trials[0].left <= log(s->rows) ? i : 0;
    return 0;
}

/* How far the number may be from the one that was taken. */
static double doubt_of(const struct search *s, const struct trial *taken)
{
    if (s->n < 3)
        return 0; /* nothing but rounding was left */
    struct parabola p = through(s->trials);
    double unit = square_of(&s->trials[0]) / s->rows; /* by which squares rise for one deviation */
    double sigma = p.bend > 0 ? fmin(sqrt(unit / p.bend), 1) : 1;
    bool end = taken->adds == 0 || taken->adds == 1;
    double coarse = end ? s->step : fmax(s->step, SAME_NUMBER); /* of the search */
    return fabs(taken->adds - p.at) + SIGMAS * sigma + coarse;
}

static size_t nearest_to(const struct search *s, size_t taken)
{
    size_t near = taken ? 0 : 1;
    for (size_t i = 0; i < s->n; i++)
        if (i != taken && fabs(s->trials[i].adds - s->trials[taken].adds) <
                              fabs(s->trials[near].adds - s->trials[taken].adds))
            near = i;
    return near;
}

int nrg_streams_find(struct nrg_streams *b, struct nrg_engine *e, struct nrg_part *part,
                     const struct nrg_slicer *slicer)
{
    if (!nrg_split_overlaps(e, &slicer->log, (uint32_t)part->pool))
        return 0;
    struct search s = {
        .e = e, .part = part, .slicer = slicer, .rows = (double)part->regressed.intervals};
    add_trial(&s, (struct trial){.result = part->regressed, .updates = part->out->updates});
    int rc = search(&s);
    size_t taken = choose(&s), near = s.n > 1 ? nearest_to(&s, taken) : taken;
    part->regressed = s.trials[taken].result;
    part->out->updates = s.trials[taken].updates;
    part->adds = b->adds = s.trials[taken].adds;
    b->off = doubt_of(&s, &s.trials[taken]);
    for (size_t i = 0; i < s.n; i++)
        if (i == near && near != taken) {
            b->near = s.trials[i].adds;
            b->nearest = s.trials[i].result;
        } else if (i != taken) {
            nrg_regress_result_release(&s.trials[i].result);
        }
    return rc;
}

void nrg_streams_widen(const struct nrg_streams *b, const struct nrg_engine *e,
                       struct nrg_regress_result *r)
{
    for (size_t c = 0; b->nearest.classes && c < e->class_of[0]; c++) {
        struct nrg_regress_class *to = &r->classes[c];
        const struct nrg_regress_class *near = &b->nearest.classes[c];
        if (isnan(to->power_w) || isnan(near->power_w) || !(to->time_s > 0))
            continue;
        double apart_w = fabs(near->power_w * near->time_s / to->time_s - to->power_w);
        double off_w = apart_w * b->off / fabs(b->near - b->adds);
        to->low_w = fmax(to->low_w - off_w, 0);
        to->high_w += off_w;
        to->unresolved = !(to->high_w - to->low_w <= to->power_w);
    }
}

void nrg_streams_release(struct nrg_streams *b)
{
    nrg_regress_result_release(&b->nearest);
}
