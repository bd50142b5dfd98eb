/*
 * nrg predict: what a model will cost on a device, before running it. Reads and counts as nrg graph
 * does, at another size where the graph tells what depends on it, then predicts by a profile.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "cli/predict/against.h"
#include "cli/predict/llm.h"
#include "report/prediction/report.h"

#define DEFAULT_TERMS 8
#define MOST_SIZES    8
#define MOST_WHAT_IFS 64

/* What --dim says: sizes of symbolic dimensions. */
struct dims {
    char names[MOST_SIZES][64];
    int64_t sizes[MOST_SIZES];
    size_t n;
};

/* What --what-if says: the name of a dimension, and sizes of it. */
struct what_ifs {
    char name[64];
    int64_t sizes[MOST_WHAT_IFS];
    size_t n;
};

/* Several with --llm, else one. */
struct what_if_list {
    struct what_ifs items[2];
    size_t n;
};

struct values {
    const char *profile, *compare, *params, *format, *trace, *against, *json, *llm, *gpu;
    struct dims dims;
    struct what_if_list what_if;
    double runs; /* NAN: not given */
    double memory_bytes;
    int batch, seq, depth, idle, prompt, output, tp, gpus, dtype, kv_dtype;
    bool all, explain, force;
};

static const struct values defaults = {.runs = NAN, .depth = 3, .idle = -1};

static const struct nrg_choice idle_rules[] = {
    {"apart", NRG_IDLE_APART, "not in it; default"},
    {"share", NRG_IDLE_SHARE, "of the time that a module runs"},
    {"none", NRG_IDLE_NONE, "not separated"},
    {0},
};

/* Copies "batch" of "batch=8,16" and returns what follows the '=', or NULL. */
static const char *take_name(const char *text, char *name, size_t size)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || (size_t)(equals - text) >= size)
        return NULL;
    snprintf(name, size, "%.*s", (int)(equals - text), text);
    return equals + 1;
}

static int take_size(const char *text, size_t len, int64_t *size)
{
    int rc = nrg_parse_i64(text, len, size);
    return rc ? rc : *size >= 1 ? 0 : -ERANGE;
}

static int store_dim(const struct nrg_opt_type *type, void *field, const char *text)
{
    struct dims *dims = field;
    if (dims->n == MOST_SIZES)
        return -E2BIG;
    const char *size = take_name(text, dims->names[dims->n], sizeof dims->names[0]);
    return size ? take_size(size, strlen(size), &dims->sizes[dims->n++]) : -EINVAL;
}

static int store_what_if(const struct nrg_opt_type *type, void *field, const char *text)
{
    struct what_if_list *list = field;
    struct what_ifs *w = &list->items[list->n];
    if (list->n++ == 2)
        return -E2BIG;
    for (const char *at = take_name(text, w->name, sizeof w->name); at;) {
        size_t len = strcspn(at, ",");
        if (w->n == MOST_WHAT_IFS || take_size(at, len, &w->sizes[w->n++]))
            return -EINVAL;
        at = at[len] ? at + len + 1 : NULL;
    }
    return w->n ? 0 : -EINVAL;
}

static int store_dtype(const struct nrg_opt_type *type, void *field, const char *text)
{
    int dtype = nrg_llm_dtype_find(text);
    *(int *)field = dtype;
    return dtype > 0 ? 0 : -EINVAL;
}

