/* nrg evaluate: how good predictions are on models that were not trained on. */
#include <string.h>

#include "cli/data.h"
#include "predict/compat/layer.h"
#include "predict/compat/tree.h"
#include "predict/llm/transfer.h"
#include "predict/profile_json.h"
#include "report/prediction/report.h"

enum model { MODEL_BY_DATA, MODEL_PHYSICAL, MODEL_TREE, MODEL_LAYER, MODEL_LLM };

struct values {
    struct nrg_data_options data;
    const char *json, *profile, *gpu;
    struct nrg_evaluate_options how;
    int model, variant, features, seed;
    double confidence;
    struct nrg_list families;
};

static const struct values defaults = {.confidence = 0.95, .seed = 1};

static const struct nrg_choice protocols[] = {
    {"leave-one-model-out", NRG_LEAVE_ONE_MODEL_OUT, "default"},
    {"leave-one-family-out", NRG_LEAVE_ONE_FAMILY_OUT, NULL},
    {"size-extrapolation", NRG_SIZE_EXTRAPOLATION, NULL},
    {0},
};

static const struct nrg_choice models[] = {
    {"physical", MODEL_PHYSICAL, "default, of operators and modules"},
    {"tree", MODEL_TREE, "the earlier system"},
    {"layer", MODEL_LAYER, "a Jetson's"},
    {"llm", MODEL_LLM, "default, of language models' tokens"},
    {0},
};

static const struct nrg_choice variants[] = {
    {"end-to-end", NRG_TREE_END_TO_END, "default"},
    {"stepwise", NRG_TREE_STEPWISE, NULL},
    {"unstructured", NRG_TREE_UNSTRUCTURED, NULL},
    {"sum", NRG_TREE_SUM, NULL},
    {0},
};

static const struct nrg_opt options[] = {
    {"protocol", 'p', NRG_OPT_CHOICE(protocols), "NAME", "", offsetof(struct values, how.protocol)},
    {"features", 'f', NRG_OPT_CHOICE(nrg_feature_sets), "SET", "",
     offsetof(struct values, features)},
    {"model", 'm', NRG_OPT_CHOICE(models), "NAME", "", offsetof(struct values, model)},
    {"variant", 0, NRG_OPT_CHOICE(variants), "NAME",
     "of the tree: ", offsetof(struct values, variant)},
    {"seed", 0, NRG_OPT_COUNT, "N", "of the tree's first weights (default 1)",
     offsetof(struct values, seed)},
    {"confidence", 'c', NRG_OPT_CONFIDENCE, "PART", "of the intervals (default 0.95)",
     offsetof(struct values, confidence)},
    {"size", 0, NRG_OPT_NUMBER, "N",
     "size-extrapolation trains on batch x sequence up to N (default 2048)",
     offsetof(struct values, how.largest_size)},
    {"family", 0, NRG_OPT_LIST, "NAME=MODEL,MODEL",
     "models that are one family (default: those whose largest operators are of one kind)",
     offsetof(struct values, families)},
    {"all-models", 0, NRG_OPT_FLAG, NULL,
     "train also on models that are out of all others' range, instead of testing them apart",
     offsetof(struct values, how.all_models)},
    {"profile", 0, NRG_OPT_STRING, "FILE",
     "of language models: how good this profile is on all rows, in place of a protocol",
     offsetof(struct values, profile)},
    {"gpu", 0, NRG_OPT_STRING, "NAME",
     "with --profile: carried over to this GPU, of which the rows are (docs/llm.md)",
     offsetof(struct values, gpu)},
    {"json", 'j', NRG_OPT_FILE, "FILE", "the scores as JSON, to stdout or FILE",
     offsetof(struct values, json)},
    NRG_DATA_OPTIONS(struct values, data),
    {0},
};

static int evaluate_model(const struct values *v, const struct nrg_dataset *set,
                          const struct nrg_profile *profile, const struct nrg_gpu *gpu)
{
    enum nrg_feature_set features = (enum nrg_feature_set)v->features;
    struct nrg_physical_state physical = {.features = features, .confidence = v->confidence};
    struct nrg_tree_state tree = {.features = features,
                                  .variant = (enum nrg_tree_variant)v->variant,
                                  .seed = (uint64_t)v->seed};
    struct nrg_layer_state layer = {.original = v->data.original_layers,
                                    .confidence = profile ? profile->confidence : v->confidence};
    struct nrg_llm_state llm = {.confidence = v->confidence};
    struct nrg_predictor predictor = nrg_physical_predictor(&physical);
    struct nrg_evaluate_options how = v->how;
    how.trained = profile != NULL;
    if (profile)
        llm = (struct nrg_llm_state){profile->confidence, profile->llm, profile->device, gpu};
    int model = v->model ? v->model : nrg_llm_has_rows(set) ? MODEL_LLM : MODEL_PHYSICAL;
    if (model == MODEL_LLM)
        predictor = nrg_llm_predictor(&llm);
    else if (model == MODEL_TREE)
        predictor = nrg_tree_predictor(&tree);
    else if (model == MODEL_LAYER)
        predictor = nrg_layer_predictor(&layer);
    struct nrg_evaluation evaluation;
    struct nrg_error err;
    if (nrg_evaluate(&evaluation, set, &predictor, &how, &err))
        return nrg_complain(&err, 1);
    struct nrg_evaluation_report report = {
        .set = set,
        .evaluation = &evaluation,
        .protocol = !profile ? nrg_choice_word(protocols, (int)v->how.protocol)
                    : gpu    ? "carried over by --gpu"
                             : "profile",
        .model = nrg_choice_word(models, model),
        .features = nrg_choice_word(nrg_feature_sets, v->features),
        .confidence = v->confidence};
    struct nrg_llm_scores groups;
    int code = 0;
    if (model == MODEL_LLM && nrg_llm_score(&groups, set, evaluation.estimates))
        code = nrg_out_of_memory();
    else if (model == MODEL_LLM)
        report.groups = &groups;
    if (!code && !nrg_is_stdout(v->json))
        nrg_evaluation_text(&report, stdout);
    if (!code && v->json)
        code = nrg_print_json(nrg_evaluation_json(&report), v->json);
    nrg_evaluation_release(&evaluation);
    return code;
}

