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
#include "graph/param_list.h"
#include "graph/reader.h"
#include "report/prediction/report.h"

#define DEFAULT_DEPTH 3
#define DEFAULT_TERMS 8
#define MOST_SIZES    8
#define MOST_WHAT_IFS 64

struct values {
    const char *profile, *compare, *params, *format, *trace, *steps, *what_if, *against, *idle;
    const char *json;
    struct nrg_list dims;
    int batch, seq, depth;
    bool all, explain;
};

static const struct nrg_opt options[] = {
    {"profile", 'p', NRG_OPT_STRING, "FILE", "the device's profile (required): see nrg train",
     offsetof(struct values, profile)},
    {"compare", 'c', NRG_OPT_STRING, "FILE", "a second device's profile, side by side",
     offsetof(struct values, compare)},
    {"batch", 'b', NRG_OPT_COUNT, "N", "another batch size", offsetof(struct values, batch)},
    {"seq", 's', NRG_OPT_COUNT, "N", "another sequence length", offsetof(struct values, seq)},
    {"dim", 0, NRG_OPT_LIST, "NAME=N", "a symbolic dimension's size; may be repeated",
     offsetof(struct values, dims)},
    {"trace", 't', NRG_OPT_STRING, "FILE",
     "the same model traced at another size, which tells what depends on the size",
     offsetof(struct values, trace)},
    {"what-if", 'w', NRG_OPT_STRING, "NAME=N,N", "a table over sizes, such as batch=8,16,32",
     offsetof(struct values, what_if)},
    {"against", 0, NRG_OPT_STRING, "FILE.nrg",
     "a recording with spans: predicted against measured, module by module",
     offsetof(struct values, against)},
    {"idle", 0, NRG_OPT_STRING, "RULE",
     "with --against, idle energy in what was measured: apart (not in it; default), share (of the "
     "time that a module runs) or none (not told apart)",
     offsetof(struct values, idle)},
    {"for", 0, NRG_OPT_STRING, "N", "the energy of N steps", offsetof(struct values, steps)},
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
    double runs;
    struct nrg_size sizes[MOST_SIZES + 1]; /* the last one is the what-if's */
    size_t n_sizes;
    char names[MOST_SIZES][64];
    struct nrg_model params, trace;
    struct nrg_profile profile, second;
    struct nrg_error err;
};

static struct nrg_model_request model_request(const struct request *r, size_t n_sizes)
{
    return (struct nrg_model_request){.path = r->path,
                                      .format = r->v->format,
                                      .params = r->v->params ? &r->params : NULL,
                                      .trace = r->v->trace ? &r->trace : NULL,
                                      .sizes = r->sizes,
                                      .n_sizes = n_sizes};
}

static int count(struct request *r, struct nrg_counted *c, size_t n_sizes)
{
    const struct nrg_model_request request = model_request(r, n_sizes);
    return nrg_counted_read(c, &request, &r->err);
}

/* ---- one size ---- */

static int show(struct request *r, const struct nrg_prediction_report *a,
                const struct nrg_prediction_report *b)
{
    const struct values *v = r->v;
    int depth = v->all ? 0 : v->depth ? v->depth : DEFAULT_DEPTH;
    bool text = !v->json || strcmp(v->json, "-");
    if (text && b)
        nrg_prediction_compare_text(a, b, depth, stdout);
    else if (text)
        nrg_prediction_text(a, depth, v->explain ? 1000 : DEFAULT_TERMS, stdout);
    if (!v->json)
        return 0;
    return nrg_print_json(b ? nrg_prediction_compare_json(a, b) : nrg_prediction_json(a), v->json);
}

static int predict_one(struct request *r)
{
    struct nrg_counted c;
    struct nrg_prediction first = {0}, second = {0};
    const struct values *v = r->v;
    int rc = count(r, &c, r->n_sizes), code = 0;
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
                                      .runs = r->runs};
    struct nrg_prediction_report b = a;
    b.profile = &r->second;
    b.profile_name = v->compare;
    b.prediction = &second;
    code = rc ? nrg_complain(&r->err, 1) : show(r, &a, v->compare ? &b : NULL);
    nrg_prediction_release(&first);
    nrg_prediction_release(&second);
    nrg_counted_release(&c);
    return code;
}