static const struct nrg_opt options[] = {
    {"profile", 'p', NRG_OPT_STRING, "FILE", "the device's profile (required): see nrg train",
     offsetof(struct values, profile)},
    {"compare", 'c', NRG_OPT_STRING, "FILE", "a second device's profile, side by side",
     offsetof(struct values, compare)},
    {"batch", 'b', NRG_OPT_COUNT, "N", "another batch size", offsetof(struct values, batch)},
    {"seq", 's', NRG_OPT_COUNT, "N", "another sequence length", offsetof(struct values, seq)},
    {"dim", 0, NRG_OPT_OWN(store_dim, "NAME=N"), "NAME=N",
     "a symbolic dimension's size; may be repeated", offsetof(struct values, dims)},
    {"trace", 't', NRG_OPT_STRING, "FILE",
     "the same model traced at another size, which tells what depends on the size",
     offsetof(struct values, trace)},
    {"what-if", 'w', NRG_OPT_OWN(store_what_if, "sizes such as batch=8,16,32"), "NAME=N,N",
     "a table over sizes, such as batch=8,16,32; with --llm twice: batch and prompt",
     offsetof(struct values, what_if)},
    {"llm", 0, NRG_OPT_STRING, "CONFIG",
     "a language model on a server: config.json, its folder, a GGUF or safetensors file, or "
     "sizes by hand: params=7.6e9[,active=1e9,layers=32,hidden=4096]",
     offsetof(struct values, llm)},
    {"prompt", 0, NRG_OPT_COUNT, "N", "with --llm: tokens of a prompt (default 512)",
     offsetof(struct values, prompt)},
    {"output", 0, NRG_OPT_COUNT, "N", "with --llm: tokens of an answer (default 256)",
     offsetof(struct values, output)},
    {"tp", 0, NRG_OPT_COUNT, "N",
     "with --llm: GPUs that share each matrix (default: all; of models with experts 1)",
     offsetof(struct values, tp)},
    {"gpus", 0, NRG_OPT_COUNT, "N", "with --llm: GPUs in all (default: as --tp)",
     offsetof(struct values, gpus)},
    {"dtype", 0, NRG_OPT_OWN(store_dtype, "fp32, fp16, bf16, fp8, int8, int4, mxfp4 or nvfp4"),
     "TYPE",
     "with --llm: fp32, fp16, bf16, fp8, int8, int4, mxfp4 or nvfp4 (default: as the config says)",
     offsetof(struct values, dtype)},
    {"kv-dtype", 0, NRG_OPT_OWN(store_dtype, "fp32, fp16, bf16, fp8, int8, int4, mxfp4 or nvfp4"),
     "TYPE", "with --llm: the same of the cache (default bf16)", offsetof(struct values, kv_dtype)},
    {"memory", 0, NRG_OPT_BYTES, "SIZE", "with --llm: memory of one GPU, such as 80GB",
     offsetof(struct values, memory_bytes)},
    {"gpu", 0, NRG_OPT_STRING, "NAME",
     "with --llm: another GPU than the profile's, by its datasheet (docs/llm.md)",
     offsetof(struct values, gpu)},
    {"force", 0, NRG_OPT_FLAG, NULL, "with --llm: prices also of what does not fit into the memory",
     offsetof(struct values, force)},
    {"against", 0, NRG_OPT_STRING, "FILE.nrg",
     "a recording with spans: predicted against measured, module by module",
     offsetof(struct values, against)},
    {"idle", 0, NRG_OPT_CHOICE(idle_rules), "RULE",
     "with --against, idle energy in what was measured: ", offsetof(struct values, idle)},
    {"for", 0, NRG_OPT_NUMBER_IN(1e-9, 1e300, "a number of steps"), "N", "the energy of N steps",
     offsetof(struct values, runs)},
    {"depth", 'd', NRG_OPT_COUNT, "N", "levels of modules to show (default 3)",
     offsetof(struct values, depth)},
    {"all", 'a', NRG_OPT_FLAG, NULL, "all levels of modules", offsetof(struct values, all)},
    {"explain", 'e', NRG_OPT_FLAG, NULL, "all terms: which coefficient times how much",
     offsetof(struct values, explain)},
    {"params", 0, NRG_OPT_STRING, "FILE", "shapes of the parameters, as for nrg graph",
     offsetof(struct values, params)},
    {"format", 'f', NRG_OPT_STRING, "NAME", "the model's format instead of looking at its content",
     offsetof(struct values, format)},
    {"json", 'j', NRG_OPT_FILE, "FILE", "everything as JSON, to stdout or FILE",
     offsetof(struct values, json)},
    {0},
};

struct request {
    const struct values *v;
    const char *path;
    struct nrg_size sizes[MOST_SIZES + 3]; /* --batch, --seq, --dim; the last is the what-if's */
    size_t n_sizes;
    struct nrg_model params, trace;
    struct nrg_profile profile, second;
    struct nrg_error err;
};

