/*
 * The table of a model: its modules as a tree, or its operators, with shares and totals. Numbered
 * siblings that are alike are one row ("0...11 x12") whose numbers are those of all of them, so
 * that every column adds up. A module with operators of unknown cost says so by a "+?".
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/graph/report.h"
#include "report/table.h"
#include "report/units.h"

#define MAX_NAME   44
#define MAX_CLASS  26
#define MAX_OUTPUT 20

/* ---- modules ---- */

struct rows {
    struct nrg_tree_row *items;
    size_t n, cap;
    int name_width, class_width, output_width;
};

static int at_most(int n, int most)
{
    return n < most ? n : most;
}

static int add_module_row(void *arg, const struct nrg_tree_row *row)
{
    struct rows *rows = arg;
    char dims[200];
    if (nrg_append(&rows->items, &rows->n, &rows->cap, row, sizeof *row))
        return -1;
    int name = nrg_text_width(row->name), class = nrg_text_width(row->node->class_name);
    int output = nrg_text_width(nrg_show_dims(dims, sizeof dims, row->node->output));
    if (name > rows->name_width)
        rows->name_width = at_most(name, MAX_NAME);
    if (class > rows->class_width)
        rows->class_width = at_most(class, MAX_CLASS);
    if (output > rows->output_width)
        rows->output_width = at_most(output, MAX_OUTPUT);
    return 0;
}

static int64_t sort_key(const struct nrg_cost *cost, int64_t params, int64_t times,
                        const char *sort)
{
    if (!strcmp(sort, "params"))
        return params;
    if (!strcmp(sort, "flops"))
        return nrg_cost_mul(cost->flops, times);
    if (!strcmp(sort, "bytes"))
        return nrg_cost_mul(nrg_cost_add(cost->read_bytes, cost->written_bytes), times);
    return nrg_cost_mul(cost->macs, times);
}

struct sort_item {
    int64_t key;
    size_t at;
};

static int by_key(const void *a, const void *b)
{
    const struct sort_item *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? 1 : -1;
    return x->at < y->at ? -1 : 1;
}

/* Sorted, a tree is a list: leaves by their qualified names. */
static int sorted_rows(const struct nrg_analysis *r, const char *sort, struct rows *rows)
{
    struct sort_item *items = nrg_calloc(r->tree.n + 1, sizeof *items);
    size_t n = 0;
    int rc = items ? 0 : -1;
    for (size_t i = 0; !rc && i < r->tree.n; i++)
        if (r->tree.nodes[i].size == 1)
            items[n++] = (struct sort_item){
                sort_key(&r->tree.nodes[i].cost, r->tree.nodes[i].params, 1, sort), i};
    if (n)
        qsort(items, n, sizeof *items, by_key);
    for (size_t i = 0; !rc && i < n; i++) {
        struct nrg_tree_row row = {.node = &r->tree.nodes[items[i].at], .times = 1};
        snprintf(row.name, sizeof row.name, "%.100s",
                 row.node->name[0] ? row.node->name : nrg_table_base_name(r->name));
        rc = add_module_row(rows, &row);
    }
    free(items);
    return rc;
}

static void print_number(FILE *out, int64_t n, size_t unknown, int width, bool count)
{
    struct nrg_shown number = count ? nrg_show_count(n) : nrg_show_integer(n);
    fprintf(out, "%*s%s ", width, unknown && !n ? "?" : number.text, unknown && n ? "+?" : "  ");
}

/* Bytes of which some are not known: "?" when nothing is. */
static struct nrg_shown show_some(int64_t bytes, size_t unknown)
{
    struct nrg_shown known = nrg_show_bytes((double)bytes), shown = {"?"};
    if (bytes || !unknown)
        snprintf(shown.text, sizeof shown.text, "%.40s%s", known.text, unknown ? "+?" : "");
    return shown;
}

