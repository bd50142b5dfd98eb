/*
 * See evaluate.h. Folds are made of whole models (or families of them): rows of a held-out model
 * are used nowhere, neither for coefficients nor for ranges nor for intervals.
 */
#include "predict/evaluate.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "predict/kinds.h"

#define SIZE_LIMIT   2048 /* batch x sequence */
#define APART_FACTOR 2.0  /* beyond others' sizes by more than this is out of range */
#define MOST_MODELS  500  /* folds: more would take hours without saying more */

const char *const nrg_protocol_names[NRG_PROTOCOLS] = {
    "leave-one-model-out", "leave-one-family-out", "size-extrapolation"};

struct run {
    const struct nrg_dataset *set;
    const struct nrg_predictor *predictor;
    const struct nrg_evaluate_options *options;
    struct nrg_evaluation *out;
    struct nrg_error *err;
    struct nrg_name_list models;
    bool *used;          /* per model: takes part in the protocol */
    bool *apart;         /* per model: tested apart */
    const char **family; /* per model */
    bool *train, *test, *tested;
    struct nrg_estimate *fold; /* one per row */
};

static int no_memory(struct run *r)
{
    return nrg_fail(r->err, -ENOMEM, NULL, "out of memory");
}

static void release(struct run *r)
{
    nrg_name_list_release(&r->models);
    free(r->used);
    free(r->apart);
    free(r->family);
    free(r->train);
    free(r->test);
    free(r->tested);
    free(r->fold);
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
        if (s == spans->n) {
            if (nrg_reserve(&spans->items, &spans->cap, s + 1, sizeof *spans->items))
                return -ENOMEM;
            spans->items[spans->n++] = (struct span){group, r->models.of_row[i], macs, macs, 0};
        }
        struct span *span = &spans->items[s];
        span->low = fmin(span->low, macs);
        span->high = fmax(span->high, macs);
        span->total += macs * (double)r->set->rows[i].multiplicity;
    }
    return 0;
}

/* True when an operator's MACs are outside of all other models' operators of its group. */
static bool outside(const struct run *r, const struct spans *spans, size_t row)
{
    const char *group = nrg_kind_group(r->set->rows[row].kind);
    double low = INFINITY, high = -INFINITY, macs = nrg_row_feature(r->set, row, NRG_F_MACS);
    for (size_t s = 0; s < spans->n; s++) {
        const struct span *span = &spans->items[s];
        if (span->model == r->models.of_row[row] || !r->used[span->model] ||
            strcmp(nrg_kind_group(span->group), group))
            continue;
        low = fmin(low, span->low);
        high = fmax(high, span->high);
    }
    return high > 0 && (macs < low / APART_FACTOR || macs > high * APART_FACTOR);
}

/* Sets apart what is out of range, unless that would be a third of the models or more. */
static int find_apart(struct run *r, const struct spans *spans)
{
    double *share = calloc(2 * r->models.n + 1, sizeof *share);
    size_t n = 0, used = 0;
    if (!share)
        return no_memory(r);
    for (size_t i = 0; i < r->set->n; i++) {
        const struct nrg_row *row = &r->set->rows[i];
        if (row->level != NRG_NODE_OPERATOR || !(nrg_row_feature(r->set, i, NRG_F_MACS) > 0))
            continue;
        double weight = (double)row->multiplicity;
        share[2 * r->models.of_row[i]] += weight;
        share[2 * r->models.of_row[i] + 1] += outside(r, spans, i) ? weight : 0;
    }
    for (size_t m = 0; m < r->models.n; m++) {
        r->apart[m] = r->used[m] && share[2 * m + 1] > 0.5 * share[2 * m];
        n += r->apart[m];
        used += r->used[m];
    }
    for (size_t m = 0; m < r->models.n; m++) {
        r->apart[m] &= 3 * n < used;
        r->used[m] &= !r->apart[m];
    }
    free(share);
    return 0;
}

static bool listed(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *p = list; p; p = strchr(p, ',')) {
        p += *p == ',';
        if (!strncmp(p, name, len) && (!p[len] || p[len] == ','))
            return true;
    }
    return false;
}

