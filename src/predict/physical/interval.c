/*
 * See interval.h. Every model of the training data is held out in turn and the rest is fitted. The
 * errors |ln(measured / predicted)| of the held-out rows make the half widths (conformal.h), once
 * for each row that a measurement stands for.
 *
 * They are kept apart by support. Rows whose kinds the other folds all have make the usual half
 * widths, conditional on the kind: an operator's group; for a module the set of its operators'
 * groups, because classes of modules are seldom shared by models. Rows with a stand-in make what a
 * stand-in adds, for its share of the energy. Rows by another form of their kind make neither. An
 * error outside of the range counts as one inside that was widened.
 */
#include "predict/physical/interval.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "predict/kinds.h"
#include "predict/physical/conformal.h"
#include "predict/physical/estimate.h"

#define ROW_FOLDS   5    /* of a data set with one model */
#define MOST_FOLDS  64   /* several models are held out at once when there are more */
#define LEAST_SHARE 0.05 /* of a stand-in, to tell what it adds */

/*
 * What to expect of a level before the device's own folds say it: root mean squares of the errors
 * on IrEne's data. Static features: one family held out, the worse of the two devices; models as
 * modules, because six transformers of one width tell too little of models (their own: 0.055). All
 * features: one model held out. A stand-in: each group of operators taken out of the data in turn.
 */
static const double usual_spread[][NRG_NODE_LEVELS] = {
    [NRG_SET_STATIC] = {0.095, 0.086, 0.086}, [NRG_SET_ALL] = {0.007, 0.006, 0.006}};
#define STAND_IN_SPREAD 0.53
#define SEAM_SPREAD     0.03 /* of a whole against its parts in the same data */

/* An error on a row that was held out, and the share of its energy that is by stand-ins. */
struct held_row {
    struct nrg_residual residual;
    enum nrg_node_level level;
    double share;
};

struct held_rows {
    struct held_row *items;
    size_t n, cap;
    double error[NRG_NODE_LEVELS], weight[NRG_NODE_LEVELS]; /* sums over all rows */
};

/* What is held out: a fold of models, or of rows where there is one model only. */
struct folds {
    const struct nrg_physical *model; /* of all rows */
    const struct nrg_dataset *set;
    const bool *mask;
    uint32_t *of_row;
    size_t n;
    bool *train;
};

static uint64_t bit_of(const struct nrg_physical *model, const char *kind)
{
    bool known;
    return nrg_group_bit(model, nrg_physical_group(model, kind, true, &known));
}

/* The groups of a row's operators, as bits of the whole model, which knows them all. */
static uint64_t kind_of(const struct nrg_physical *model, const struct nrg_dataset *set,
                        const struct nrg_row *row)
{
    uint64_t groups = 0;
    if (row->level == NRG_NODE_OPERATOR)
        return bit_of(model, row->kind);
    if (row->level == NRG_NODE_MODEL || model->features == NRG_SET_ALL)
        return 0;
    for (uint32_t l = 0; l < row->n_leaves; l++)
        groups |= bit_of(model, set->rows[set->leaves[row->first_leaf + l].row].kind);
    return groups;
}

static int add_held(struct held_rows *out, const struct nrg_physical *fit, const struct folds *f,
                    uint32_t fold)
{
    for (size_t i = 0; i < f->set->n; i++) {
        const struct nrg_row *row = &f->set->rows[i];
        double weight = (double)row->multiplicity;
        struct nrg_estimate e;
        if ((f->mask && !f->mask[i]) || f->train[i] || nrg_physical_row(fit, f->set, i, &e) ||
            !(e.energy_j > 0))
            continue;
        double error = fabs(log(row->energy_j / e.energy_j));
        out->error[row->level] += weight * fabs(e.energy_j - row->energy_j) / row->energy_j;
        out->weight[row->level] += weight;
        if (e.other_form && !e.unknown_kind)
            continue;
        struct held_row held = {.level = row->level, .share = e.stand_in_j / e.energy_j};
        double away = held.share > 0 ? 1 : 1 + e.beyond;
        held.residual = (struct nrg_residual){.error = error / away,
                                              .weight = weight,
                                              .kind = kind_of(f->model, f->set, row),
                                              .fold = fold};
        if (nrg_append(&out->items, &out->n, &out->cap, &held, sizeof held))
            return -ENOMEM;
    }
    return 0;
}