static struct nrg_analysis_options analysis_options(const struct request *r, size_t n_sizes)
{
    return (struct nrg_analysis_options){.format = r->v->format,
                                         .params = r->v->params ? &r->params : NULL,
                                         .trace = r->v->trace ? &r->trace : NULL,
                                         .sizes = r->sizes,
                                         .n_sizes = n_sizes,
                                         .want_graph = true};
}

static int analyse_model(struct request *r, struct nrg_analysis *a, size_t n_sizes)
{
    const struct nrg_analysis_options how = analysis_options(r, n_sizes);
    return nrg_analyse(a, r->path, &how, &r->err);
}

/* ---- one size ---- */

static int show_prediction(struct request *r, const struct nrg_prediction_report *a,
                           const struct nrg_prediction_report *b)
{
    const struct values *v = r->v;
    int depth = v->all ? 0 : v->depth;
    struct nrg_fitted shown;
    bool text = !nrg_is_stdout(v->json);
    FILE *out = text ? nrg_fitted_begin(&shown, stdout) : NULL;
    if (out && b)
        nrg_prediction_compare_text(a, b, depth, out);
    else if (out)
        nrg_prediction_text(a, depth, v->explain ? 1000 : DEFAULT_TERMS, out);
    int code = text ? nrg_fitted_end(&shown) : 0;
    if (code || !v->json)
        return code;
    return nrg_print_json(b ? nrg_prediction_compare_json(a, b) : nrg_prediction_json(a), v->json);
}

static int predict_one(struct request *r)
{
    struct nrg_analysis c;
    struct nrg_prediction first = {0}, second = {0};
    const struct values *v = r->v;
    int rc = analyse_model(r, &c, r->n_sizes), code = 0;
    if (rc)
        return nrg_complain(&r->err, 1);
    rc = nrg_predict(&first, &r->profile, &c.reduced, &c.tree, &r->err);
    if (!rc && v->compare)
        rc = nrg_predict(&second, &r->second, &c.reduced, &c.tree, &r->err);
    if (rc && !r->err.where[0])
        nrg_copy(r->err.where, sizeof r->err.where, r->path);
    struct nrg_prediction_report a = {.name = r->path,
                                      .profile = &r->profile,
                                      .profile_name = v->profile,
                                      .reduced = &c.reduced,
                                      .tree = &c.tree,
                                      .prediction = &first,
                                      .runs = v->runs};
    struct nrg_prediction_report b = a;
    b.profile = &r->second;
    b.profile_name = v->compare;
    b.prediction = &second;
    code = rc ? nrg_complain(&r->err, 1) : show_prediction(r, &a, v->compare ? &b : NULL);
    nrg_prediction_release(&first);
    nrg_prediction_release(&second);
    nrg_analysis_release(&c);
    return code;
}

/* ---- a recording ---- */

static int predict_against(struct request *r)
{
    const struct values *v = r->v;
    const struct nrg_against_request request = {.model = r->path,
                                                .how = analysis_options(r, r->n_sizes),
                                                .recording = v->against,
                                                .profile = &r->profile,
                                                .profile_name = v->profile,
                                                .idle = v->idle < 0 ? NRG_IDLE_APART
                                                                    : (enum nrg_idle_mode)v->idle,
                                                .depth = v->all ? 0 : v->depth,
                                                .json = v->json};
    return nrg_predict_against(&request);
}

/* ---- several sizes ---- */

static void predict_size(struct request *r, int64_t size, struct nrg_what_if *row)
{
    struct nrg_analysis c;
    struct nrg_prediction p = {0};
    row->value = (double)size;
    r->sizes[r->n_sizes] = (struct nrg_size){r->v->what_if.items[0].name, size};
    int rc = analyse_model(r, &c, r->n_sizes + 1);
    if (!rc) {
        rc = nrg_predict(&p, &r->profile, &c.reduced, &c.tree, &r->err);
        int64_t batch = nrg_model_size(&c.model, "batch");
        row->items = batch > 0 ? (double)batch : NAN;
        if (!rc) {
            row->estimate = p.nodes[0].estimate;
            nrg_copy(row->why, sizeof row->why, p.n_reasons ? p.reasons[0] : "");
        }
        nrg_prediction_release(&p);
        nrg_analysis_release(&c);
    }
    row->refused = rc != 0;
    if (rc)
        nrg_copy(row->why, sizeof row->why, r->err.what);
}

