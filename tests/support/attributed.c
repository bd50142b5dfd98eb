/* See attributed.h. */
#include "support/cmocka.h"

#include "support/attributed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct nrg_attribution_options plain = {
    .method = NRG_METHOD_INTEGRATE, .idle = NRG_IDLE_NONE, .idle_w = NAN};

void close_to(double value, double expected, double off, const char *what)
{
    if (!(fabs(value - expected) <= off))
        fail_msg("%s: %.9g, not %.9g", what, value, expected);
}

/* What holds for every attribution that is not flat. */
static void check_laws(const struct nrg_attribution *a, bool tree)
{
    double *children = calloc(a->n_rows + 1, sizeof *children);
    double self = 0, tiny = 1e-9 * (fabs(a->total_j) + 1);
    for (size_t i = 0; i < a->n_rows; i++) {
        const struct nrg_attribution_row *row = &a->rows[i];
        self += isnan(row->energy_self_j) ? 0 : row->energy_self_j;
        if (row->parent != SIZE_MAX) {
            assert_true(row->parent < i);
            assert_int_equal(row->depth, a->rows[row->parent].depth + 1);
            children[row->parent] += isnan(row->energy_j) ? 0 : row->energy_j;
        } else {
            assert_int_equal(row->depth, 0);
        }
        if (!isnan(row->energy_j)) {
            assert_true(row->low_j <= row->energy_j + tiny && row->energy_j <= row->high_j + tiny);
            assert_true(row->high_j - row->low_j <= row->energy_j + tiny ||
                        row->flags & NRG_ROW_UNRESOLVED);
        }
        double sum = 0;
        for (size_t p = 0; p < a->n_domains; p++)
            sum += row->domain_j[p];
        if (!isnan(row->energy_j))
            close_to(sum, row->energy_j, tiny, "domains of a row");
    }
    for (size_t i = 0; tree && i < a->n_rows; i++) {
        double own = a->rows[i].energy_self_j;
        if (!isnan(a->rows[i].energy_j))
            close_to(a->rows[i].energy_j, (isnan(own) ? 0 : own) + children[i], tiny, "inclusive");
    }
    if (a->n_domains)
        close_to(self + a->unattributed_j + a->idle_j + a->other_processes_j, a->total_j, tiny,
                 "conservation");
    free(children);
}

void attribute(struct made *m, const struct nrg_attribution_options *o, struct nrg_attribution *a)
{
    struct nrg_error err = {0};
    if (!m->recording)
        made_open(m);
    int rc = nrg_attribution_make(a, m->recording, o, &err);
    if (rc)
        fail_msg("%s: %s", err.where, err.what);
    check_laws(a, o->by != NRG_BY_NAME);
}

const struct nrg_attribution_row *row(const struct nrg_attribution *a, const char *name)
{
    const struct nrg_attribution_row *found = NULL;
    for (size_t i = 0; i < a->n_rows; i++)
        if (!strcmp(a->rows[i].name, name)) {
            assert_null(found);
            found = &a->rows[i];
        }
    if (!found)
        fail_msg("no row '%s'", name);
    return found;
}