static int hold_out(struct held_rows *out, const struct folds *f, uint32_t fold)
{
    struct nrg_physical fit;
    for (size_t i = 0; i < f->set->n; i++)
        f->train[i] = (!f->mask || f->mask[i]) && f->of_row[i] != fold;
    int rc = nrg_physical_fit(&fit, f->set, f->train, f->model->features, NULL);
    if (rc)
        return rc == -ENOMEM ? rc : 0; /* the other folds have nothing to fit: no residuals */
    rc = add_held(out, &fit, f, fold);
    nrg_physical_release(&fit);
    return rc;
}

/* The residuals of a level with all kinds known, or the parts that stand-ins add, into `out`. */
static size_t choose_residuals(const struct held_rows *held, enum nrg_node_level level,
                               bool stand_ins, double q, struct nrg_residual *out)
{
    size_t n = 0;
    for (size_t i = 0; i < held->n; i++) {
        const struct held_row *h = &held->items[i];
        if (h->level != level || (h->share > 0) != stand_ins ||
            (stand_ins && h->share < LEAST_SHARE))
            continue;
        out[n] = h->residual;
        if (stand_ins) {
            out[n].error = fmax(0, out[n].error - q) / h->share;
            out[n].kind = 0;
        }
        n++;
    }
    return n;
}

static void set_groups(struct nrg_physical *model, const struct nrg_conformal *c, double confidence)
{
    for (size_t g = 0; g < model->n; g++) {
        int at = nrg_conformal_kind(c, nrg_group_bit(model, &model->groups[g]));
        model->groups[g].q = at < 0 ? NAN : nrg_conformal_half(c, at, confidence);
    }
}

static int set_module_kinds(struct nrg_physical *model, const struct nrg_conformal *c,
                            double confidence)
{
    for (size_t k = 0; k < c->n_kinds; k++) {
        struct nrg_module_kind kind = {c->kinds[k], nrg_conformal_half(c, (int)k, confidence)};
        if (nrg_append(&model->module_kinds, &model->n_module_kinds, &model->cap_module_kinds,
                       &kind, sizeof kind))
            return -ENOMEM;
    }
    return 0;
}

/* From the residuals of rows with all kinds known. */
static int set_known(struct nrg_physical *model, enum nrg_node_level level,
                     const struct nrg_conformal *c, double confidence)
{
    model->q[level] = nrg_conformal_half(c, -1, confidence);
    if (level == NRG_NODE_OPERATOR)
        set_groups(model, c, confidence);
    return level == NRG_NODE_MODULE && model->features == NRG_SET_STATIC
               ? set_module_kinds(model, c, confidence)
               : 0;
}

static int set_level(struct nrg_physical *model, const struct held_rows *held,
                     enum nrg_node_level level, double confidence, struct nrg_residual *room)
{
    struct nrg_conformal c;
    if (!(held->weight[level] > 0))
        return 0; /* not calibrated */
    model->expected_error[level] = held->error[level] / held->weight[level];
    size_t n = choose_residuals(held, level, false, 0, room);
    if (nrg_conformal_init(&c, room, n, usual_spread[model->features][level]))
        return -ENOMEM;
    int rc = set_known(model, level, &c, confidence);
    nrg_conformal_release(&c);
    if (rc)
        return rc;
    n = choose_residuals(held, level, true, level == NRG_NODE_OPERATOR ? 0 : model->q[level], room);
    if (nrg_conformal_init(&c, room, n, STAND_IN_SPREAD))
        return -ENOMEM;
    model->stand_in[level] = nrg_conformal_half(&c, -1, confidence);
    nrg_conformal_release(&c);
    return 0;
}

