/* nrg train: a profile of a device from measurements. */
#include "cli/data.h"
#include "predict/profile_json.h"
#include "report/prediction/report.h"

struct values {
    struct nrg_data_options data;
    const char *output, *from;
    int features, layer;
    double confidence, memory_bytes;
};

static const struct values defaults = {.confidence = 0.95};

static const struct nrg_choice models[] = {
    {"physical", false, "default"},
    {"layer", true, "run time and power of a Jetson's layers"},
    {0},
};

static const struct nrg_opt options[] = {
    {"output", 'o', NRG_OPT_STRING, "FILE", "the profile to write (required)",
     offsetof(struct values, output)},
    {"from", 0, NRG_OPT_STRING, "PROFILE",
     "of language models: recalibrate this profile by the data, in place of a fit to them alone",
     offsetof(struct values, from)},
    {"model", 'm', NRG_OPT_CHOICE(models), "NAME", "", offsetof(struct values, layer)},
    {"features", 'f', NRG_OPT_CHOICE(nrg_feature_sets), "SET", "",
     offsetof(struct values, features)},
    {"confidence", 'c', NRG_OPT_CONFIDENCE, "PART", "of the intervals (default 0.95)",
     offsetof(struct values, confidence)},
    {"memory", 0, NRG_OPT_BYTES, "SIZE", "of language models: memory of one GPU, such as 80GB",
     offsetof(struct values, memory_bytes)},
    NRG_DATA_OPTIONS(struct values, data),
    {0},
};

/* Warns of groups that can't separate a cost per call from one per byte, or have few rows. */
static void say_weak(struct nrg_cli *cli, const struct nrg_profile *p)
{
    for (size_t g = 0; p->physical.features == NRG_SET_STATIC && g < p->physical.n; g++) {
        const struct nrg_group *group = &p->physical.groups[g];
        bool one_size = group->range[NRG_PER_MAC].low == group->range[NRG_PER_MAC].high &&
                        group->range[NRG_PER_BYTE].low == group->range[NRG_PER_BYTE].high;
        if (one_size)
            nrg_log(&cli->ctx, NRG_WARNING,
                    "%s was measured at one size only: what a call costs and what a byte costs "
                    "can't be told apart",
                    group->name);
        else if (group->rows < 3)
            nrg_log(&cli->ctx, NRG_WARNING, "%s has %zu measurements only", group->name,
                    group->rows);
    }
    if (p->physical.unused_rows)
        nrg_log(&cli->ctx, NRG_WARNING,
                "%zu measurements lack the features that are needed and were not used",
                p->physical.unused_rows);
    if (p->is_llm && p->llm.models < 2)
        nrg_log(&cli->ctx, NRG_WARNING,
                "the data are of one model: intervals are too narrow for "
                "other models");
    else if (!p->is_layer && !p->is_llm && !p->physical.held_out_models)
        nrg_log(&cli->ctx, NRG_WARNING,
                "the data are of one model: intervals come from held-out rows and are too narrow "
                "for other models");
}

static int run_train(struct nrg_cli *cli, void *values, int argc, char **argv)
{
    struct values *v = values;
    struct nrg_dataset set;
    struct nrg_profile profile, from = {0};
    struct nrg_error err;
    if (!v->output)
        return nrg_usage(cli, "where to? nrg train DATA -o device.json");
    int code = nrg_data_read(cli, &v->data, argc, argv, false, &set);
    if (!code && v->from && nrg_profile_read(&from, v->from, &err))
        code = nrg_complain(&err, 1);
    struct nrg_train_options o = {.layer = v->layer,
                                  .original_layers = v->data.original_layers,
                                  .features = (enum nrg_feature_set)v->features,
                                  .confidence = v->confidence,
                                  .memory_bytes = v->memory_bytes,
                                  .from = v->from ? &from : NULL,
                                  .sources = (const char *const *)argv};
    if (!code && nrg_profile_train(&profile, &set, &o, &err)) {
        code = nrg_complain(&err, 1);
    } else if (!code) {
        say_weak(cli, &profile);
        code = nrg_print_json(nrg_profile_json(&profile), v->output);
        if (!code && !cli->quiet && !nrg_is_stdout(v->output))
            nrg_profile_text(&profile, v->output, stdout);
        nrg_profile_release(&profile);
    }
    nrg_profile_release(&from);
    nrg_dataset_release(&set);
    return code;
}

const struct nrg_command nrg_cmd_train = {
    .name = "train",
    .summary = "a profile of a device from measurements",
    .synopsis = "[OPTIONS] DATA... -o device.json",
    .about =
        "Fits joules per call, per multiply-accumulate and per byte for each kind of operator,\n"
        "and what goes on between operators, none of them negative, and writes them with their\n"
        "ranges, expected errors and intervals as a profile for nrg predict. Intervals come from\n"
        "models held out in turn. The same data give the same file.\n\n"
        "With --features all the profile rebuilds a wall meter from a run's time and GPU energy;\n"
        "it can't predict before a run.",
    .examples = "  nrg train irene/device_1 --exclude sshleifer/tiny-ctrl -o device_1.json\n"
                "  nrg train mlenergy_h100.json --memory 80GB -o h100.json   # language models\n"
                "  nrg train run.nrg --config config.json --from h100.json -o here.json\n"
                "  nrg train mine.csv -o mine.json && nrg predict model.txt --profile mine.json\n",
    .options = options,
    .values_size = sizeof(struct values),
    .defaults = &defaults,
    .run = run_train,
};