static void print_module_row(const struct nrg_analysis *r, const struct rows *rows,
                             const struct nrg_tree_row *row, bool frozen, FILE *out)
{
    const struct nrg_tree_node *n = row->node;
    char dims[200];
    int64_t times = row->times;
    nrg_text_pad(out, row->name, rows->name_width + 2);
    nrg_text_pad(out, n->class_name, rows->class_width + 2);
    if (r->has_graph)
        nrg_text_pad(out, nrg_show_dims(dims, sizeof dims, n->output), rows->output_width + 2);
    print_number(out, nrg_cost_times(n->params, times), n->unknown_params, 14, false);
    if (frozen)
        print_number(out, nrg_cost_times(n->trainable, times), n->unknown_params, 14, false);
    int64_t all = r->totals.params, mine = nrg_cost_times(n->params, times);
    if (r->has_graph) {
        print_number(out, nrg_cost_times(n->cost.macs, times), n->unknown_operators, 9, true);
        print_number(out, nrg_cost_times(n->cost.flops, times), n->unknown_operators, 9, true);
        all = r->totals.cost.macs ? r->totals.cost.macs : r->totals.cost.flops;
        mine = nrg_cost_times(r->totals.cost.macs ? n->cost.macs : n->cost.flops, times);
    } else {
        fprintf(out, "%12s  ",
                show_some(nrg_cost_times(n->param_bytes, times), n->unsized_params).text);
    }
    if (all > 0)
        nrg_table_bar(out, (double)mine / (double)all);
    fputc('\n', out);
}

static void print_modules(const struct nrg_analysis *r, const struct nrg_graph_view *view,
                          const struct nrg_text_style *st, FILE *out)
{
    struct rows rows = {.name_width = 6, .class_width = 5, .output_width = 6};
    bool frozen = r->totals.trainable != r->totals.params;
    int rc = view->sort ? sorted_rows(r, view->sort, &rows)
                        : nrg_tree_rows(&r->tree, r->name, view->depth, add_module_row, &rows);
    if (rc)
        fprintf(out, "(out of memory)\n");
    fprintf(out, "%s", st->dim);
    nrg_text_pad(out, "MODULE", rows.name_width + 2);
    nrg_text_pad(out, "CLASS", rows.class_width + 2);
    if (r->has_graph)
        nrg_text_pad(out, "OUTPUT", rows.output_width + 2);
    fprintf(out, "%14s   ", "PARAMS");
    if (frozen)
        fprintf(out, "%14s   ", "TRAINABLE");
    if (r->has_graph)
        fprintf(out, "%9s   %9s   %s OF %s", "MACS", "FLOPS", "SHARE",
                r->totals.cost.macs ? "MACS" : "FLOPS");
    else
        fprintf(out, "%12s  %s", "BYTES", "SHARE");
    fprintf(out, "%s\n", st->off);
    for (size_t i = 0; i < rows.n; i++)
        print_module_row(r, &rows, &rows.items[i], frozen, out);
    free(rows.items);
}

/* ---- operators ---- */

static void print_operator(const struct nrg_analysis *r, const struct nrg_operator *op, FILE *out)
{
    char dims[200], intensity[32] = "-";
    int64_t moved = nrg_cost_add(op->cost.read_bytes, op->cost.written_bytes);
    int64_t all = r->totals.cost.macs ? r->totals.cost.macs : r->totals.cost.flops;
    int64_t mine = nrg_cost_mul(r->totals.cost.macs ? op->cost.macs : op->cost.flops, op->times);
    nrg_show_dims(dims, sizeof dims, op->n_outputs ? op->outputs[0]->type : NULL);
    if (op->cost.flops >= 0 && moved > 0)
        snprintf(intensity, sizeof intensity, "%.2f", (double)op->cost.flops / (double)moved);
    fprintf(out, "%-16.16s %-28.28s %-20.20s", op->id, op->kind, dims);
    print_number(out, op->cost.macs < 0 ? 0 : op->cost.macs, op->cost.macs < 0, 9, true);
    print_number(out, op->cost.flops < 0 ? 0 : op->cost.flops, op->cost.flops < 0, 9, true);
    fprintf(out, "%11s %8s  ", moved < 0 ? "?" : nrg_show_bytes((double)moved).text, intensity);
    if (all > 0 && mine >= 0)
        nrg_table_bar(out, (double)mine / (double)all);
    fprintf(out, "  %s", op->module ? op->module : "");
    if (op->times != 1)
        fprintf(out, op->times < 0 ? " ×?" : " ×%lld", (long long)op->times);
    fputc('\n', out);
}

