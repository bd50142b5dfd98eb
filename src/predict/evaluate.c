/*
 * See evaluate.h. Folds are made of whole models (or families of them): rows of a held-out model
 * are not used anywhere: not for coefficients, ranges or intervals.
 */
#include "predict/evaluate.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "predict/dataset/read.h"
#include "predict/kinds.h"
#include "predict/physical/interval.h"

#define SIZE_LIMIT   2048 /* batch x sequence */
#define APART_FACTOR 2.0  /* beyond others' sizes by more than this is out of range */
#define MOST_MODELS  500  /* folds: more would take hours and add nothing */

const char *const nrg_protocol_names[NRG_PROTOCOLS] = {
    "leave-one-model-out", "leave-one-family-out", "size-extrapolation"};

struct model_use {
    bool used;         /* takes part in the protocol */
    bool apart;        /* tested separately */
    bool held, tested; /* in the current fold; in any fold */
    const char *family;
    double operators, outside; /* with MACs; those outside of the other models' sizes */
};

struct run {
    const struct nrg_dataset *set;
    const struct nrg_predictor *predictor;
    const struct nrg_evaluate_options *options;
    struct nrg_evaluation *out;
    struct nrg_error *err;
    struct nrg_name_list models;
    struct model_use *of_model;
    bool *train, *test, *tested; /* per row; `train` owns the other two */
};

static int no_memory(struct run *r)
{
    return nrg_fail(r->err, -ENOMEM, NULL, "out of memory");
}

static void release_run(struct run *r)
{
    nrg_name_list_release(&r->models);
    free(r->of_model);
    free(r->train);
}

/* ---- models that are out of range, and families ---- */

/* MACs of a model's operators of one group. */
struct span {
    const char *group;
    uint32_t model;
    double low, high, total;
};

struct spans {
    struct span *items;
    size_t n, cap;
};

static int find_spans(const struct run *r, struct spans *spans)
{
    for (size_t i = 0; i < r->set->n; i++) {
        double macs = nrg_row_feature(r->set, i, NRG_F_MACS);
        const char *group = r->set->rows[i].kind;
        if (r->set->rows[i].level != NRG_NODE_OPERATOR || !(macs > 0))
            continue;
        size_t s = 0;
        while (s < spans->n && (spans->items[s].model != r->models.of_row[i] ||
                                strcmp(spans->items[s].group, group)))
            s++;
        if (s == spans->n && nrg_append(&spans->items, &spans->n, &spans->cap,
                                        &(struct span){group, r->models.of_row[i], macs, macs, 0},
                                        sizeof *spans->items))
            return -ENOMEM;
        struct span *span = &spans->items[s];
        span->low = fmin(span->low, macs);
        span->high = fmax(span->high, macs);
        span->total += macs * (double)r->set->rows[i].multiplicity;
    }
    return 0;
}

/* True when an operator's MACs are outside of all other models' operators of its group. */
static bool is_outside_others(const struct run *r, const struct spans *spans, size_t row)
{
    const char *group = nrg_kind_group(r->set->rows[row].kind);
    double low = INFINITY, high = -INFINITY, macs = nrg_row_feature(r->set, row, NRG_F_MACS);
    for (size_t s = 0; s < spans->n; s++) {
        const struct span *span = &spans->items[s];
        if (span->model == r->models.of_row[row] || !r->of_model[span->model].used ||
            strcmp(nrg_kind_group(span->group), group))
            continue;
        low = fmin(low, span->low);
        high = fmax(high, span->high);
    }
    return high > 0 && (macs < low / APART_FACTOR || macs > high * APART_FACTOR);
}

/* Marks models that are out of range, unless that would be a third of the models or more. */
static void find_apart(struct run *r, const struct spans *spans)
{
    size_t n = 0, used = 0;
    for (size_t i = 0; i < r->set->n; i++) {
        const struct nrg_row *row = &r->set->rows[i];
        if (row->level != NRG_NODE_OPERATOR || !(nrg_row_feature(r->set, i, NRG_F_MACS) > 0))
            continue;
        double weight = (double)row->multiplicity;
        struct model_use *model = &r->of_model[r->models.of_row[i]];
        model->operators += weight;
        model->outside += is_outside_others(r, spans, i) ? weight : 0;
    }
    for (struct model_use *m = r->of_model; m < r->of_model + r->models.n; m++) {
        m->apart = m->used && m->outside > 0.5 * m->operators;
        n += m->apart;
        used += m->used;
    }
    for (struct model_use *m = r->of_model; m < r->of_model + r->models.n; m++) {
        m->apart &= 3 * n < used;
        m->used &= !m->apart;
    }
}