/* By the user's lists, else by the kind of operator that does most of the work. */
static int find_families(struct run *r, const struct spans *spans)
{
    for (size_t m = 0; m < r->models.n; m++) {
        double most = 0;
        r->family[m] = "";
        for (size_t s = 0; s < spans->n; s++) {
            if (spans->items[s].model != m || spans->items[s].total <= most)
                continue;
            most = spans->items[s].total;
            r->family[m] = spans->items[s].group;
        }
        const char *const *families = r->options->families;
        for (size_t f = 0; families && families[f]; f++) {
            const char *equals = strchr(families[f], '=');
            if (!equals)
                return nrg_fail(r->err, -EINVAL, "--family", "wants NAME=MODEL,MODEL, not '%s'",
                                families[f]);
            if (listed(equals + 1, r->models.names[m]))
                r->family[m] = families[f];
        }
    }
    return 0;
}

static bool excluded(const struct run *r, const char *model)
{
    const char *const *names = r->options->exclude;
    for (size_t i = 0; names && names[i]; i++)
        if (!strcmp(names[i], model))
            return true;
    return false;
}

static int sort_models(struct run *r)
{
    struct spans spans = {0};
    for (size_t m = 0; m < r->models.n; m++)
        r->used[m] = !excluded(r, r->models.names[m]);
    int rc = find_spans(r, &spans) ? no_memory(r) : 0;
    if (!rc && !r->options->all_models)
        rc = find_apart(r, &spans);
    if (!rc)
        rc = find_families(r, &spans);
    free(spans.items);
    return rc;
}

/* ---- folds ---- */

static double size_of(const struct nrg_dataset *set, size_t row)
{
    double batch = nrg_row_feature(set, row, NRG_F_BATCH),
           seq = nrg_row_feature(set, row, NRG_F_SEQ);
    return batch * (isnan(seq) ? 1 : seq);
}

static int name_fold(struct run *r, const char *name)
{
    struct nrg_evaluation *out = r->out;
    if (nrg_reserve(&out->folds, &out->cap_folds, out->n_folds + 1, sizeof *out->folds))
        return no_memory(r);
    struct nrg_fold_name *fold = &out->folds[out->n_folds++];
    *fold = (struct nrg_fold_name){.name = name};
    for (size_t i = 0; i < r->set->n; i++) {
        bool once = r->set->rows[i].measurement == i;
        fold->train_rows += r->train[i] && once;
        fold->test_rows += r->test[i] && once;
    }
    return 0;
}

/* Trains on `train`, predicts `test`. A fold without one of them is no fold. */
static int run_fold(struct run *r, const char *name)
{
    const struct nrg_predictor *p = r->predictor;
    int rc = name_fold(r, name);
    const struct nrg_fold_name *fold = rc ? NULL : &r->out->folds[r->out->n_folds - 1];
    if (!rc && (!fold->train_rows || !fold->test_rows)) {
        r->out->n_folds--;
        return 0;
    }
    if (!rc)
        rc = p->train(p->state, r->set, r->train, r->err);
    for (size_t i = 0; i < r->set->n; i++)
        r->fold[i] = (struct nrg_estimate){.energy_j = NAN, .low_j = NAN, .high_j = NAN};
    if (!rc)
        rc = p->predict(p->state, r->set, r->test, r->fold, r->err);
    for (size_t i = 0; !rc && i < r->set->n; i++) {
        if (!r->test[i])
            continue;
        r->out->estimates[i] = r->fold[i];
        r->tested[i] = true;
    }
    p->forget(p->state);
    return rc;
}

/* Which rows train and test when the models for which `held` is true are held out. */
static void cut(struct run *r, const bool *held)
{
    bool by_size = r->options->protocol == NRG_SIZE_EXTRAPOLATION;
    double limit = r->options->largest_size > 0 ? r->options->largest_size : SIZE_LIMIT;
    for (size_t i = 0; i < r->set->n; i++) {
        uint32_t model = r->models.of_row[i];
        bool large = by_size && !(size_of(r->set, i) <= limit);
        r->train[i] = r->used[model] && !held[model] && !large;
        r->test[i] = r->used[model] && held[model] && (!by_size || large);
    }
}

static int run_folds(struct run *r)
{
    bool by_family = r->options->protocol == NRG_LEAVE_ONE_FAMILY_OUT;
    bool *held = calloc(r->models.n + 1, sizeof *held),
         *done = calloc(r->models.n + 1, sizeof *done);
    int rc = held && done ? 0 : no_memory(r);
    for (size_t m = 0; !rc && m < r->models.n; m++) {
        if (!r->used[m] || done[m])
            continue;
        for (size_t o = 0; o < r->models.n; o++) {
            held[o] = o == m || (by_family && !strcmp(r->family[o], r->family[m]));
            done[o] |= held[o];
        }
        cut(r, held);
        rc = run_fold(r, by_family ? r->family[m] : r->models.names[m]);
    }
    free(held);
    free(done);
    if (!rc && !r->out->n_folds)
        rc = nrg_fail(r->err, -ENODATA, NULL, "%s needs two models or more with rows on both sides",
                      nrg_protocol_names[r->options->protocol]);
    return rc;
}