static void print_operators(const struct nrg_analysis *r, const struct nrg_graph_view *view,
                            const struct nrg_text_style *st, FILE *out)
{
    const struct nrg_reduced *g = &r->reduced;
    struct sort_item *items = nrg_calloc(g->n_operators + 1, sizeof *items);
    for (size_t i = 0; items && i < g->n_operators; i++) {
        const struct nrg_operator *op = &g->operators[i];
        int64_t times = op->times < 0 ? 1 : op->times;
        items[i] = (struct sort_item){
            view->sort ? sort_key(&op->cost, op->cost.params, times, view->sort) : 0, i};
    }
    if (items && view->sort && g->n_operators)
        qsort(items, g->n_operators, sizeof *items, by_key);
    fprintf(out, "%s%-16s %-28s %-20s%9s   %9s   %11s %8s  %-18s  %s%s\n", st->dim, "ID", "KIND",
            "OUTPUT", "MACS", "FLOPS", "BYTES", "FLOP/B", "SHARE", "MODULE", st->off);
    for (size_t i = 0; items && i < g->n_operators; i++)
        print_operator(r, &g->operators[items[i].at], out);
    free(items);
}

/* ---- totals ---- */

static bool weights_missing(const struct nrg_analysis *r)
{
    for (size_t i = 0; r->has_graph && i < r->reduced.n_operators; i++) {
        const struct nrg_operator *op = &r->reduced.operators[i];
        if (!strcmp(op->rule->code, "C") && nrg_operator_unknown(op) && op->n_outputs &&
            nrg_data_numel(op->outputs[0]) >= 0)
            return true;
    }
    return false;
}

static void print_graph_totals(const struct nrg_analysis *r, const struct nrg_text_style *st,
                               FILE *out)
{
    const struct nrg_totals *t = &r->totals;
    fprintf(out, "MACs        ");
    print_number(out, t->cost.macs, t->unknown_operators, 18, false);
    fprintf(out, "FLOPs ");
    print_number(out, t->cost.flops, t->unknown_operators, 0, false);
    fprintf(out, "  convention %s\n", nrg_convention_name(r->convention));
    size_t missing = t->unknown_activations;
    fprintf(out, "memory      %18s   parameters %s + largest living activations %s\n",
            show_some(t->param_bytes + t->peak_activation_bytes, missing + t->unsized_params).text,
            show_some(t->param_bytes, t->unsized_params).text,
            show_some(t->peak_activation_bytes, missing).text);
    missing = t->unknown_bytes;
    fprintf(out, "traffic     %18s   read %s, written %s, each operand once\n",
            show_some(t->cost.read_bytes + t->cost.written_bytes, missing).text,
            show_some(t->cost.read_bytes, missing).text,
            show_some(t->cost.written_bytes, missing).text);
    if (t->unknown_operators)
        fprintf(out, "%s%zu of %zu operators counted, %zu unknown%s%s\n", st->warn,
                t->operators - t->unknown_operators, t->operators, t->unknown_operators, st->off,
                weights_missing(r) ? ": this text has no weight shapes, --params FILE adds them"
                                   : "");
    else
        fprintf(out, "all %zu operators counted\n", t->operators);
}