/* ---- a recording ---- */

static int predict_against(struct request *r)
{
    const struct values *v = r->v;
    const struct nrg_against_request request = {.model = model_request(r, r->n_sizes),
                                                .recording = v->against,
                                                .profile = &r->profile,
                                                .profile_name = v->profile,
                                                .idle = v->idle,
                                                .depth = v->all     ? 0
                                                         : v->depth ? v->depth
                                                                    : DEFAULT_DEPTH,
                                                .json = v->json};
    return nrg_predict_against(&request);
}

/* ---- several sizes ---- */

static void predict_size(struct request *r, const char *name, struct nrg_what_if *row)
{
    struct nrg_counted c;
    struct nrg_prediction p = {0};
    r->sizes[r->n_sizes] = (struct nrg_size){name, (int64_t)row->value};
    int rc = count(r, &c, r->n_sizes + 1);
    if (!rc) {
        rc = nrg_predict(&p, &r->profile, &c.reduced, &c.tree, &r->err);
        row->items = c.batch > 0 ? (double)c.batch : NAN;
        if (!rc) {
            row->estimate = p.nodes[0].estimate;
            nrg_copy(row->why, sizeof row->why, p.n_reasons ? p.reasons[0] : "");
        }
        nrg_prediction_release(&p);
        nrg_counted_release(&c);
    }
    row->refused = rc != 0;
    if (rc)
        nrg_copy(row->why, sizeof row->why, r->err.what);
}

/* "batch=8,16,32"; how many, or -EINVAL. */
static int parse_what_if(const char *text, char *name, size_t size, double *values)
{
    const char *equals = strchr(text, '=');
    int n = 0;
    if (!equals || equals == text || (size_t)(equals - text) >= size)
        return -EINVAL;
    snprintf(name, size, "%.*s", (int)(equals - text), text);
    for (const char *p = equals + 1;; n++) {
        size_t len = strcspn(p, ",");
        int64_t value;
        if (n == MOST_WHAT_IFS || nrg_parse_i64(p, len, &value) || value < 1)
            return -EINVAL;
        values[n] = (double)value;
        if (!p[len])
            return n + 1;
        p += len + 1;
    }
}

static int predict_sizes(struct request *r)
{
    struct nrg_what_if rows[MOST_WHAT_IFS] = {0};
    double values[MOST_WHAT_IFS];
    char name[64];
    int n = parse_what_if(r->v->what_if, name, sizeof name, values), refused = 0;
    if (n < 0) {
        fprintf(stderr, "nrg predict: --what-if wants sizes such as batch=8,16,32, not '%s'\n",
                r->v->what_if);
        return 2;
    }
    for (int i = 0; i < n; i++) {
        rows[i].value = values[i];
        predict_size(r, name, &rows[i]);
        refused += rows[i].refused;
    }
    if (refused == n) /* why, once */
        return nrg_complain(&r->err, 1);
    if (!r->v->json || strcmp(r->v->json, "-"))
        nrg_what_if_text(name, rows, (size_t)n, stdout);
    return r->v->json ? nrg_print_json(nrg_what_if_json(name, rows, (size_t)n), r->v->json) : 0;
}

/* ---- what is asked for ---- */

static int add_size(struct request *r, const char *name, int64_t value)
{
    if (r->n_sizes == MOST_SIZES)
        return -1;
    r->sizes[r->n_sizes++] = (struct nrg_size){name, value};
    return 0;
}