/* The models set apart, by a model of all others. */
static int run_apart(struct run *r)
{
    struct nrg_evaluation *out = r->out;
    size_t folds = out->n_folds;
    int rc = 0;
    for (size_t m = 0; !rc && m < r->models.n; m++) {
        if (!r->apart[m])
            continue;
        if (nrg_reserve(&out->apart_models, &out->cap_apart, out->n_apart + 1,
                        sizeof *out->apart_models))
            return no_memory(r);
        out->apart_models[out->n_apart++] = r->models.names[m];
    }
    if (!out->n_apart)
        return 0;
    for (size_t i = 0; i < r->set->n; i++) {
        r->tested[i] = false;
        r->train[i] = r->used[r->models.of_row[i]];
        r->test[i] = r->apart[r->models.of_row[i]];
    }
    rc = run_fold(r, "apart");
    out->n_folds = folds;
    for (int l = 0; !rc && l < NRG_NODE_LEVELS; l++)
        rc = nrg_score_level(&out->apart[l], r->set, out->estimates, r->tested,
                             (enum nrg_node_level)l)
                 ? no_memory(r)
                 : 0;
    return rc;
}

static int prepare(struct run *r)
{
    size_t n = r->set->n + 1;
    if (nrg_dataset_list(r->set, offsetof(struct nrg_row, model), &r->models))
        return no_memory(r);
    if (r->models.n > MOST_MODELS)
        return nrg_fail(r->err, -EFBIG, NULL,
                        "holds %zu models: at most %d can be held out in turn", r->models.n,
                        MOST_MODELS);
    r->used = calloc(r->models.n + 1, sizeof *r->used);
    r->apart = calloc(r->models.n + 1, sizeof *r->apart);
    r->family = calloc(r->models.n + 1, sizeof *r->family);
    r->train = calloc(n, sizeof *r->train);
    r->test = calloc(n, sizeof *r->test);
    r->tested = calloc(n, sizeof *r->tested);
    r->fold = calloc(n, sizeof *r->fold);
    r->out->estimates = calloc(n, sizeof *r->out->estimates);
    if (!r->used || !r->apart || !r->family || !r->train || !r->test || !r->tested || !r->fold ||
        !r->out->estimates)
        return no_memory(r);
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
    int rc = prepare(&r);
    if (!rc)
        rc = run_folds(&r);
    for (int l = 0; !rc && l < NRG_NODE_LEVELS; l++)
        rc = nrg_score_level(&out->levels[l], set, out->estimates, r.tested, (enum nrg_node_level)l)
                 ? no_memory(&r)
                 : 0;
    if (!rc)
        rc = run_apart(&r);
    release(&r);
    if (rc)
        nrg_evaluation_release(out);
    return rc;
}

static void release_scores(struct nrg_level_scores *scores)
{
    free(scores->by_model);
    free(scores->by_kind);
}

void nrg_evaluation_release(struct nrg_evaluation *e)
{
    for (int l = 0; l < NRG_NODE_LEVELS; l++) {
        release_scores(&e->levels[l]);
        release_scores(&e->apart[l]);
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
    int rc = nrg_physical_fit(&s->model, set, mask, s->features, err);
    return rc ? rc : nrg_physical_calibrate(&s->model, set, mask, s->confidence, err);
}

static void physical_forget(void *state)
{
    struct nrg_physical_state *s = state;
    nrg_physical_release(&s->model);
}

static int physical_predict(void *state, const struct nrg_dataset *set, const bool *test,
                            struct nrg_estimate *out, struct nrg_error *err)
{
    const struct nrg_physical_state *s = state;
    (void)err;
    for (size_t i = 0; i < set->n; i++)
        if (test[i] && nrg_physical_row(&s->model, set, i, &out[i]))
            out[i].energy_j = NAN;
    return 0;
}

struct nrg_predictor nrg_physical_predictor(struct nrg_physical_state *state)
{
    return (struct nrg_predictor){.name = "physical",
                                  .train = physical_train,
                                  .forget = physical_forget,
                                  .predict = physical_predict,
                                  .state = state};
}
