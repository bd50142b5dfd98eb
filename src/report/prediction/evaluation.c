/*
 * An evaluation as tables: all levels, then each level by model, then operators and modules by
 * kind. Errors are mean |predicted - measured| in percent of the measured energy.
 */
#include <math.h>
#include <string.h>

#include "base/json/set.h"
#include "report/prediction/report.h"

#define NAME_WIDTH 30

static void print_percent(FILE *out, double value, int digits)
{
    if (isnan(value))
        fprintf(out, "%9s", "-");
    else
        fprintf(out, "%9.*f", digits, value);
}

static void print_score(FILE *out, const char *name, const struct nrg_score *s)
{
    fprintf(out, "  %-*.*s %8.0f %8zu", NAME_WIDTH, NAME_WIDTH, name, s->rows, s->distinct);
    print_percent(out, s->error, 2);
    print_percent(out, s->median, 2);
    print_percent(out, s->macro, 2);
    print_percent(out, s->distinct_error, 2);
    print_percent(out, s->worst, 1);
    print_percent(out, s->covered, 1);
    print_percent(out, s->width, 1);
    if (s->unpredicted)
        fprintf(out, "   %zu not predictable", s->unpredicted);
    fputc('\n', out);
}

static void print_evaluation_head(FILE *out, const char *title)
{
    fprintf(out, "\n  %-*s %8s %8s %8s %8s %8s %8s %8s %8s %8s\n", NAME_WIDTH, title, "rows",
            "distinct", "error %", "median %", "macro %", "dist. %", "worst %", "inside %",
            "width %");
}

static void print_levels(FILE *out, const struct nrg_level_scores *levels, const char *title)
{
    print_evaluation_head(out, title);
    for (int l = 0; l < NRG_NODE_LEVELS; l++)
        if (levels[l].all.rows > 0 || levels[l].all.unpredicted)
            print_score(out, nrg_node_level_name((enum nrg_node_level)l), &levels[l].all);
}

static void print_scores(FILE *out, enum nrg_node_level level, const char *by,
                         const struct nrg_score *scores, size_t n)
{
    char title[64];
    snprintf(title, sizeof title, "%s, by %s", nrg_node_level_name(level), by);
    print_evaluation_head(out, title);
    for (size_t i = 0; i < n; i++)
        print_score(out, scores[i].name, &scores[i]);
}

static void print_details(FILE *out, const struct nrg_level_scores *s, enum nrg_node_level level,
                          bool by_task)
{
    if (s->n_models)
        print_scores(out, level, "model", s->by_model, s->n_models);
    if (s->n_models && (level != NRG_NODE_MODEL || by_task))
        print_scores(out, level, by_task ? "task" : "kind", s->by_kind, s->n_kinds);
}

static void print_groups(FILE *out, const struct nrg_llm_scores *groups)
{
    for (int a = 0; a < NRG_LLM_FACTORS; a++) {
        char title[64];
        snprintf(title, sizeof title, "model, by %s", nrg_llm_factor_names[a]);
        print_evaluation_head(out, title);
        for (int l = 0; l < NRG_LLM_LEVELS; l++)
            if (groups->of[a][l].rows > 0)
                print_score(out, groups->of[a][l].name, &groups->of[a][l]);
    }
}

void nrg_evaluation_text(const struct nrg_evaluation_report *r, FILE *out)
{
    const struct nrg_evaluation *e = r->evaluation;
    fprintf(out, "%s, %s features, %s: %zu folds\n", r->model, r->features, r->protocol,
            e->n_folds);
    if (!strcmp(r->features, "all") && !strcmp(r->model, "physical"))
        fputs(
            "with time and GPU energy of the node itself: the wall meter rebuilt, no prediction\n",
            out);
    for (size_t i = 0; i < e->n_folds && e->folds[0].train_rows; i++)
        fprintf(out, "  without %-*s trained on %zu distinct rows, tested on %zu\n", NAME_WIDTH,
                e->folds[i].name, e->folds[i].train_rows, e->folds[i].test_rows);
    print_levels(out, e->levels, "level");
    for (int l = 0; l < NRG_NODE_LEVELS; l++)
        print_details(out, &e->levels[l], (enum nrg_node_level)l, nrg_llm_has_rows(r->set));
    if (r->groups)
        print_groups(out, r->groups);
    if (!e->n_apart)
        return;
    fputs("\nout of range, tested apart:", out);
    for (size_t i = 0; i < e->n_apart; i++)
        fprintf(out, " %s", e->apart_models[i]);
    print_levels(out, e->apart, "");
}

