/*
 * The ML.ENERGY leaderboard's rows: a JSON list with an object per configuration of a model on a
 * server (task, model, GPUs, batch, joules per output token…). A row becomes a measurement of level
 * `model`: joules of one output token, of kind `task`, of the model that all variants of one
 * architecture share. Its work is counted (predict/llm/work.h) from the model's architecture: from
 * the row's own "config", from a file that the user names, by the public name, or, with a note,
 * from its number of parameters.
 *
 * Rows of pictures and films, which have no tokens, and rows that lack what is needed are left
 * out and counted. Latency, throughput and power are features of the run (`time_s`), never of a
 * prediction.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "predict/dataset/internal.h"
#include "predict/dataset/llm_row.h"
#include "predict/llm/known.h"

#define MOST_ROWS 1000000

/*
 * Tokens of a prompt, which the rows do not have: assumed for these tasks. Those of pictures and
 * films depend on the model; their rows are used where they are asked for by name. The last line is
 * for tasks not listed.
 */
static const struct {
    const char *task;
    double tokens;
    bool text;
} prompts[] = {
    {"lm-arena-chat", 100, true}, {"gpqa", 300, true},         {"sourcegraph-fim", 1500, true},
    {"image-chat", 1500, false},  {"video-chat", 4000, false}, {NULL, 500, false},
};

struct mlenergy {
    struct nrg_dataset *set;
    const struct nrg_read_options *options;
    const char *file;
    struct nrg_error *err;
    json_t *row;
    long long line;
};

static int no_memory(const struct mlenergy *in)
{
    return nrg_fail(in->err, -ENOMEM, in->file, "out of memory");
}

static int note(const struct mlenergy *in, const char *text)
{
    return nrg_dataset_note(in->set, in->file, in->line, text) ? no_memory(in) : 0;
}

/* NAN: absent, null. A text in place of a number breaks the form: -EBADMSG. */
static int get_number(const struct mlenergy *in, const char *key, double *out)
{
    const json_t *value = json_object_get(in->row, key);
    *out = NAN;
    if (!value || json_is_null(value))
        return 0;
    if (!json_is_number(value))
        return nrg_fail_at(in->err, -EBADMSG, in->file, in->line, "%s is not a number", key);
    *out = json_number_value(value);
    return 0;
}

/* "": absent. */
static const char *get_text(const struct mlenergy *in, const char *key)
{
    const char *text = json_string_value(json_object_get(in->row, key));
    return text ? text : "";
}

/* ---- what a row says ---- */

struct entry {
    const char *model, *task, *precision, *device;
    double energy_j, request_j, output, input, batch, seats, gpus, tp, active, params, throughput;
    double latency_ms;
};

static int get_entry(const struct mlenergy *in, struct entry *e)
{
    const struct {
        const char *key;
        double *to;
    } numbers[] = {{"energy_per_token_joules", &e->energy_j},
                   {"energy_per_request_joules", &e->request_j},
                   {"avg_output_len", &e->output},
                   {"avg_input_len", &e->input},
                   {"avg_batch_size", &e->batch},
                   {"max_num_seqs", &e->seats},
                   {"num_gpus", &e->gpus},
                   {"tp", &e->tp},
                   {"act", &e->active},
                   {"tot", &e->params},
                   {"output_throughput_tokens_per_sec", &e->throughput},
                   {"median_itl_ms", &e->latency_ms}};
    int rc = 0;
    for (size_t i = 0; !rc && i < sizeof numbers / sizeof *numbers; i++)
        rc = get_number(in, numbers[i].key, numbers[i].to);
    e->model = get_text(in, "model");
    e->task = get_text(in, "task");
    e->precision = get_text(in, "prec");
    e->device = get_text(in, "gpu_model");
    return rc;
}

/* Fills in what other fields say. NULL, or why the row can't be used. */
static const char *complete(struct entry *e)
{
    if (isnan(e->output) && e->energy_j > 0)
        e->output = e->request_j / e->energy_j;
    if (isnan(e->energy_j) && e->output > 0)
        e->energy_j = e->request_j / e->output;
    if (isnan(e->batch))
        e->batch = e->seats;
    if (isnan(e->active))
        e->active = e->params;
    if (isnan(e->energy_j))
        return "no joules per output token: row left out";
    if (!(e->energy_j > 0 && e->energy_j < 1e9))
        return "joules per token are not a positive number: row left out";
    if (!(e->output >= 1 && e->output <= 1e8))
        return "no length of the output: row left out";
    if (!(e->batch > 0 && e->batch <= 1e7))
        return "no batch size: row left out";
    bool cut = isnan(e->tp) || (e->tp >= 1 && fmod(e->gpus, e->tp) == 0);
    if (!(e->gpus >= 1 && e->gpus <= 1e5) || !cut)
        return "no number of GPUs, or tensor parallelism does not divide it: row left out";
    if (!*e->model || !*e->task)
        return "no name of a model or task: row left out";
    if (*e->precision && nrg_llm_dtype_find(e->precision) <= 0)
        return "a precision that is not known: row left out";
    return NULL;
}

/* ---- the model ---- */