/* Puts the models of "NAME=MODEL,MODEL" into that family; each must be in the data. */
static int name_family(struct run *r, const char *family)
{
    const char *p = strchr(family, '=');
    char name[200];
    if (!p)
        return nrg_fail(r->err, -EINVAL, "--family", "wants NAME=MODEL,MODEL, not '%s'", family);
    while (*p) {
        size_t len = strcspn(++p, ",");
        nrg_copy_clean(name, sizeof name, p, len);
        const char *model = nrg_dataset_model(r->set, name);
        if (!model)
            return nrg_fail(r->err, -EINVAL, "--family", "no model of the data is called '%s'",
                            name);
        for (size_t m = 0; m < r->models.n; m++)
            if (r->models.names[m] == model)
                r->of_model[m].family = family;
        p += len;
    }
    return 0;
}

/* By the user's lists, else by the kind of operator that does most of the work. */
static int find_families(struct run *r, const struct spans *spans)
{
    for (size_t m = 0; m < r->models.n; m++) {
        double most = 0;
        r->of_model[m].family = "";
        for (size_t s = 0; s < spans->n; s++) {
            if (spans->items[s].model != m || spans->items[s].total <= most)
                continue;
            most = spans->items[s].total;
            r->of_model[m].family = spans->items[s].group;
        }
    }
    const char *const *families = r->options->families;
    int rc = 0;
    for (size_t f = 0; !rc && families && families[f]; f++)
        rc = name_family(r, families[f]);
    return rc;
}

static int sort_models(struct run *r)
{
    struct spans spans = {0};
    for (size_t m = 0; m < r->models.n; m++)
        r->of_model[m].used = true;
    int rc = find_spans(r, &spans) ? no_memory(r) : 0;
    if (!rc && !r->options->all_models)
        find_apart(r, &spans);
    if (!rc)
        rc = find_families(r, &spans);
    free(spans.items);
    return rc;
}

/* ---- folds ---- */

/* Trains on `train`, predicts `test`. Without rows of both there is no fold. */
static int run_fold(struct run *r, const char *name)
{
    const struct nrg_predictor *p = r->predictor;
    struct nrg_evaluation *out = r->out;
    struct nrg_fold_name fold = {.name = name};
    for (size_t i = 0; i < r->set->n; i++) {
        bool once = r->set->rows[i].measurement == i;
        fold.train_rows += r->train[i] && once;
        fold.test_rows += r->test[i] && once;
    }
    if ((!fold.train_rows && !r->options->trained) || !fold.test_rows)
        return 0;
    if (nrg_append(&out->folds, &out->n_folds, &out->cap_folds, &fold, sizeof fold))
        return no_memory(r);
    int rc = p->train(p->state, r->set, r->train, r->err);
    for (size_t i = 0; !rc && i < r->set->n; i++) {
        if (!r->test[i])
            continue;
        p->predict(p->state, r->set, i, &out->estimates[i]);
        r->tested[i] = true;
    }
    p->forget(p->state);
    return rc;
}

/* Which rows train and test in the current fold. */
static void split_rows(struct run *r)
{
    bool by_size = r->options->protocol == NRG_SIZE_EXTRAPOLATION;
    double limit = r->options->largest_size > 0 ? r->options->largest_size : SIZE_LIMIT;
    for (size_t i = 0; i < r->set->n; i++) {
        const struct model_use *model = &r->of_model[r->models.of_row[i]];
        bool large = by_size && !(nrg_row_size(r->set, i) <= limit);
        r->train[i] = model->used && !model->held && !large;
        r->test[i] = model->used && model->held && (!by_size || large);
    }
}

/* A predictor that is trained already is tested on everything. */
static int run_all(struct run *r)
{
    for (size_t i = 0; i < r->set->n; i++)
        r->test[i] = r->of_model[r->models.of_row[i]].used;
    return run_fold(r, "");
}