/* Rows of another GPU than the predictions' say how good the wrong thing is. */
static int check_device(struct nrg_cli *cli, const char *rows_of, const char *profile_of,
                        const struct nrg_gpu *to)
{
    const struct nrg_gpu *gpu = nrg_gpu_find(rows_of, NULL);
    if (to && gpu && gpu != to)
        return nrg_usage(cli, "--gpu says %s, and the rows are of %s", to->name, gpu->name);
    if (!to && strcmp(rows_of, profile_of) != 0 && (!gpu || gpu != nrg_gpu_find(profile_of, NULL)))
        nrg_log(&cli->ctx, NRG_WARNING, "the rows are of '%s', the profile is of '%s'%s%s", rows_of,
                profile_of, gpu ? ": carried over with --gpu " : "", gpu ? gpu->name : "");
    return 0;
}

/* With a profile that was trained before. */
static int evaluate_profile(struct nrg_cli *cli, const struct values *v,
                            const struct nrg_dataset *set)
{
    struct nrg_profile profile;
    struct nrg_error err;
    const struct nrg_gpu *gpu = v->gpu ? nrg_gpu_find(v->gpu, &err) : NULL;
    if (v->gpu && !gpu)
        return nrg_complain(&err, 1);
    if (nrg_profile_read(&profile, v->profile, &err))
        return nrg_complain(&err, 1);
    int code = 0;
    if (!profile.is_llm || !nrg_llm_has_rows(set))
        code = nrg_usage(cli, "--profile goes with rows and a profile of language models");
    else if (gpu && !nrg_gpu_find(profile.device, &err))
        code = nrg_complain(&err, 1);
    else
        code = check_device(cli, set->rows[0].device, profile.device, gpu);
    for (size_t m = 0; !code && !gpu && m < profile.n_models; m++)
        for (size_t i = 0; i < set->n; i++)
            if (!strcmp(set->rows[i].model, profile.models[m])) {
                nrg_log(&cli->ctx, NRG_WARNING, "the profile was trained on rows of '%s', too",
                        profile.models[m]);
                break;
            }
    if (!code)
        code = evaluate_model(v, set, &profile, gpu);
    nrg_profile_release(&profile);
    return code;
}

/* What would be passed over otherwise. */
static int check_options(const struct nrg_cli *cli, const struct values *v)
{
    if (v->gpu && !v->profile)
        return nrg_usage(cli, "--gpu goes with --profile: rows of the GPU itself need none");
    if (v->profile && v->how.protocol != NRG_LEAVE_ONE_MODEL_OUT)
        return nrg_usage(cli, "--protocol or --profile: a profile is trained already");
    if (v->families.n && v->how.protocol != NRG_LEAVE_ONE_FAMILY_OUT)
        return nrg_usage(cli, "--family goes with --protocol leave-one-family-out");
    if (v->how.largest_size > 0 && v->how.protocol != NRG_SIZE_EXTRAPOLATION)
        return nrg_usage(cli, "--size goes with --protocol size-extrapolation");
    if ((v->variant != NRG_TREE_END_TO_END || v->seed != defaults.seed) && v->model != MODEL_TREE)
        return nrg_usage(cli, "--%s goes with --model tree",
                         v->seed != defaults.seed ? "seed" : "variant");
    return 0;
}

static int run_evaluate(struct nrg_cli *cli, void *values, int argc, char **argv)
{
    struct values *v = values;
    struct nrg_dataset set;
    v->how.families = v->families.items;
    int code = check_options(cli, v);
    if (code)
        return code;
    code = nrg_data_read(cli, &v->data, argc, argv, false, &set);
    if (!code)
        code = v->profile ? evaluate_profile(cli, v, &set) : evaluate_model(v, &set, NULL, NULL);
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
        "used nowhere. DATA is a data set (docs/dataset.md), a folder with the four CSVs of one\n"
        "IrEne device, or ML.ENERGY's list of language models on servers (docs/llm.md).",
    .examples = "  nrg evaluate irene/device_1\n"
                "  nrg evaluate irene/device_1 --protocol leave-one-family-out --json\n"
                "  nrg evaluate mlenergy_h100.json --task lm-arena-chat,gpqa\n"
                "  nrg evaluate mlenergy_b200.json --profile h100.json --gpu B200\n"
                "  nrg evaluate irene/device_2 --features all   # the wall meter, rebuilt\n",
    .options = options,
    .values_size = sizeof(struct values),
    .defaults = &defaults,
    .run = run_evaluate,
};
