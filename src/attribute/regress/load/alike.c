/*
 * Threads or processes that are always busy, each in one of many classes: two ranks of a training,
 * of which the faster spins until the other is done. All classes of one then have as much time in
 * every row as all of the other, so that one could draw any watts more, and the other as many less.
 * As a group (solve.c), hundreds of classes would share one number, although that is the only
 * thing that is not known of them.
 *
 * So where many classes depend on one another, or a few on each side that have the same time, both
 * sides are taken to draw the same in the mean: one row is added that says so. Powers are not
 * negative, which is how far it may be wrong: no further than until the least of the classes that
 * are well known draws nothing. That is in intervals with its sign, so that the sum of both sides
 * does not have it.
 */
#include <math.h>

#include "attribute/regress/internal.h"

#define MANY       16   /* classes: fewer are a group, unless they make two sides */
#define SIDE       2    /* classes: fewer are no side */
#define SAME       0.05 /* of what one side loses where the other gains: all classes do alike */
#define WELL_KNOWN 0.3  /* deviation / mean power */
#define LOOSE      1e-6 /* of the row, where powers are not negative: it gives way */
#define CHANGES    0.1  /* of the most watts: less is rounding in a short class */

/* How much watts of classes can change while rows stay as they are: 1 of column p, as much less of
 * those that explain it. Returns how many these are. */
static size_t find_change(const struct nrg_solver *s, size_t p, double *change)
{
    size_t n = 0;
    double most = 0, most_w = 0;
    nrg_gram_parts(s->factor, p, s->work);
    for (size_t q = 0; q < p; q++)
        most = fmax(most, fabs(s->work[q]));
    for (size_t q = 0; q < p; q++)
        if (fabs(s->work[q]) > NRG_GROUP_MEMBER * most)
            most_w = fmax(most_w, fabs(s->work[q]) * s->scale[q]);
    for (size_t q = 0; q < p; q++)
        if (fabs(s->work[q]) * s->scale[q] > CHANGES * most_w) {
            change[s->index[q]] = -s->work[q] * s->scale[q] / s->scale[p];
            n++;
        }
    change[s->index[p]] = 1;
    return n;
}

/* Two sides that are busy for the same time: what one second of a class of the one gains, one of
 * the other loses. Classes that always come in the same proportion are pairs. */
static bool has_two_sides(const struct nrg_solver *s, const double *change)
{
    size_t gain = 0, lose = 0;
    for (size_t p = 0; p < s->n_classes; p++) {
        double by = change[s->index[p]];
        if (by != 0 && fabs(fabs(by) - 1) > SAME)
            return false;
        gain += by > 0;
        lose += by < 0;
    }
    return gain >= SIDE && lose >= SIDE;
}

/* Watts of a CPU second of all classes. */
static double mean_power(const struct nrg_solver *s)
{
    const struct nrg_regress *r = s->r;
    double idle_w = isnan(r->options.idle_w) ? 0 : r->options.idle_w, time_s = 0;
    for (size_t p = 0; p < s->n_classes; p++)
        time_s += r->time_s[s->index[p]];
    return time_s > 0 ? fmax(r->sum_y - idle_w * r->sum_s, 0) / time_s : 0;
}

/* A column's part of a row that says: time * change * (power - mean power), in sum, is 0. */
static double of_row(const struct nrg_solver *s, size_t i, size_t p)
{
    return s->alike[i][s->index[p]] * s->r->time_s[s->index[p]];
}

static double row_sum(const struct nrg_solver *s, size_t i)
{
    double sum = 0;
    for (size_t p = 0; p < s->n_classes; p++)
        sum += of_row(s, i, p);
    return sum * mean_power(s);
}

static void add_row(struct nrg_solver *s, size_t i)
{
    double size = 0, y = row_sum(s, i);
    for (size_t p = 0; p < s->n_classes; p++)
        size += of_row(s, i, p) * of_row(s, i, p) * s->scale[p] * s->scale[p];
    double weight = s->alike_weight[i] = size > 0 ? 1 / size : 0;
    for (size_t p = 0; p < s->n_classes; p++) {
        double x = weight * of_row(s, i, p);
        s->sum.b[s->index[p]] += x * y;
        for (size_t q = 0; q <= p; q++)
            s->sum.a[nrg_packed(s->index[p], s->index[q])] += x * of_row(s, i, q);
    }
    s->sum.yy += weight * y * y;
}

void nrg_solver_loosen_alike(const struct nrg_solver *s, double *a, double *b)
{
    for (size_t i = 0; i < s->n_alike; i++) {
        double weight = (1 - LOOSE) * s->alike_weight[i], y = row_sum(s, i);
        for (size_t p = 0; p < s->n_classes; p++) {
            double x = weight * of_row(s, i, p) * s->scale[p];
            b[p] -= x * y;
            for (size_t q = 0; q <= p; q++)
                a[nrg_packed(p, q)] -= x * of_row(s, i, q) * s->scale[q];
        }
    }
}

bool nrg_solver_take_alike(struct nrg_solver *s)
{
    size_t before = s->n_alike;
    for (size_t p = 0; p < s->n_classes && s->n_alike < NRG_ALIKE; p++) {
        if (!s->dependent[p])
            continue;
        double *change = nrg_arena_array(&s->memory, s->sum.n, sizeof *change);
        if (!change)
            return false; /* the arena says it */
        if (find_change(s, p, change) >= MANY || has_two_sides(s, change))
            s->alike[s->n_alike++] = change;
    }
    for (size_t i = before; i < s->n_alike; i++)
        add_row(s, i);
    return s->n_alike > before;
}

/* Watts until a class that is well known has none, of those that lose by a change, and of those
 * that gain; and how far powers that are not negative moved: intervals are around those that may
 * be. */
struct room {
    double lose_w, gain_w, moved_w;
};

static struct room find_room(const struct nrg_solver *s, const double *change)
{
    double mean_w = mean_power(s), moved = 0, size = 0;
    struct room room = {INFINITY, INFINITY, 0};
    for (size_t p = 0; p < s->n_classes; p++) {
        double by = change[s->index[p]], w = s->beta[p] * s->scale[p];
        double off2 = s->left * s->inverse[nrg_packed(p, p)] * s->scale[p] * s->scale[p];
        if (by == 0 || off2 > WELL_KNOWN * WELL_KNOWN * mean_w * mean_w)
            continue;
        double *least_w = by < 0 ? &room.lose_w : &room.gain_w;
        *least_w = fmin(*least_w, w / fabs(by));
        double time_s = s->r->time_s[s->index[p]];
        moved += by * time_s * (w - s->free_beta[p] * s->scale[p]);
        size += by * by * time_s;
    }
    room.moved_w = size > 0 ? fabs(moved) / size : 0;
    room.lose_w = isfinite(room.lose_w) ? room.lose_w : mean_w;
    room.gain_w = isfinite(room.gain_w) ? room.gain_w : mean_w;
    return room;
}

/* One side may have all that the others can lose. */
void nrg_solver_limit_alike(struct nrg_solver *s)
{
    double sum_w = 0;
    for (size_t i = 0; i < s->n_alike; i++)
        sum_w += find_room(s, s->alike[i]).gain_w;
    for (size_t i = 0; i < s->n_alike; i++) {
        struct room room = find_room(s, s->alike[i]);
        s->alike_far[i] = fmax(room.gain_w, room.lose_w + sum_w - room.gain_w) + room.moved_w;
    }
}

double nrg_solver_alike_w(const struct nrg_solver *s, size_t i, size_t p)
{
    return i < s->n_alike ? s->alike_far[i] * s->alike[i][s->index[p]] : 0;
}
