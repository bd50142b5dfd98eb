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
#include "base/temp.h"
#include "cli/internal.h"
#include "report/graph/report.h"

extern char **environ;

struct values {
    const char *json, *csv, *dot, *svg;
    const char *params, *format;
    int sort, convention;
    struct nrg_list explain;
    int depth;
    bool operators, reduced, compare, all;
};

static const struct values defaults = {.depth = 3};

static const struct nrg_choice sort_keys[] = {
    {"macs", 1, NULL}, {"flops", 2, NULL}, {"params", 3, NULL}, {"bytes", 4, NULL}, {0},
};

static const struct nrg_choice conventions[] = {
    {"nrg", NRG_CONVENTION_NRG, "default"},  {"torch", NRG_CONVENTION_TORCH, "flop_counter"},
    {"fvcore", NRG_CONVENTION_FVCORE, NULL}, {"torchinfo", NRG_CONVENTION_TORCHINFO, NULL},
    {"irene", NRG_CONVENTION_IRENE, NULL},   {0},
};

static const struct nrg_opt options[] = {
    {"depth", 'd', NRG_OPT_COUNT, "N", "levels of modules to show (default 3)",
     offsetof(struct values, depth)},
    {"all", 'a', NRG_OPT_FLAG, NULL, "all levels of modules", offsetof(struct values, all)},
    {"sort", 's', NRG_OPT_CHOICE(sort_keys), "KEY", "a list sorted by ",
     offsetof(struct values, sort)},
    {"ops", 'o', NRG_OPT_FLAG, NULL, "operators instead of modules",
     offsetof(struct values, operators)},
    {"params", 'p', NRG_OPT_STRING, "FILE",
     "shapes of the parameters: .pt, .safetensors, modules.json, an executed or frozen graph",
     offsetof(struct values, params)},
    {"convention", 'c', NRG_OPT_CHOICE(conventions), "NAME",
     "whose way of counting: ", offsetof(struct values, convention)},
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

static void say_warnings(struct nrg_cli *cli, const struct nrg_analysis *a)
{
    for (size_t i = 0; i < a->model.n_warnings; i++)
        nrg_log(&cli->ctx, NRG_WARNING, "%s: %s", a->name, a->model.warnings[i]);
    for (size_t i = 0; i < a->reduced.n_warnings; i++)
        nrg_log(&cli->ctx, NRG_WARNING, "%s: %s", a->name, a->reduced.warnings[i]);
}

/* ---- files ---- */

static int write_csv_or_dot(const struct nrg_analysis *a, const struct values *v)
{
    const char *path = v->csv ? v->csv : v->dot;
    FILE *out = nrg_output_open(path);
    if (!out)
        return 1;
    if (v->csv)
        nrg_graph_csv(a, v->operators, out);
    else
        nrg_graph_dot(a, out);
    return nrg_output_close(out, path, 0);
}

static int run_dot(const char *input, const char *output)
{
    const char *argv[] = {"dot", "-Tsvg", input, "-o", output, NULL};
    pid_t pid;
    int status;
    if (nrg_is_stdout(output))
        argv[3] = NULL;
    int rc = posix_spawnp(&pid, "dot", NULL, NULL, (char *const *)argv, environ);
    if (rc == ENOENT) {
        nrg_say("--svg needs Graphviz's program dot, which is not installed: install "
                "graphviz, or use --dot");
        return 1;
    }
    if (rc) {
        nrg_say("cannot run dot: %s", strerror(rc));
        return 1;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        nrg_say("dot failed");
    return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : 1;
}

static int write_svg(const struct nrg_analysis *a, const char *path)
{
    char name[4096];
    if (nrg_output_check(path)) /* dot itself writes it */
        return 1;
    int n = snprintf(name, sizeof name, "%s/nrg-graph-XXXXXX", nrg_temp_dir());
    int fd = n < (int)sizeof name ? mkstemp(name) : -1;
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out) {
        nrg_say("cannot make a temporary file: %s", strerror(errno));
        if (fd >= 0)
            close(fd);
        return 1;
    }
    nrg_graph_dot(a, out);
    int code = nrg_output_close(out, name, 0);
    if (!code)
        code = run_dot(name, path);
    unlink(name);
    return code;
}

/* ---- showing ---- */

static int explain_nodes(const struct nrg_analysis *a, const struct values *v)
{
    int code = 0;
    for (size_t i = 0; i < v->explain.n; i++) {
        if (nrg_graph_explain(a, v->explain.items[i], stdout))
            continue;
        nrg_say("%s: no node makes '%s'", a->name, v->explain.items[i]);
        code = 1;
    }
    return code;
}

static int show_fitted(const struct nrg_analysis *a, const struct nrg_graph_view *view)
{
    struct nrg_fitted text;
    FILE *out = nrg_fitted_begin(&text, stdout);
    if (out)
        nrg_graph_text(a, view, out);
    return nrg_fitted_end(&text);
}

static int show_model(struct nrg_cli *cli, const struct nrg_analysis *a, const struct values *v)
{
    struct nrg_graph_view view = {.colour = nrg_use_colour(stdout),
                                  .operators = v->operators,
                                  .sort = nrg_choice_word(sort_keys, v->sort),
                                  .depth = v->all ? 0 : v->depth};
    if (!a->has_graph && (v->dot || v->svg || v->reduced || v->explain.n || v->operators)) {
        nrg_say("%s: holds parameters but no graph", a->name);
        return 1;
    }
    if (v->explain.n)
        return explain_nodes(a, v);
    if (v->reduced)
        nrg_graph_reduced_text(a, stdout);
    if (v->csv || v->dot)
        return write_csv_or_dot(a, v);
    if (v->svg)
        return write_svg(a, v->svg);
    if (!v->reduced && !cli->quiet && !nrg_is_stdout(v->json))
        return show_fitted(a, &view);
    return 0;
}

static int compare_models(const struct nrg_analysis *a, const struct values *v)
{
    if (v->json)
        return nrg_print_json(nrg_graph_compare_json(&a[0], &a[1]), v->json);
    struct nrg_fitted text;
    FILE *out = nrg_fitted_begin(&text, stdout);
    if (out)
        nrg_graph_compare_text(&a[0], &a[1], out);
    return nrg_fitted_end(&text);
}

static int write_json(const struct nrg_analysis *a, size_t n, const struct values *v)
{
    if (n == 1)
        return nrg_print_json(nrg_graph_json(&a[0]), v->json);
    json_t *doc = json_pack("{s:s, s:[]}", "schema", "nrg.graph-list/1", "graphs");
    for (size_t i = 0; doc && i < n; i++)
        json_array_append_new(json_object_get(doc, "graphs"), nrg_graph_json(&a[i]));
    return nrg_print_json(doc, v->json);
}

static int show_all(struct nrg_cli *cli, const struct values *v, struct nrg_analysis *files, int n)
{
    int code = 0;
    for (int i = 0; i < n; i++)
        say_warnings(cli, &files[i]);
    if (v->compare)
        return compare_models(files, v);
    for (int i = 0; i < n && !code; i++) {
        if (i && !v->json && !v->csv)
            putchar('\n');
        code = show_model(cli, &files[i], v);
    }
    return !code && v->json ? write_json(files, (size_t)n, v) : code;
}

static int run_graph(struct nrg_cli *cli, void *values, int argc, char **argv)
{
    const struct values *v = values;
    struct nrg_error err;
    struct nrg_model params = {0};
    struct nrg_analysis_options how = {.format = v->format,
                                       .params = v->params ? &params : NULL,
                                       .convention = (enum nrg_convention)v->convention};
    int code, n = 0;
    if (argc < 1)
        return nrg_usage(cli, "which file? nrg graph FILE (- is stdin)");
    if (v->compare && argc != 2)
        return nrg_usage(cli, "--compare wants two files");
    if (v->params && nrg_params_read(&params, v->params, &err))
        return nrg_complain(&err, 1);
    struct nrg_analysis *files = nrg_calloc((size_t)argc, sizeof *files);
    int rc = files ? 0 : nrg_fail(&err, -ENOMEM, NULL, "out of memory");
    for (; !rc && n < argc; n++)
        rc = nrg_analyse(&files[n], argv[n], &how, &err);
    code = rc ? nrg_complain(&err, 1) : show_all(cli, v, files, n);
    for (int i = 0; i < n; i++)
        nrg_analysis_release(&files[i]);
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
    .defaults = &defaults,
    .run = run_graph,
};
