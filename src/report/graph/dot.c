/*
 * The reduced graph for Graphviz: a box per operator, inside a cluster per module, edges with the
 * tensors' shapes. Parameters are named in the operator's box instead of being nodes of their own:
 * a drawing of BERT would be half weights otherwise.
 */
#include <string.h>

#include "report/graph/report.h"
#include "report/units.h"

static void print_quoted(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
}

static void print_node(const struct nrg_operator *op, size_t i, FILE *out)
{
    const char *colon = strstr(op->kind, "::");
    fprintf(out, "  o%zu [label=\"", i);
    print_quoted(out, colon ? colon + 2 : op->kind);
    if (op->cost.macs > 0)
        fprintf(out, "\\n%s MACs", nrg_show_count(op->cost.macs).text);
    if (op->cost.macs < 0)
        fprintf(out, "\\ncost unknown");
    fprintf(out, "\"%s];\n",
            op->cost.macs > 0   ? ", style=filled, fillcolor=\"#ffe0b0\""
            : op->cost.macs < 0 ? ", style=filled, fillcolor=\"#f0c0c0\""
                                : "");
}

static void print_edge(const struct nrg_data *d, size_t to, FILE *out)
{
    char dims[200];
    if (d->kind == NRG_DATA_PARAM || d->kind == NRG_DATA_CONST)
        return;
    if (d->producer >= 0)
        fprintf(out, "  o%lld", (long long)d->producer);
    else
        fprintf(out, "  d%u", d->id);
    fprintf(out, " -> o%zu [label=\"%s\"];\n", to, nrg_show_dims(dims, sizeof dims, d->type));
}

/* Clusters follow the tree: each module's own operators stand in its subgraph. */
static void print_clusters(const struct nrg_analysis *r, FILE *out)
{
    const struct nrg_reduced *g = &r->reduced;
    uint32_t open = 0;
    for (size_t m = 0; m < r->tree.n; m++) {
        const struct nrg_tree_node *node = &r->tree.nodes[m];
        for (; open && open >= node->depth; open--)
            fprintf(out, "  }\n");
        if (m) {
            fprintf(out, "  subgraph cluster_%zu {\n  label=\"", m);
            print_quoted(out, node->local);
            fprintf(out, "\";\n");
            open++;
        }
        for (size_t i = 0; i < g->n_operators; i++) {
            const char *module = g->operators[i].module ? g->operators[i].module : "";
            if (!strcmp(module, node->name))
                print_node(&g->operators[i], i, out);
        }
    }
    for (; open; open--)
        fprintf(out, "  }\n");
}

void nrg_graph_dot(const struct nrg_analysis *r, FILE *out)
{
    const struct nrg_reduced *g = &r->reduced;
    fprintf(out, "digraph \"");
    print_quoted(out, r->name);
    fprintf(out, "\" {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\"];\n"
                 "  edge [fontname=\"sans-serif\", fontsize=9];\n");
    for (size_t i = 0; i < g->n_data; i++) {
        const struct nrg_data *d = g->data[i];
        if (d->producer >= 0 || d->kind == NRG_DATA_PARAM || d->kind == NRG_DATA_CONST)
            continue;
        fprintf(out, "  d%u [shape=ellipse, label=\"", d->id);
        print_quoted(out, d->name);
        fprintf(out, "\"];\n");
    }
    print_clusters(r, out);
    for (size_t i = 0; i < g->n_operators; i++)
        for (size_t k = 0; k < g->operators[i].n_inputs; k++)
            print_edge(g->operators[i].inputs[k], i, out);
    for (size_t i = 0; i < g->n_outputs; i++) {
        if (!g->outputs[i].data || g->outputs[i].data->producer < 0)
            continue;
        fprintf(out, "  r%zu [shape=ellipse, label=\"output\"];\n  o%lld -> r%zu;\n", i,
                (long long)g->outputs[i].data->producer, i);
    }
    fprintf(out, "}\n");
}
