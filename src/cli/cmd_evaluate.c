/* nrg evaluate: how good predictions are on models that were not trained on. */
#include <string.h>

#include "cli/data.h"
#include "predict/compat/layer.h"
#include "predict/compat/tree.h"
#include "report/prediction/report.h"

#define CONFIDENCE 0.95

struct values {
    struct nrg_data_options data;
    const char *protocol, *features, *model, *variant, *json;
    double confidence, size;
    int seed;
    struct nrg_list families;
    bool all_models;
};

static const struct nrg_opt options[] = {
    {"protocol", 'p', NRG_OPT_STRING, "NAME",
     "leave-one-model-out (default), leave-one-family-out or size-extrapolation",
     offsetof(struct values, protocol)},
    {"features", 'f', NRG_OPT_STRING, "SET",
     "static (default: known before anything runs) or all (with time and GPU energy)",
     offsetof(struct values, features)},
    {"model", 'm', NRG_OPT_STRING, "NAME",
     "physical (default), tree (the earlier system) or layer (a Jetson's)",
     offsetof(struct values, model)},
    {"variant", 0, NRG_OPT_STRING, "NAME",
     "of the tree: end-to-end (default), stepwise, unstructured or sum",
     offsetof(struct values, variant)},
    {"seed", 0, NRG_OPT_COUNT, "N", "of the tree's first weights (default 1)",
     offsetof(struct values, seed)},
    {"confidence", 'c', NRG_OPT_NUMBER, "PART", "of the intervals (default 0.95)",
     offsetof(struct values, confidence)},
    {"size", 0, NRG_OPT_NUMBER, "N",
     "size-extrapolation trains on batch x sequence up to N (default 2048)",
     offsetof(struct values, size)},
    {"family", 0, NRG_OPT_LIST, "NAME=MODEL,MODEL",
     "models that are one family (default: those whose largest operators are of one kind)",
     offsetof(struct values, families)},
    {"all-models", 0, NRG_OPT_FLAG, NULL,
     "train also on models that are out of all others' range, instead of testing them apart",
     offsetof(struct values, all_models)},
    {"json", 'j', NRG_OPT_FILE, "FILE", "the scores as JSON, to stdout or FILE",
     offsetof(struct values, json)},
    NRG_DATA_OPTIONS(struct values, data),
    {0},
};

static int wrong(const char *option, const char *wants, const char *given)
{
    fprintf(stderr, "nrg evaluate: --%s is %s, not '%s'\n", option, wants, given);
    return 2;
}

static int find_variant(const char *name)
{
    int i = 0;
    while (i < NRG_TREE_VARIANTS && strcmp(nrg_tree_variant_names[i], name))
        i++;
    return i;
}

static int check(struct values *v, struct nrg_evaluate_options *o)
{
    int p = 0;
    v->protocol = v->protocol ? v->protocol : nrg_protocol_names[0];
    v->features = v->features ? v->features : "static";
    v->model = v->model ? v->model : "physical";
    v->variant = v->variant ? v->variant : nrg_tree_variant_names[0];
    v->seed = v->seed ? v->seed : 1;
    v->confidence = v->confidence > 0 ? v->confidence : CONFIDENCE;
    while (p < NRG_PROTOCOLS && strcmp(nrg_protocol_names[p], v->protocol))
        p++;
    if (p == NRG_PROTOCOLS)
        return wrong("protocol", "leave-one-model-out, leave-one-family-out or size-extrapolation",
                     v->protocol);
    if (strcmp(v->features, "static") && strcmp(v->features, "all"))
        return wrong("features", "static or all", v->features);
    if (strcmp(v->model, "physical") && strcmp(v->model, "tree") && strcmp(v->model, "layer"))
        return wrong("model", "physical, tree or layer", v->model);
    if (find_variant(v->variant) == NRG_TREE_VARIANTS)
        return wrong("variant", "end-to-end, stepwise, unstructured or sum", v->variant);
    if (v->confidence >= 1) {
        fprintf(stderr, "nrg evaluate: --confidence is more than 0 and less than 1\n");
        return 2;
    }
    *o = (struct nrg_evaluate_options){.protocol = (enum nrg_protocol)p,
                                       .largest_size = v->size,
                                       .all_models = v->all_models,
                                       .exclude = v->data.exclude.items,
                                       .families = v->families.items};
    return 0;
}

static int evaluate(const struct values *v, const struct nrg_evaluate_options *o,
                    const struct nrg_dataset *set)
{
    enum nrg_feature_set features = strcmp(v->features, "all") ? NRG_SET_STATIC : NRG_SET_ALL;
    struct nrg_physical_state physical = {.features = features, .confidence = v->confidence};
    struct nrg_tree_state tree = {.features = features,
                                  .variant = (enum nrg_tree_variant)find_variant(v->variant),
                                  .seed = (uint64_t)v->seed};
    const char *words = v->data.layer_features;
    struct nrg_layer_state layer = {.original = words && !strcmp(words, "original"),
                                    .confidence = v->confidence};
    struct nrg_predictor predictor = nrg_physical_predictor(&physical);
    if (!strcmp(v->model, "tree"))
        predictor = nrg_tree_predictor(&tree);
    else if (!strcmp(v->model, "layer"))
        predictor = nrg_layer_predictor(&layer);
    struct nrg_evaluation evaluation;
    struct nrg_error err;
    if (nrg_evaluate(&evaluation, set, &predictor, o, &err))
        return nrg_complain(&err, 1);
    struct nrg_evaluation_report report = {.set = set,
                                           .evaluation = &evaluation,
                                           .protocol = v->protocol,
                                           .model = v->model,
                                           .features = v->features,
                                           .confidence = v->confidence};
    int code = 0;
    if (!v->json || strcmp(v->json, "-"))
        nrg_evaluation_text(&report, stdout);
    if (v->json)
        code = nrg_print_json(nrg_evaluation_json(&report), v->json);
    nrg_evaluation_release(&evaluation);
    return code;
}

static int run(struct nrg_cli *cli, void *values, int argc, char **argv)
{
    struct values *v = values;
    struct nrg_evaluate_options o;
    struct nrg_dataset set;
    int code = check(v, &o);
    if (code)
        return code;
    code = nrg_data_read(cli, &v->data, argc, argv, false, &set);
    if (!code)
        code = evaluate(v, &o, &set);
    nrg_dataset_release(&set);
    return code;
}

const struct nrg_command nrg_cmd_evaluate = {
    .name = "evaluate",
    .summary = "how good predictions are on models not trained on",
    .synopsis = "[OPTIONS] DATA...",
    .about =
        "Cuts a data set by models, trains on one part and predicts the other, and shows the mean\n"
        "error per level, model and kind, over all rows and over distinct measurements, and how\n"
        "many of the held-out rows lie inside of their intervals. Rows of a held-out model are\n"
        "used nowhere. DATA is a data set (docs/dataset.md) or a folder with the four CSVs of one\n"
        "IrEne device.",
    .examples = "  nrg evaluate irene/device_1\n"
                "  nrg evaluate irene/device_1 --protocol leave-one-family-out --json\n"
                "  nrg evaluate irene/device_2 --features all   # the wall meter, rebuilt\n",
    .options = options,
    .values_size = sizeof(struct values),
    .run = run,
};
