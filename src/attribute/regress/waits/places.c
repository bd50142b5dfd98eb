/*
 * Where in its calls each class waits, beside what is common to all: early or late, and in the
 * middle (rows.h). As parts of the calls these are anything from -1 to 1. Mostly a program's
 * classes are alike, and columns that say so cost certainty: so how far they differ is found from
 * all of them together, and each is drawn to the others as far as that says. What a thread does
 * between its spans is not one of them.
 */
#include <math.h>

#include "attribute/regress/internal.h"

#define ANYWHERE 0.58 /* deviation of what may be anything from -1 to 1 */
#define ALIKE    0.02 /* the same of classes that are alike */
#define TURNS    4

static bool is_place(const struct nrg_solver *s, size_t column)
{
    return s->r->options.middle_of && column >= NRG_COLUMN_CLASSES &&
           nrg_regress_is_of_calls(s->r, column) && s->sum.a[nrg_packed(column, column)] > 0;
}

void nrg_solver_expect_places(struct nrg_solver *s)
{
    for (size_t i = NRG_COLUMN_CLASSES; i < s->sum.n; i++)
        if (is_place(s, i))
            s->sum.a[nrg_packed(i, i)] += 1 / (ANYWHERE * ANYWHERE);
}

/* How far classes differ, what is not known of each included. */
static double found_apart(const struct nrg_solver *s)
{
    double square = 0, n = 0;
    for (size_t p = s->n_bound; p < s->m; p++) {
        size_t i = s->index[p];
        if (!is_place(s, i) || s->r->class_of[i] == s->r->options.gap_class)
            continue;
        double off = s->free_beta[p];
        square += (off * off + s->left * s->inverse[nrg_packed(p, p)]) * s->scale[p] * s->scale[p];
        n++;
    }
    return n > 0 ? fmin(fmax(sqrt(square / n), ALIKE), ANYWHERE) : ANYWHERE;
}

int nrg_solver_join_places(struct nrg_solver *s, bool fit_idle)
{
    double before = ANYWHERE;
    int rc = 0;
    for (int turn = 0; !rc && s->r->options.middle_of && turn < TURNS; turn++) {
        double apart = found_apart(s);
        for (size_t i = NRG_COLUMN_CLASSES; i < s->sum.n; i++)
            if (is_place(s, i) && s->r->class_of[i] != s->r->options.gap_class)
                s->sum.a[nrg_packed(i, i)] += 1 / (apart * apart) - 1 / (before * before);
        before = apart;
        rc = nrg_solver_solve(s, fit_idle);
    }
    return rc;
}
