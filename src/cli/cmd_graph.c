/*
 * nrg graph: a model's modules, operators and costs, before anything runs. Reads, reduces, counts,
 * then shows in the way asked for; all of that is in graph/ and report/.
 */
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/common.h"
#include "graph/param_list.h"
#include "graph/reader.h"
#include "report/graph/report.h"

extern char **environ;

#define DEFAULT_DEPTH 3

struct values {
    const char *json, *csv, *dot, *svg;
    const char *sort, *params, *convention, *format;
    struct nrg_list explain;
    int depth;
    bool operators, reduced, compare, all;
};

static const struct nrg_opt options[] = {
    {"depth", 'd', NRG_OPT_COUNT, "N", "levels of modules to show (default 3)",
     offsetof(struct values, depth)},
    {"all", 'a', NRG_OPT_FLAG, NULL, "all levels of modules", offsetof(struct values, all)},
    {"sort", 's', NRG_OPT_STRING, "KEY", "a list sorted by macs, flops, params or bytes",
     offsetof(struct values, sort)},
    {"ops", 'o', NRG_OPT_FLAG, NULL, "operators instead of modules",
     offsetof(struct values, operators)},
    {"params", 'p', NRG_OPT_STRING, "FILE",
     "shapes of the parameters: .pt, .safetensors, modules.json, an executed or frozen graph",
     offsetof(struct values, params)},
    {"convention", 'c', NRG_OPT_STRING, "NAME",
     "count as nrg (default), torch (flop_counter), fvcore, torchinfo or irene do",
     offsetof(struct values, convention)},
    {"json", 'j', NRG_OPT_FILE, "FILE", "everything as JSON, to stdout or FILE",
     offsetof(struct values, json)},
    {"csv", 0, NRG_OPT_FILE, "FILE", "the table as CSV, to stdout or FILE",
     offsetof(struct values, csv)},
    {"dot", 0, NRG_OPT_FILE, "FILE", "the reduced graph for Graphviz, to stdout or FILE",
     offsetof(struct values, dot)},
    {"svg", 0, NRG_OPT_FILE, "FILE", "a drawing through Graphviz's dot, to stdout or FILE",
     offsetof(struct values, svg)},
    {"compare", 0, NRG_OPT_FLAG, NULL, "two models side by side", offsetof(struct values, compare)},
    {"reduced", 'r', NRG_OPT_FLAG, NULL, "print the reduced graph",
     offsetof(struct values, reduced)},
    {"explain", 'e', NRG_OPT_LIST, "%ID", "which rule kept or dropped a node; may be repeated",
     offsetof(struct values, explain)},
    {"format", 'f', NRG_OPT_STRING, "NAME", "the file's format instead of looking at its content",
     offsetof(struct values, format)},
    {0},
};

/* One file, read and counted. */
struct analysis {
    struct nrg_model model;
    struct nrg_reduced reduced;
    struct nrg_module_tree tree;
    struct nrg_graph_report report;
    bool read;
};

static void release(struct analysis *a)
{
    if (!a->read)
        return;
    nrg_module_tree_release(&a->tree);
    if (a->report.reduced)
        nrg_reduced_release(&a->reduced);
    nrg_model_release(&a->model);
}

static int analyse(struct analysis *a, const char *path, const struct values *v,
                   const struct nrg_model *params, struct nrg_error *err)
{
    enum nrg_convention convention = NRG_CONVENTION_NRG;
    *a = (struct analysis){0};
    int rc = nrg_model_read(path, v->format, &a->model, err);
    if (rc)
        return rc;
    a->read = true;
    a->report.name = !strcmp(path, "-") ? "stdin" : path;
    a->report.model = &a->model;
    a->report.params = params;
    a->report.tree = &a->tree;
    a->report.convention = v->convention ? v->convention : "nrg";
    nrg_convention_from_name(a->report.convention, &convention);
    if (a->model.n_graphs) {
        if ((rc = nrg_reduce(&a->model, params, &a->reduced, err))) {
            nrg_copy(err->where, sizeof err->where, a->report.name);
            return rc;
        }
        a->report.reduced = &a->reduced;
        rc = nrg_cost_all(&a->reduced, convention);
    }
    if (!rc)
        rc = nrg_totals_of(&a->model, a->report.reduced, params, &a->report.totals);
    if (!rc)
        rc = nrg_module_tree_make(&a->tree, &a->model, a->report.reduced, params);
    return rc ? nrg_fail(err, rc, path, "out of memory") : 0;
}