static int run_folds(struct run *r)
{
    bool by_family = r->options->protocol == NRG_LEAVE_ONE_FAMILY_OUT;
    struct model_use *all = r->of_model;
    int rc = 0;
    for (size_t m = 0; !rc && m < r->models.n; m++) {
        if (!all[m].used || all[m].tested)
            continue;
        for (size_t o = 0; o < r->models.n; o++) {
            all[o].held = o == m || (by_family && !strcmp(all[o].family, all[m].family));
            all[o].tested |= all[o].held;
        }
        split_rows(r);
        rc = run_fold(r, by_family ? all[m].family : r->models.names[m]);
    }
    if (!rc && !r->out->n_folds)
        rc = nrg_fail(r->err, -ENODATA, NULL, "%s needs two models or more with rows on both sides",
                      nrg_protocol_names[r->options->protocol]);
    return rc;
}

/* Tests the models that were set apart, trained on all others. */
static int run_apart(struct run *r)
{
    struct nrg_evaluation *out = r->out;
    size_t folds = out->n_folds;
    for (size_t m = 0; m < r->models.n; m++)
        if (r->of_model[m].apart && nrg_append(&out->apart_models, &out->n_apart, &out->cap_apart,
                                               &r->models.names[m], sizeof *out->apart_models))
            return no_memory(r);
    if (!out->n_apart)
        return 0;
    for (size_t i = 0; i < r->set->n; i++) {
        r->tested[i] = false;
        r->train[i] = r->of_model[r->models.of_row[i]].used;
        r->test[i] = r->of_model[r->models.of_row[i]].apart;
    }
    int rc = run_fold(r, "apart");
    out->n_folds = folds;
    if (!rc && nrg_score_levels(out->apart, r->set, out->estimates, r->tested))
        rc = no_memory(r);
    return rc;
}

static int init_run(struct run *r)
{
    size_t n = r->set->n + 1;
    if (nrg_dataset_list(r->set, offsetof(struct nrg_row, model), &r->models))
        return no_memory(r);
    if (r->models.n > MOST_MODELS)
        return nrg_fail(r->err, -EFBIG, NULL,
                        "holds %zu models: at most %d can be held out in turn", r->models.n,
                        MOST_MODELS);
    r->of_model = nrg_calloc(r->models.n + 1, sizeof *r->of_model);
    r->train = nrg_calloc(3 * n, sizeof *r->train);
    r->out->estimates = nrg_calloc(n, sizeof *r->out->estimates);
    if (!r->of_model || !r->train || !r->out->estimates)
        return no_memory(r);
    r->test = r->train + n;
    r->tested = r->test + n;
    for (size_t i = 0; i < n; i++)
        r->out->estimates[i].energy_j = NAN;
    return sort_models(r);
}

int nrg_evaluate(struct nrg_evaluation *out, const struct nrg_dataset *set,
                 const struct nrg_predictor *predictor, const struct nrg_evaluate_options *options,
                 struct nrg_error *err)
{
    struct run r = {.set = set, .predictor = predictor, .options = options, .out = out, .err = err};
    *out = (struct nrg_evaluation){0};
    int rc = init_run(&r);
    if (!rc)
        rc = options->trained ? run_all(&r) : run_folds(&r);
    if (!rc && nrg_score_levels(out->levels, set, out->estimates, r.tested))
        rc = no_memory(&r);
    if (!rc)
        rc = run_apart(&r);
    release_run(&r);
    if (rc)
        nrg_evaluation_release(out);
    return rc;
}

void nrg_evaluation_release(struct nrg_evaluation *e)
{
    for (int l = 0; l < NRG_NODE_LEVELS; l++) {
        nrg_level_scores_release(&e->levels[l]);
        nrg_level_scores_release(&e->apart[l]);
    }
    free(e->folds);
    free(e->apart_models);
    free(e->estimates);
    *e = (struct nrg_evaluation){0};
}

/* ---- the physical model ---- */

static int physical_train(void *state, const struct nrg_dataset *set, const bool *mask,
                          struct nrg_error *err)
{
    struct nrg_physical_state *s = state;
    return nrg_physical_train(&s->model, set, mask, s->features, s->confidence, err);
}

static void physical_forget(void *state)
{
    nrg_physical_release(&((struct nrg_physical_state *)state)->model);
}

static void physical_predict(void *state, const struct nrg_dataset *set, size_t row,
                             struct nrg_estimate *out)
{
    if (nrg_physical_row(&((const struct nrg_physical_state *)state)->model, set, row, out))
        out->energy_j = NAN;
}

struct nrg_predictor nrg_physical_predictor(struct nrg_physical_state *state)
{
    return (struct nrg_predictor){"physical", physical_train, physical_forget, physical_predict,
                                  state};
}