static int predict_sizes(struct request *r)
{
    struct nrg_what_if rows[MOST_WHAT_IFS] = {0};
    const struct what_ifs *w = &r->v->what_if.items[0];
    const char *json = r->v->json;
    size_t refused = 0;
    for (size_t i = 0; i < w->n; i++) {
        predict_size(r, w->sizes[i], &rows[i]);
        refused += rows[i].refused;
    }
    if (refused == w->n) /* why, once */
        return nrg_complain(&r->err, 1);
    struct nrg_fitted shown;
    bool text = !nrg_is_stdout(json);
    FILE *out = text ? nrg_fitted_begin(&shown, stdout) : NULL;
    if (out)
        nrg_what_if_text(w->name, rows, w->n, out);
    if (text && nrg_fitted_end(&shown))
        return 1;
    return json ? nrg_print_json(nrg_what_if_json(w->name, rows, w->n), json) : 0;
}

/* ---- a language model ---- */

static int predict_llm(const struct nrg_cli *cli, struct request *r)
{
    const struct values *v = r->v;
    struct nrg_llm_request q = {.config = v->llm,
                                .profile = &r->profile,
                                .profile_name = v->profile,
                                .how = {.memory_bytes = v->memory_bytes, .force = v->force},
                                .n_tables = v->what_if.n,
                                .json = v->json};
    q.load = (struct nrg_llm_load){.batch = v->batch ? v->batch : 1,
                                   .prompt = v->prompt ? v->prompt : 512,
                                   .output = v->output ? v->output : -1,
                                   .tp = v->tp,
                                   .gpus = v->gpus ? v->gpus
                                           : v->tp ? v->tp
                                                   : 1,
                                   .weights = (enum nrg_llm_dtype)v->dtype,
                                   .cache = (enum nrg_llm_dtype)v->kv_dtype};
    for (size_t i = 0; i < v->what_if.n; i++)
        q.tables[i] = (struct nrg_llm_sizes){v->what_if.items[i].name, v->what_if.items[i].sizes,
                                             v->what_if.items[i].n};
    if (v->gpu && !(q.how.gpu = nrg_gpu_find(v->gpu, &r->err)))
        return nrg_complain(&r->err, 1);
    return nrg_predict_llm(cli, &q);
}

/* ---- what is asked for ---- */

static void collect_sizes(struct request *r)
{
    const struct values *v = r->v;
    if (v->batch)
        r->sizes[r->n_sizes++] = (struct nrg_size){"batch", v->batch};
    if (v->seq)
        r->sizes[r->n_sizes++] = (struct nrg_size){"seq", v->seq};
    for (size_t i = 0; i < v->dims.n; i++)
        r->sizes[r->n_sizes++] = (struct nrg_size){v->dims.names[i], v->dims.sizes[i]};
}

static bool is_unit_of_runs(const char *word)
{
    return !strcmp(word, "steps") || !strcmp(word, "runs");
}

/* `--for 10000 steps` leaves the word as an operand. */
static void drop_unit_of_runs(const struct values *v, int *argc, char ***argv)
{
    if (*argc != 2 || isnan(v->runs))
        return;
    bool first = is_unit_of_runs((*argv)[0]);
    *argv += first;
    *argc -= first || is_unit_of_runs((*argv)[1]);
}