static void say_warnings(struct nrg_cli *cli, const struct analysis *a)
{
    for (size_t i = 0; i < a->model.n_warnings; i++)
        nrg_log(&cli->ctx, NRG_WARNING, "%s: %s", a->report.name, a->model.warnings[i]);
    for (size_t i = 0; a->report.reduced && i < a->reduced.n_warnings; i++)
        nrg_log(&cli->ctx, NRG_WARNING, "%s: %s", a->report.name, a->reduced.warnings[i]);
}

/* ---- files ---- */

static FILE *open_output(const char *path)
{
    FILE *out = strcmp(path, "-") ? fopen(path, "we") : stdout;
    if (!out)
        fprintf(stderr, "nrg: %s: %s\n", path, strerror(errno));
    return out;
}

static int close_output(FILE *out, const char *path)
{
    int failed = fflush(out) || ferror(out);
    if (out != stdout)
        failed |= fclose(out) != 0;
    if (failed)
        fprintf(stderr, "nrg: %s: cannot write: %s\n", path, strerror(errno));
    return failed ? 1 : 0;
}

static int write_csv(const struct nrg_graph_report *report, const struct values *v)
{
    FILE *out = open_output(v->csv);
    if (!out)
        return 1;
    nrg_graph_csv(report, v->operators, out);
    return close_output(out, v->csv);
}

static int write_dot(const struct nrg_graph_report *report, const char *path)
{
    FILE *out = open_output(path);
    if (!out)
        return 1;
    nrg_graph_dot(report, out);
    return close_output(out, path);
}

static int run_dot(const char *input, const char *output)
{
    const char *argv[] = {"dot", "-Tsvg", input, "-o", output, NULL};
    pid_t pid;
    int status;
    if (!strcmp(output, "-"))
        argv[3] = NULL;
    int rc = posix_spawnp(&pid, "dot", NULL, NULL, (char *const *)argv, environ);
    if (rc == ENOENT) {
        fprintf(stderr, "nrg: --svg needs Graphviz's program dot, which is not installed: install "
                        "graphviz, or use --dot\n");
        return 1;
    }
    if (rc) {
        fprintf(stderr, "nrg: cannot run dot: %s\n", strerror(rc));
        return 1;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fprintf(stderr, "nrg: dot failed\n");
    return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : 1;
}

static int write_svg(const struct nrg_graph_report *report, const char *path)
{
    char name[] = "/tmp/nrg-graph-XXXXXX";
    int fd = mkstemp(name);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out) {
        fprintf(stderr, "nrg: cannot make a temporary file: %s\n", strerror(errno));
        if (fd >= 0)
            close(fd);
        return 1;
    }
    nrg_graph_dot(report, out);
    int code = close_output(out, name);
    if (!code)
        code = run_dot(name, path);
    unlink(name);
    return code;
}

/* ---- showing ---- */

static bool needs_graph(const struct values *v)
{
    return v->dot || v->svg || v->reduced || v->explain.n || v->operators;
}

static int explain(const struct nrg_graph_report *report, const struct values *v)
{
    int code = 0;
    for (size_t i = 0; i < v->explain.n; i++) {
        if (nrg_graph_explain(report, v->explain.items[i], stdout))
            continue;
        fprintf(stderr, "nrg: %s: no node makes '%s'\n", report->name, v->explain.items[i]);
        code = 1;
    }
    return code;
}

static int show(struct nrg_cli *cli, const struct nrg_graph_report *report, const struct values *v)
{
    struct nrg_graph_view view = {.colour = nrg_use_colour(stdout),
                                  .operators = v->operators,
                                  .sort = v->sort,
                                  .depth = v->all     ? 0
                                           : v->depth ? v->depth
                                                      : DEFAULT_DEPTH};
    if (!report->reduced && needs_graph(v)) {
        fprintf(stderr, "nrg: %s: holds parameters but no graph\n", report->name);
        return 1;
    }
    if (v->explain.n)
        return explain(report, v);
    if (v->reduced)
        nrg_graph_reduced_text(report, stdout);
    if (v->csv)
        return write_csv(report, v);
    if (v->dot)
        return write_dot(report, v->dot);
    if (v->svg)
        return write_svg(report, v->svg);
    if (!v->reduced && !cli->quiet && !(v->json && v->json[0] == '-'))
        nrg_graph_text(report, &view, stdout);
    return 0;
}