static int read_sizes(struct request *r)
{
    const struct values *v = r->v;
    int rc = v->batch ? add_size(r, "batch", v->batch) : 0;
    if (!rc && v->seq)
        rc = add_size(r, "seq", v->seq);
    for (size_t i = 0; !rc && i < v->dims.n; i++) {
        const char *text = v->dims.items[i], *equals = strchr(text, '=');
        int64_t value = 0;
        if (!equals || (size_t)(equals - text) >= sizeof r->names[i] || i == MOST_SIZES ||
            nrg_parse_i64(equals + 1, strlen(equals + 1), &value) || value < 1) {
            fprintf(stderr, "nrg predict: --dim wants NAME=N, not '%s'\n", text);
            return 2;
        }
        snprintf(r->names[i], sizeof r->names[i], "%.*s", (int)(equals - text), text);
        rc = add_size(r, r->names[i], value);
    }
    if (rc)
        fprintf(stderr, "nrg predict: more than %d sizes\n", MOST_SIZES);
    return rc ? 2 : 0;
}

/* `--for 10000 steps` leaves the word as an operand. */
static int check(struct request *r, int argc, char **argv)
{
    const struct values *v = r->v;
    r->runs = NAN;
    if (argc == 2 && v->steps && (!strcmp(argv[0], "steps") || !strcmp(argv[0], "runs"))) {
        argv++;
        argc--;
    } else if (argc == 2 && v->steps && (!strcmp(argv[1], "steps") || !strcmp(argv[1], "runs"))) {
        argc--;
    }
    if (argc != 1 && !(v->against && argc == 0))
        fprintf(stderr, "nrg predict: wants one model: nrg predict MODEL --profile device.json\n");
    else if (!v->profile)
        fprintf(stderr, "nrg predict: --profile device.json tells of the device: see nrg train\n");
    else if (v->what_if && v->compare)
        fprintf(stderr, "nrg predict: --what-if and --compare are one at a time\n");
    else if (v->against && (v->what_if || v->compare || v->steps))
        fprintf(stderr, "nrg predict: --against goes without --what-if, --compare and --for\n");
    else if (v->idle && !v->against)
        fprintf(stderr, "nrg predict: --idle is about a recording: --against run.nrg\n");
    else if (v->batch < 0 || v->seq < 0)
        fprintf(stderr, "nrg predict: sizes are 1 or more\n");
    else if (v->steps && (nrg_parse_double(v->steps, strlen(v->steps), &r->runs) || !(r->runs > 0)))
        fprintf(stderr, "nrg predict: --for wants a number of steps, not '%s'\n", v->steps);
    else {
        r->path = argc ? argv[0] : NULL;
        return read_sizes(r);
    }
    return 2;
}

static int read_inputs(struct request *r)
{
    const struct values *v = r->v;
    int rc = nrg_profile_read(&r->profile, v->profile, &r->err);
    if (!rc && v->compare)
        rc = nrg_profile_read(&r->second, v->compare, &r->err);
    if (!rc && v->params) {
        rc = nrg_model_read(v->params, NULL, &r->params, &r->err);
        if (!rc)
            rc = nrg_params_from_graph(&r->params, &r->err);
    }
    if (!rc && v->trace)
        rc = nrg_model_read(v->trace, v->format, &r->trace, &r->err);
    return rc;
}

static int run(struct nrg_cli *cli, void *values, int argc, char **argv)
{
    struct request *r = calloc(1, sizeof *r);
    (void)cli;
    if (!r) {
        fprintf(stderr, "nrg: out of memory\n");
        return 1;
    }
    r->v = values;
    int code = check(r, argc, argv);
    if (!code && read_inputs(r))
        code = nrg_complain(&r->err, 1);
    else if (!code)
        code = r->v->against   ? predict_against(r)
               : r->v->what_if ? predict_sizes(r)
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
    .synopsis = "[OPTIONS] MODEL --profile device.json [--against run.nrg]",
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
        "is used.",
    .examples =
        "  nrg predict bert.txt --profile device_1.json\n"
        "  nrg predict bert.txt --profile device_1.json --for 10000 steps\n"
        "  nrg predict bert.txt --profile device_1.json --compare device_2.json\n"
        "  nrg predict b8.txt --trace b16.txt --profile device_1.json --what-if batch=8,32\n"
        "  nrg predict --profile here.json --against run.nrg\n",
    .options = options,
    .values_size = sizeof(struct values),
    .run = run,
};