static int check_usage(const struct nrg_cli *cli, const struct values *v, int argc)
{
    bool for_llm = v->prompt || v->output || v->tp || v->gpus || v->dtype || v->kv_dtype ||
                   v->memory_bytes > 0 || v->gpu || v->force;
    if (for_llm && !v->llm)
        return nrg_usage(cli, "--prompt, --output, --tp, --gpus, --gpu, --dtype, --kv-dtype, "
                              "--memory and --force go with --llm config.json");
    if (v->llm && (argc || v->against || v->compare || v->trace || v->params || v->format ||
                   v->seq || v->dims.n || !isnan(v->runs)))
        return nrg_usage(cli, "--llm takes the model's config in place of MODEL, and --batch, "
                              "--prompt, --output, --tp, --gpus, --gpu, --dtype, --kv-dtype, "
                              "--memory, --force and --what-if");
    if (!v->llm && v->what_if.n > 1)
        return nrg_usage(cli, "two --what-if go with --llm only");
    if (argc != 1 && !v->llm && !(v->against && argc == 0))
        return nrg_usage(cli, "wants one model: nrg predict MODEL --profile device.json");
    if (!v->profile)
        return nrg_usage(cli, "--profile device.json is required: see nrg train");
    if (v->what_if.n && v->compare)
        return nrg_usage(cli, "--what-if and --compare can't be combined");
    if (v->against && (v->what_if.n || v->compare || !isnan(v->runs)))
        return nrg_usage(cli, "--against can't be combined with --what-if, --compare or --for");
    if (v->idle >= 0 && !v->against)
        return nrg_usage(cli, "--idle goes with a recording: --against run.nrg");
    return 0;
}

static int read_inputs(struct request *r)
{
    const struct values *v = r->v;
    int rc = nrg_profile_read(&r->profile, v->profile, &r->err);
    if (!rc && v->compare)
        rc = nrg_profile_read(&r->second, v->compare, &r->err);
    if (!rc && v->params)
        rc = nrg_params_read(&r->params, v->params, &r->err);
    if (!rc && v->trace)
        rc = nrg_model_read(v->trace, v->format, &r->trace, &r->err);
    return rc;
}

static int run_predict(struct nrg_cli *cli, void *values, int argc, char **argv)
{
    struct request *r = nrg_calloc(1, sizeof *r);
    if (!r)
        return nrg_out_of_memory();
    r->v = values;
    drop_unit_of_runs(r->v, &argc, &argv);
    int code = check_usage(cli, r->v, argc);
    r->path = argc ? argv[0] : NULL;
    collect_sizes(r);
    if (!code && read_inputs(r))
        code = nrg_complain(&r->err, 1);
    else if (!code)
        code = r->v->llm         ? predict_llm(cli, r)
               : r->v->against   ? predict_against(r)
               : r->v->what_if.n ? predict_sizes(r)
                                 : predict_one(r);
    nrg_model_release(&r->params);
    nrg_model_release(&r->trace);
    nrg_profile_release(&r->profile);
    nrg_profile_release(&r->second);
    free(r);
    return code;
}

const struct nrg_command nrg_cmd_predict = {
    .name = "predict",
    .summary = "what a model will cost, before running it",
    .synopsis = "[OPTIONS] (MODEL | --llm CONFIG) --profile device.json [--against run.nrg]",
    .about =
        "Predicts the energy of one run of a model, module by module, with an interval and with\n"
        "the terms that it is made of. MODEL is anything that nrg graph reads; the profile comes\n"
        "from nrg train. Where operators are of kinds or sizes that were never measured on the\n"
        "device, the interval widens and the reason is said; a graph with operators of unknown\n"
        "cost is refused.\n\n"
        "Other sizes than the graph's own need symbolic dimensions (torch.export, ONNX) or a\n"
        "second trace of the same model at another size.\n\n"
        "With --against a recording with spans (nrg run --torch, nrg.torch) is held beside it,\n"
        "module by module: forward passes only. Without MODEL the graph that the recording keeps\n"
        "is used.\n\n"
        "With --llm a language model is predicted from its config alone: joules and seconds of\n"
        "prompt and output, and whether it fits into the memory. The profile is one of servers\n"
        "(nrg train on ML.ENERGY's rows) or of operators (docs/llm.md).",
    .examples = "  nrg predict bert.txt --profile device_1.json\n"
                "  nrg predict bert.txt --profile device_1.json --for 10000 steps\n"
                "  nrg predict bert.txt --profile device_1.json --compare device_2.json\n"
                "  nrg predict b8.txt --trace b16.txt --profile dev.json --what-if batch=8,32\n"
                "  nrg predict --profile here.json --against run.nrg\n"
                "  nrg predict --llm config.json --profile h100.json --prompt 512 --batch 32\n"
                "  nrg predict --llm config.json --profile h100.json --gpu B200 --gpus 4\n",
    .options = options,
    .values_size = sizeof(struct values),
    .defaults = &defaults,
    .run = run_predict,
};