/* ---- JSON ---- */

static json_t *score_json(const struct nrg_score *s)
{
    json_t *o =
        json_pack("{s:I, s:I}", "rows", (json_int_t)s->rows, "distinct", (json_int_t)s->distinct);
    NRG_JSON_REALS(o, {"mape_percent", s->error}, {"median_percent", s->median},
                   {"distinct_mape_percent", s->distinct_error});
    if (s->rows > 0)
        nrg_json_real(o, "worst_percent", s->worst);
    NRG_JSON_REALS(o, {"covered_percent", s->covered},
                   {"distinct_covered_percent", s->distinct_covered}, {"width_percent", s->width},
                   {"median_half_width_percent", s->median_half});
    if (s->unpredicted)
        json_object_set_new(o, "unpredicted", json_integer((json_int_t)s->unpredicted));
    return o;
}

static json_t *named_scores(const struct nrg_score *scores, size_t n)
{
    json_t *o = json_object();
    for (size_t i = 0; i < n; i++)
        json_object_set_new(o, scores[i].name, score_json(&scores[i]));
    return o;
}

/* `by_task`: the kinds of whole models are tasks of language models. */
static json_t *levels_json(const struct nrg_level_scores *levels, bool by_task)
{
    json_t *o = json_object();
    for (int l = 0; l < NRG_NODE_LEVELS; l++) {
        const struct nrg_level_scores *s = &levels[l];
        if (!s->n_models)
            continue;
        json_t *level = score_json(&s->all);
        nrg_json_real(level, "macro_mape_percent", s->all.macro);
        json_object_set_new(level, "by_model", named_scores(s->by_model, s->n_models));
        if (l != NRG_NODE_MODEL || by_task)
            json_object_set_new(level, l == NRG_NODE_MODEL ? "by_task" : "by_kind",
                                named_scores(s->by_kind, s->n_kinds));
        json_object_set_new(o, nrg_node_level_name((enum nrg_node_level)l), level);
    }
    return o;
}

/* by_storage, by_lengths, by_batch. */
static void set_groups(json_t *level, const struct nrg_llm_scores *groups)
{
    for (int a = 0; a < NRG_LLM_FACTORS; a++) {
        char key[32];
        json_t *scores = json_object();
        snprintf(key, sizeof key, "by_%s", nrg_llm_factor_names[a]);
        for (int l = 0; l < NRG_LLM_LEVELS; l++)
            if (groups->of[a][l].rows > 0)
                json_object_set_new(scores, groups->of[a][l].name, score_json(&groups->of[a][l]));
        json_object_set_new(level, key, scores);
    }
}

json_t *nrg_evaluation_json(const struct nrg_evaluation_report *r)
{
    const struct nrg_evaluation *e = r->evaluation;
    json_t *folds = json_array(), *o;
    for (size_t i = 0; i < e->n_folds; i++)
        json_array_append_new(folds, json_pack("{s:s, s:I, s:I}", "held_out", e->folds[i].name,
                                               "train_rows", (json_int_t)e->folds[i].train_rows,
                                               "test_rows", (json_int_t)e->folds[i].test_rows));
    o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:o, s:o}", "schema", "nrg.evaluation/1",
                  "device", r->set->rows[0].device, "protocol", r->protocol, "model", r->model,
                  "features", r->features, "confidence", r->confidence, "folds", folds, "levels",
                  levels_json(e->levels, nrg_llm_has_rows(r->set)));
    if (o && r->groups)
        set_groups(json_object_get(json_object_get(o, "levels"), "model"), r->groups);
    if (!o || !e->n_apart)
        return o;
    json_t *names = nrg_json_strings((const char *const *)e->apart_models, e->n_apart);
    json_object_set_new(
        o, "out_of_range",
        json_pack("{s:o, s:o}", "models", names, "levels", levels_json(e->apart, false)));
    return o;
}