static int compare(const struct analysis *a, const struct values *v)
{
    if (v->json)
        return nrg_print_json(nrg_graph_compare_json(&a[0].report, &a[1].report), v->json);
    nrg_graph_compare_text(&a[0].report, &a[1].report, stdout);
    return 0;
}

static int write_json(const struct analysis *a, size_t n, const struct values *v)
{
    if (n == 1)
        return nrg_print_json(nrg_graph_json(&a[0].report), v->json);
    json_t *doc = json_pack("{s:s, s:[]}", "schema", "nrg.graph-list/1", "graphs");
    for (size_t i = 0; doc && i < n; i++)
        json_array_append_new(json_object_get(doc, "graphs"), nrg_graph_json(&a[i].report));
    return nrg_print_json(doc, v->json);
}

static int check(const struct values *v, int argc)
{
    enum nrg_convention convention;
    static const char *const keys[] = {"macs", "flops", "params", "bytes"};
    bool known = !v->sort;
    for (size_t i = 0; v->sort && i < sizeof keys / sizeof *keys; i++)
        known |= !strcmp(keys[i], v->sort);
    if (argc < 1)
        fprintf(stderr, "nrg graph: which file? nrg graph FILE (- is stdin)\n");
    else if (v->compare && argc != 2)
        fprintf(stderr, "nrg graph: --compare wants two files\n");
    else if (!known)
        fprintf(stderr, "nrg graph: --sort is macs, flops, params or bytes, not '%s'\n", v->sort);
    else if (v->convention && nrg_convention_from_name(v->convention, &convention))
        fprintf(stderr,
                "nrg graph: --convention is nrg, torch, fvcore, torchinfo or irene, not '%s'\n",
                v->convention);
    else
        return 0;
    return 2;
}

static int show_all(struct nrg_cli *cli, const struct values *v, struct analysis *files, int n)
{
    int code = 0;
    for (int i = 0; i < n; i++)
        say_warnings(cli, &files[i]);
    if (v->compare)
        return compare(files, v);
    for (int i = 0; i < n && !code; i++) {
        if (i && !v->json && !v->csv)
            putchar('\n');
        code = show(cli, &files[i].report, v);
    }
    return !code && v->json ? write_json(files, (size_t)n, v) : code;
}

static int run(struct nrg_cli *cli, void *values, int argc, char **argv)
{
    const struct values *v = values;
    struct nrg_error err;
    struct nrg_model params = {0};
    int code = check(v, argc), n = 0;
    if (code)
        return code;
    if (v->params && nrg_model_read(v->params, NULL, &params, &err))
        return nrg_complain(&err, 1);
    struct analysis *files = calloc((size_t)argc, sizeof *files);
    int rc = files ? 0 : nrg_fail(&err, -ENOMEM, NULL, "out of memory");
    if (!rc && v->params)
        rc = nrg_params_from_graph(&params, &err);
    for (; !rc && n < argc; n++)
        rc = analyse(&files[n], argv[n], v, v->params ? &params : NULL, &err);
    code = rc ? nrg_complain(&err, 1) : show_all(cli, v, files, n);
    for (int i = 0; i < n; i++)
        release(&files[i]);
    free(files);
    nrg_model_release(&params);
    return code;
}

const struct nrg_command nrg_cmd_graph = {
    .name = "graph",
    .summary = "what a model computes: modules, parameters, MACs, bytes",
    .synopsis = "[OPTIONS] FILE...",
    .about =
        "Reads a model, keeps the operators that compute or move tensors, and counts parameters,\n"
        "multiply-accumulates (MACs), floating-point operations and ideal memory traffic, per\n"
        "operator and per module. Nothing is executed. Reads TorchScript graph texts (as printed\n"
        "by any PyTorch), .pt archives and checkpoints, .pt2, ONNX, safetensors, GGUF, TensorRT\n"
        "engine infos; - is stdin.\n\n"
        "Traced graph texts do not print the shapes of weights: --params adds them, otherwise\n"
        "convolutions are counted as unknown. What can't be known is never counted as zero.",
    .examples = "  nrg graph resnet18.txt --params resnet18.pt   # exact, module by module\n"
                "  nrg graph model.onnx --sort macs              # the dearest layers first\n"
                "  nrg graph model.pt                            # parameters per module\n"
                "  python -c 'print(traced.inlined_graph)' | nrg graph -\n"
                "  nrg graph model.txt --explain %input.5        # why is this node not counted?\n"
                "  nrg graph --compare small.txt large.txt\n",
    .options = options,
    .values_size = sizeof(struct values),
    .run = run,
};