void nrg_graph_text(const struct nrg_analysis *r, const struct nrg_graph_view *view, FILE *out)
{
    struct nrg_text_style st = nrg_text_style(view->colour);
    const struct nrg_totals *t = &r->totals;
    if (view->operators && r->has_graph)
        print_operators(r, view, &st, out);
    else
        print_modules(r, view, &st, out);
    fprintf(out, "\n%s", st.bold);
    fprintf(out, "parameters  ");
    print_number(out, t->params, t->unknown_params, 18, false);
    fprintf(out, "%strainable %s, buffers %s", st.off, nrg_show_integer(t->trainable).text,
            nrg_show_integer(t->buffers).text);
    if (t->unknown_params)
        fprintf(out, "   %s%zu of %zu have no known shape%s", st.warn, t->unknown_params,
                t->n_params, st.off);
    fputc('\n', out);
    if (r->has_graph) {
        print_graph_totals(r, &st, out);
        return;
    }
    fprintf(out, "bytes       %18s   no graph in this file: nothing to count but parameters\n",
            show_some(t->param_bytes, t->unsized_params).text);
    char command[3 * PATH_MAX];
    if (nrg_graph_dump_command(r, command, sizeof command))
        fprintf(out,
                "Its code has no shapes. For its operators, with your input's shape in place of "
                "(1, 3, 224, 224):\n  %s\nand give nrg the .onnx.\n",
                command);
}

/* ---- two models ---- */

static void compare_line(FILE *out, const char *what, int64_t a, int64_t b)
{
    fprintf(out, "%-18s %20s %20s", what, nrg_show_integer(a).text, nrg_show_integer(b).text);
    if (a > 0 && b >= 0)
        fprintf(out, "   %+.2f %%", 100 * ((double)b - (double)a) / (double)a);
    fputc('\n', out);
}

static const struct nrg_tree_node *find_module(const struct nrg_module_tree *tree, const char *name)
{
    for (size_t i = 0; i < tree->n; i++)
        if (!strcmp(tree->nodes[i].name, name))
            return &tree->nodes[i];
    return NULL;
}

/* MACs of a module in two models; NULL: it is not in that one. */
static void print_pair(FILE *out, bool first, const char *name, const struct nrg_tree_node *n,
                       const struct nrg_tree_node *m)
{
    if (first)
        fprintf(out, "\nmodules that differ (MACs)\n");
    fprintf(out, "  %-40s %14s %14s\n", name, n ? nrg_show_count(n->cost.macs).text : "absent",
            m ? nrg_show_count(m->cost.macs).text : "absent");
}

static void compare_modules(const struct nrg_analysis *a, const struct nrg_analysis *b, FILE *out)
{
    size_t shown = 0;
    for (size_t i = 0; i < a->tree.n; i++) {
        const struct nrg_tree_node *n = &a->tree.nodes[i];
        const struct nrg_tree_node *m = find_module(&b->tree, n->name);
        if (!n->name[0] || n->size > 1 ||
            (m && m->cost.macs == n->cost.macs && m->params == n->params))
            continue;
        print_pair(out, !shown++, n->name, n, m);
    }
    for (size_t i = 0; i < b->tree.n; i++) {
        const struct nrg_tree_node *m = &b->tree.nodes[i];
        if (m->size > 1 || find_module(&a->tree, m->name))
            continue;
        print_pair(out, !shown++, m->name, NULL, m);
    }
    if (!shown)
        fprintf(out, "\nno module differs in parameters or MACs\n");
}

void nrg_graph_compare_text(const struct nrg_analysis *a, const struct nrg_analysis *b, FILE *out)
{
    const struct nrg_totals *t = &a->totals, *u = &b->totals;
    fprintf(out, "%-18s %20.20s %20.20s\n", "", a->name, b->name);
    compare_line(out, "parameters", t->params, u->params);
    compare_line(out, "parameter bytes", t->param_bytes, u->param_bytes);
    if (a->has_graph && b->has_graph) {
        compare_line(out, "MACs", t->cost.macs, u->cost.macs);
        compare_line(out, "FLOPs", t->cost.flops, u->cost.flops);
        compare_line(out, "bytes read", t->cost.read_bytes, u->cost.read_bytes);
        compare_line(out, "bytes written", t->cost.written_bytes, u->cost.written_bytes);
        compare_line(out, "peak activations", t->peak_activation_bytes, u->peak_activation_bytes);
        compare_line(out, "operators", (int64_t)t->operators, (int64_t)u->operators);
        compare_line(out, "unknown operators", (int64_t)t->unknown_operators,
                     (int64_t)u->unknown_operators);
    }
    compare_modules(a, b, out);
}
