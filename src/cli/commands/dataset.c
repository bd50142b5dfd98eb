/* nrg dataset: what is in a data set of measurements, and conversion to nrg's own form. */
#include "cli/data.h"
#include "report/prediction/report.h"

struct values {
    struct nrg_data_options data;
    const char *output, *json;
};

static const struct nrg_opt options[] = {
    {"output", 'o', NRG_OPT_STRING, "FILE",
     "write the data in nrg's own form: CSV, or JSON when it ends in .json",
     offsetof(struct values, output)},
    {"json", 'j', NRG_OPT_FILE, "FILE", "the summary as JSON, to stdout or FILE",
     offsetof(struct values, json)},
    NRG_DATA_OPTIONS(struct values, data),
    {0},
};

static int show_summary(struct nrg_cli *cli, const struct values *v, const struct nrg_dataset *set)
{
    struct nrg_data_summary summary;
    int code = 0;
    if (nrg_data_summary_make(&summary, set))
        return nrg_out_of_memory();
    if (!cli->quiet && !nrg_is_stdout(v->json) && !nrg_is_stdout(v->output))
        nrg_dataset_text_report(set, &summary, stdout);
    if (v->json)
        code = nrg_print_json(nrg_dataset_summary_json(set, &summary), v->json);
    nrg_data_summary_release(&summary);
    return code;
}

static int run_dataset(struct nrg_cli *cli, void *values, int argc, char **argv)
{
    const struct values *v = values;
    struct nrg_dataset set;
    int code = nrg_data_read(cli, &v->data, argc, argv, true, &set);
    if (!code)
        code = show_summary(cli, v, &set);
    if (!code && v->output)
        code = nrg_data_write(&set, v->output);
    nrg_dataset_release(&set);
    return code;
}

const struct nrg_command nrg_cmd_dataset = {
    .name = "dataset",
    .summary = "what is in a data set of measurements; conversion",
    .synopsis = "[OPTIONS] DATA...",
    .about =
        "Reads measurements of operators, modules and models, merges copies of one measurement\n"
        "into a multiplicity, and shows models, kinds, ranges and the noise floor: how far\n"
        "measurements of the same operator at the same sizes lie apart. Rows that can't be used\n"
        "are counted, with the reason.\n\n"
        "DATA is a recording with spans of modules or operators and the graph of their model (nrg\n"
        "run --torch with nrg.torch.trace), a folder that nrg.torch.measure made, nrg's own CSV "
        "or\n"
        "JSON (docs/dataset.md), a folder with the four CSVs of one IrEne device, or a folder of\n"
        "the Jetson study: convolutional.csv, pooling.csv and\n"
        "dense.csv of a model, or its statistics by layer with trt_engine_info.json.",
    .examples = "  nrg dataset run.nrg -o data.csv\n"
                "  nrg dataset irene/device_1\n"
                "  nrg dataset irene/device_1 -o device_1.csv\n"
                "  nrg dataset model_training/data --device orin-nano -o orin.json\n",
    .options = options,
    .values_size = sizeof(struct values),
    .run = run_dataset,
};