static int find_model(const struct mlenergy *in, const struct entry *e, struct nrg_llm_config *c,
                      char *base, size_t size, bool *found)
{
    const json_t *own = json_object_get(in->row, "config");
    const char *file = nrg_llm_row_config(in->options, e->model), *name;
    *found = true;
    nrg_llm_base_name(e->model, base, size);
    if (file)
        return nrg_llm_config_read(c, file, in->err);
    if (json_is_object(own))
        return nrg_llm_config_parse(c, own, in->file, in->err);
    name = nrg_llm_known(c, e->model, 1e9 * e->params);
    if (name) {
        nrg_copy(base, size, name);
        return 0;
    }
    *found = e->active > 0 && e->active <= e->params && e->params < 1e6;
    if (!*found)
        return note(in, "a model whose architecture is not known: row left out");
    nrg_llm_guess(c, 1e9 * e->active, 1e9 * e->params);
    return note(in, "the architecture of a model is not known and made up from its number of "
                    "parameters: --config MODEL=config.json says it");
}

static enum nrg_llm_dtype dtype_of(const char *precision)
{
    return *precision ? (enum nrg_llm_dtype)nrg_llm_dtype_find(precision) : NRG_LLM_AS_STORED;
}

/* NULL: of a task whose prompts are not known and that was not asked for. */
static const char *find_prompt(const struct mlenergy *in, const struct entry *e, double *tokens)
{
    size_t i = 0;
    *tokens = e->input;
    if (e->input > 0 && e->input <= 1e8)
        return "";
    while (prompts[i].task && strcmp(prompts[i].task, e->task) != 0)
        i++;
    *tokens = prompts[i].tokens;
    return prompts[i].text      ? ""
           : in->options->tasks ? "the length of the task's prompts is not known, and assumed"
                                : NULL;
}

/* ---- the measurement ---- */

/* Seconds of one output token; NAN: the row does not say. */
static double time_of(const struct entry *e)
{
    return e->throughput > 0   ? 1 / e->throughput
           : e->latency_ms > 0 ? e->latency_ms * 1e-3 / e->batch
                               : NAN;
}

static int add_entry(struct mlenergy *in, const struct entry *e)
{
    struct nrg_llm_config config;
    char base[200];
    bool found;
    double prompt;
    const char *caution = find_prompt(in, e, &prompt);
    if (!caution)
        return note(in, "the length of the task's prompts is not known: row left out unless --task "
                        "names it");
    int rc = *caution ? note(in, caution) : 0;
    if (!rc)
        rc = find_model(in, e, &config, base, sizeof base, &found);
    if (rc || !found)
        return rc;
    const struct nrg_llm_row row = {
        .device = *e->device ? e->device : "GPU",
        .model = base,
        .node = e->model,
        .kind = e->task,
        .provenance = "measured",
        .energy_j = e->energy_j,
        .time_s = time_of(e),
        .params = e->params > 0 ? 1e9 * e->params : NAN,
        .repeats = NAN,
        .load = {.batch = e->batch,
                 .prompt = prompt,
                 .output = e->output,
                 .gpus = e->gpus,
                 .tp = isnan(e->tp) ? nrg_llm_default_tp(&config, e->gpus) : e->tp,
                 .weights = dtype_of(e->precision)}};
    rc = nrg_llm_row_add(in->set, &config, &row);
    return rc == -ENOMEM ? no_memory(in)
           : rc          ? note(in, "a load that no server has: row left out")
                         : 0;
}

/* Whether a list with commas has the word; NULL: any. */
static bool is_wanted(const char *list, const char *word)
{
    size_t len = strlen(word);
    while (list && *list) {
        size_t n = strcspn(list, ",");
        if (n == len && !memcmp(list, word, n))
            return true;
        list += n + (list[n] != 0);
        if (!*list)
            return false;
    }
    return true;
}

static int read_row(struct mlenergy *in)
{
    struct entry e;
    if (!json_is_object(in->row))
        return nrg_fail_at(in->err, -EBADMSG, in->file, in->line, "a row is not an object");
    int rc = get_entry(in, &e);
    if (rc || !is_wanted(in->options->tasks, e.task))
        return rc;
    const char *why = complete(&e);
    return why ? note(in, why) : add_entry(in, &e);
}

int nrg_dataset_read_mlenergy(struct nrg_dataset *set, const char *text, size_t size,
                              const char *name, const struct nrg_read_options *options,
                              struct nrg_error *err)
{
    struct mlenergy in = {.set = set, .options = options, .file = name, .err = err};
    json_error_t why;
    size_t i;
    json_t *doc = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
    if (!doc)
        return nrg_fail_at(err, -EBADMSG, name, why.line, "%s", why.text);
    int rc = json_array_size(doc) > MOST_ROWS
                 ? nrg_fail(err, -EFBIG, name, "has more than %d rows", MOST_ROWS)
                 : nrg_dataset_counted_by(set, "nrg", name, err);
    json_array_foreach(doc, i, in.row)
    {
        in.line = (long long)i + 1;
        if (rc || (rc = read_row(&in)))
            break;
    }
    json_decref(doc);
    return rc;
}
