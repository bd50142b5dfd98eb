/*
 * See score.h. A sum per name is kept and turned into means at the end. Names are compared by their
 * pointer, because data sets intern them.
 */
#include "predict/score.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/stats.h"

struct list {
    struct nrg_score *items;
    size_t n, cap;
};

static struct nrg_score *score_of(struct list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->items[i].name == name)
            return &list->items[i];
    if (nrg_reserve(&list->items, &list->cap, list->n + 1, sizeof *list->items))
        return NULL;
    list->items[list->n] = (struct nrg_score){.name = name};
    return &list->items[list->n++];
}

static void add_error(struct nrg_score *s, const struct nrg_dataset *set, size_t row,
                      const struct nrg_estimate *e)
{
    const struct nrg_row *r = &set->rows[row];
    double error = 100 * fabs(e->energy_j - r->energy_j) / r->energy_j;
    double weight = (double)r->multiplicity;
    bool inside = r->energy_j >= e->low_j && r->energy_j <= e->high_j;
    if (isnan(e->energy_j)) {
        s->unpredicted++;
        return;
    }
    s->rows += weight;
    s->error += weight * error;
    s->worst = fmax(s->worst, error);
    s->covered += isnan(e->low_j) ? NAN : weight * inside;
    s->width += weight * 100 * (e->high_j - e->low_j) / r->energy_j;
    if (r->measurement != row)
        return;
    s->distinct++;
    s->distinct_error += error;
    s->distinct_covered += isnan(e->low_j) ? NAN : inside;
}

static void make_means(struct nrg_score *s)
{
    double distinct = (double)s->distinct;
    s->error = s->rows > 0 ? s->error / s->rows : NAN;
    s->covered = s->rows > 0 ? 100 * s->covered / s->rows : NAN;
    s->width = s->rows > 0 ? s->width / s->rows : NAN;
    s->distinct_error = distinct > 0 ? s->distinct_error / distinct : NAN;
    s->distinct_covered = distinct > 0 ? 100 * s->distinct_covered / distinct : NAN;
    s->macro = s->error;
}

/* What medians are taken of; `errors` is room for two of each row. */
struct measured {
    const struct nrg_dataset *set;
    const struct nrg_estimate *estimates;
    const bool *which;
    enum nrg_node_level level;
    double *errors;
};

/* Of the distinct rows of a model and a kind (NULL: of any), into the score's medians. */
static void set_medians(const struct measured *m, const char *model, const char *kind,
                        struct nrg_score *s)
{
    size_t n = 0;
    double *halves = m->errors + m->set->n;
    for (size_t i = 0; i < m->set->n; i++) {
        const struct nrg_row *r = &m->set->rows[i];
        const struct nrg_estimate *e = &m->estimates[i];
        if (!m->which[i] || r->level != m->level || r->measurement != i || isnan(e->energy_j) ||
            (model && r->model != model) || (kind && r->kind != kind))
            continue;
        m->errors[n] = 100 * fabs(e->energy_j - r->energy_j) / r->energy_j;
        halves[n++] = 50 * (e->high_j - e->low_j) / e->energy_j;
    }
    bool whole = true;
    for (size_t i = 0; i < n; i++)
        whole &= isfinite(halves[i]);
    s->median = nrg_median(m->errors, n);
    s->median_half = whole ? nrg_median(halves, n) : NAN;
}

static int score_level(struct nrg_level_scores *out, const struct nrg_dataset *set,
                       const struct nrg_estimate *estimates, const bool *which,
                       enum nrg_node_level level)
{
    struct list models = {0}, kinds = {0};
    for (size_t i = 0; i < set->n; i++) {
        if (!which[i] || set->rows[i].level != level)
            continue;
        struct nrg_score *model = score_of(&models, set->rows[i].model);
        struct nrg_score *kind = score_of(&kinds, set->rows[i].kind);
        if (!model || !kind) {
            free(models.items);
            free(kinds.items);
            return -ENOMEM;
        }
        add_error(&out->all, set, i, &estimates[i]);
        add_error(model, set, i, &estimates[i]);
        add_error(kind, set, i, &estimates[i]);
    }
    double sum = 0, tested = 0, *errors = nrg_calloc(2 * set->n + 1, sizeof *errors);
    if (!errors) {
        free(models.items);
        free(kinds.items);
        return -ENOMEM;
    }
    const struct measured rows = {set, estimates, which, level, errors};
    for (size_t i = 0; i < models.n; i++)
        set_medians(&rows, models.items[i].name, NULL, &models.items[i]);
    for (size_t i = 0; i < kinds.n; i++)
        set_medians(&rows, NULL, kinds.items[i].name, &kinds.items[i]);
    set_medians(&rows, NULL, NULL, &out->all);
    free(errors);
    for (size_t i = 0; i < models.n; i++) {
        make_means(&models.items[i]);
        if (!isnan(models.items[i].error)) {
            sum += models.items[i].error;
            tested++;
        }
    }
    for (size_t i = 0; i < kinds.n; i++)
        make_means(&kinds.items[i]);
    make_means(&out->all);
    out->all.macro = tested > 0 ? sum / tested : NAN;
    out->by_model = models.items;
    out->n_models = models.n;
    out->by_kind = kinds.items;
    out->n_kinds = kinds.n;
    return 0;
}

int nrg_score_where(struct nrg_score *out, const char *name, const struct nrg_dataset *set,
                    const struct nrg_estimate *estimates,
                    bool (*test)(const struct nrg_dataset *set, size_t row, const void *arg),
                    const void *arg)
{
    bool *which = nrg_calloc(set->n + 1, sizeof *which);
    double *errors = nrg_calloc(2 * set->n + 1, sizeof *errors);
    *out = (struct nrg_score){.name = name};
    for (size_t i = 0; which && errors && i < set->n; i++) {
        which[i] = set->rows[i].level == NRG_NODE_MODEL && !isnan(estimates[i].energy_j) &&
                   test(set, i, arg);
        if (which[i])
            add_error(out, set, i, &estimates[i]);
    }
    int rc = which && errors ? 0 : -ENOMEM;
    if (!rc)
        set_medians(&(struct measured){set, estimates, which, NRG_NODE_MODEL, errors}, NULL, NULL,
                    out);
    make_means(out);
    free(which);
    free(errors);
    return rc;
}

int nrg_score_levels(struct nrg_level_scores out[NRG_NODE_LEVELS], const struct nrg_dataset *set,
                     const struct nrg_estimate *estimates, const bool *which)
{
    int rc = 0;
    for (int l = 0; !rc && l < NRG_NODE_LEVELS; l++)
        rc = score_level(&out[l], set, estimates, which, (enum nrg_node_level)l);
    return rc;
}

void nrg_level_scores_release(struct nrg_level_scores *scores)
{
    free(scores->by_model);
    free(scores->by_kind);
}