/*
 * How much more than its parts a whole used, where both were measured. Rows count by their energy:
 * a whole of some µJ, most of which is calling it, says little of one of a joule.
 */
static int set_seam(struct nrg_physical *model, const struct folds *f, enum nrg_node_level level,
                    double confidence, struct nrg_residual *room)
{
    struct nrg_conformal c;
    size_t n = 0;
    for (size_t i = 0; i < f->set->n; i++) {
        const struct nrg_row *row = &f->set->rows[i];
        double seam = (f->mask && !f->mask[i]) || row->level != level
                          ? NAN
                          : nrg_physical_seam(model, f->set, i);
        if (!isnan(seam))
            room[n++] = (struct nrg_residual){.error = fmax(0, seam),
                                              .weight = (double)row->multiplicity * row->energy_j,
                                              .fold = f->of_row[i]};
    }
    if (nrg_conformal_init(&c, room, n, SEAM_SPREAD))
        return -ENOMEM;
    model->seam[level] = nrg_conformal_half(&c, -1, confidence);
    nrg_conformal_release(&c);
    return 0;
}

static int set_intervals(struct nrg_physical *model, const struct folds *f,
                         const struct held_rows *held, double confidence)
{
    size_t n = f->set->n > held->n ? f->set->n : held->n;
    struct nrg_residual *room = nrg_calloc(n + 1, sizeof *room);
    int rc = room ? 0 : -ENOMEM;
    for (int l = 0; !rc && l < NRG_NODE_LEVELS; l++)
        rc = set_level(model, held, (enum nrg_node_level)l, confidence, room);
    for (int l = NRG_NODE_MODULE; !rc && l < NRG_NODE_LEVELS; l++)
        rc = set_seam(model, f, (enum nrg_node_level)l, confidence, room);
    free(room);
    return rc;
}

/* Numbers the models of the mask and gives each a fold. 1: folds are of models, 0: of rows. */
static int make_folds(struct folds *f, struct nrg_name_list *models)
{
    uint32_t *number = nrg_calloc(models->n + 1, sizeof *number);
    uint32_t n = 0;
    if (!number)
        return -ENOMEM;
    for (size_t i = 0; i < f->set->n; i++)
        if ((!f->mask || f->mask[i]) && !number[models->of_row[i]])
            number[models->of_row[i]] = ++n;
    f->n = n > MOST_FOLDS ? MOST_FOLDS : n > 1 ? n : ROW_FOLDS;
    f->of_row = models->of_row;
    for (size_t i = 0; i < f->set->n; i++)
        f->of_row[i] = n > 1 ? (number[models->of_row[i]] - 1) % MOST_FOLDS
                             : f->set->rows[i].measurement % ROW_FOLDS;
    free(number);
    return (int)(n > 1);
}

int nrg_physical_calibrate(struct nrg_physical *model, const struct nrg_dataset *set,
                           const bool *mask, double confidence, struct nrg_error *err)
{
    struct held_rows held = {0};
    struct nrg_name_list models = {0};
    struct folds f = {
        .set = set, .mask = mask, .model = model, .train = nrg_calloc(set->n + 1, sizeof(bool))};
    int rc = f.train ? nrg_dataset_list(set, offsetof(struct nrg_row, model), &models) : -ENOMEM;
    if (!rc && (rc = make_folds(&f, &models)) >= 0) {
        model->held_out_models = rc;
        rc = 0;
    }
    for (uint32_t i = 0; !rc && i < f.n; i++)
        rc = hold_out(&held, &f, i);
    if (!rc)
        rc = set_intervals(model, &f, &held, confidence);
    free(held.items);
    free(f.train);
    nrg_name_list_release(&models);
    return rc ? nrg_fail(err, rc, NULL, "out of memory") : 0;
}

int nrg_physical_train(struct nrg_physical *model, const struct nrg_dataset *set, const bool *mask,
                       enum nrg_feature_set features, double confidence, struct nrg_error *err)
{
    int rc = nrg_physical_fit(model, set, mask, features, err);
    return rc ? rc : nrg_physical_calibrate(model, set, mask, confidence, err);
}
