/*
 * A model line by line: CSV of modules or operators, the reduced graph as text, and what became of
 * one operator.
 */
#include <string.h>

#include "base/csv.h"
#include "report/graph/report.h"
#include "report/units.h"

const char *nrg_show_dims(char *buf, size_t size, const struct nrg_type *type)
{
    size_t at = 0;
    type = type ? nrg_type_plain(type) : &nrg_type_unknown;
    snprintf(buf, size, "-");
    if (type->kind != NRG_T_TENSOR || type->rank < 0 || (type->rank && !type->dims))
        return buf;
    if (!type->rank)
        snprintf(buf, size, "scalar");
    for (int i = 0; i < type->rank && at < size; i++) {
        const char *times = i ? "x" : "";
        int n = type->dims[i] < 0
                    ? snprintf(buf + at, size - at, "%s?", times)
                    : snprintf(buf + at, size - at, "%s%lld", times, (long long)type->dims[i]);
        at += n > 0 ? (size_t)n : 0;
    }
    return buf;
}

/* ---- CSV ---- */

/* Numbers as cells; empty where they are not known. */
static void print_cells(FILE *out, const int64_t *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fputc(',', out);
        if (numbers[i] >= 0)
            fprintf(out, "%lld", (long long)numbers[i]);
    }
}

static void csv_operators(const struct nrg_reduced *g, FILE *out)
{
    char dims[200];
    fprintf(out, "id,kind,class,module,output,dtype,macs,flops,read_bytes,written_bytes,params,"
                 "times,source\n");
    for (size_t i = 0; i < g->n_operators; i++) {
        const struct nrg_operator *op = &g->operators[i];
        const struct nrg_type *type = op->n_outputs ? op->outputs[0]->type : NULL;
        nrg_csv_cell(out, op->id);
        fputc(',', out);
        nrg_csv_cell(out, op->kind);
        fprintf(out, ",%s,", nrg_op_class_name(op->class));
        nrg_csv_cell(out, op->module);
        nrg_show_dims(dims, sizeof dims, type);
        fprintf(out, ",%s,%s", strcmp(dims, "-") ? dims : "",
                type && type->dtype != NRG_DTYPE_UNKNOWN ? nrg_dtype_name(type->dtype) : "");
        print_cells(out,
                    (const int64_t[]){op->cost.macs, op->cost.flops, op->cost.read_bytes,
                                      op->cost.written_bytes, op->cost.params, op->times},
                    6);
        fputc(',', out);
        nrg_csv_cell(out, op->op->source);
        fputc('\n', out);
    }
}

static int64_t unless_unknown(int64_t sum, size_t unknown)
{
    return sum || !unknown ? sum : NRG_COST_UNKNOWN;
}

void nrg_graph_csv(const struct nrg_analysis *r, bool operators, FILE *out)
{
    char dims[200];
    if (operators && r->has_graph) {
        csv_operators(&r->reduced, out);
        return;
    }
    fprintf(out, "name,class,output,calls,params,trainable_params,buffers,macs,macs_self,flops,"
                 "read_bytes,written_bytes,operators,unknown_operators\n");
    for (size_t i = 0; i < r->tree.n; i++) {
        const struct nrg_tree_node *n = &r->tree.nodes[i];
        nrg_csv_cell(out, n->name);
        fputc(',', out);
        nrg_csv_cell(out, n->class_name);
        nrg_show_dims(dims, sizeof dims, n->output);
        fprintf(out, ",%s", strcmp(dims, "-") ? dims : "");
        size_t unknown = n->unknown_operators + !r->has_graph;
        const int64_t numbers[] = {r->tree.calls_known ? (int64_t)n->calls : -1,
                                   unless_unknown(n->params, n->unknown_params),
                                   unless_unknown(n->trainable, n->unknown_params),
                                   n->buffers,
                                   unless_unknown(n->cost.macs, unknown),
                                   unless_unknown(n->self.macs, unknown),
                                   unless_unknown(n->cost.flops, unknown),
                                   unless_unknown(n->cost.read_bytes, unknown),
                                   unless_unknown(n->cost.written_bytes, unknown),
                                   r->has_graph ? (int64_t)n->operators : -1,
                                   r->has_graph ? (int64_t)n->unknown_operators : -1};
        print_cells(out, numbers, sizeof numbers / sizeof *numbers);
        fputc('\n', out);
    }
}

/* ---- the reduced graph ---- */

static void print_type(const struct nrg_type *type, FILE *out)
{
    char dims[200];
    nrg_show_dims(dims, sizeof dims, type);
    if (strcmp(dims, "-"))
        fprintf(out, " : %s[%s]", nrg_dtype_name(type->dtype), dims);
}

static void print_data(const struct nrg_data *d, FILE *out)
{
    fprintf(out, "%%%s", d->name);
    if (d->kind == NRG_DATA_PARAM)
        fprintf(out, " \"%s\"", d->path);
    print_type(d->type, out);
}

static void print_output(const struct nrg_output *output, FILE *out)
{
    fprintf(out, "output %%%s", output->name);
    print_type(output->type, out);
    if (output->data && strcmp(output->name, output->data->name) != 0)
        fprintf(out, " of %%%s", output->data->name);
    fputc('\n', out);
}

static void print_line(const char *what, const struct nrg_data *d, FILE *out)
{
    fputs(what, out);
    print_data(d, out);
    fputc('\n', out);
}

static void print_list(struct nrg_data *const *data, size_t n, FILE *out)
{
    for (size_t i = 0; i < n; i++) {
        fputs(i ? ", " : "", out);
        print_data(data[i], out);
    }
}

static void print_operator(const struct nrg_operator *op, FILE *out)
{
    print_list(op->outputs, op->n_outputs, out);
    fprintf(out, "%s%s(", op->n_outputs ? " = " : "", op->kind);
    print_list(op->inputs, op->n_inputs, out);
    fprintf(out, ")");
    if (op->cost.macs)
        fprintf(out, "  macs %s", nrg_show_integer(op->cost.macs).text);
    if (op->times < 0)
        fprintf(out, "  times ?");
    else if (op->times != 1)
        fprintf(out, "  times %lld", (long long)op->times);
    if (op->module && op->module[0])
        fprintf(out, "  # %s", op->module);
    fputc('\n', out);
}

void nrg_graph_reduced_text(const struct nrg_analysis *r, FILE *out)
{
    const struct nrg_reduced *g = &r->reduced;
    size_t params = 0;
    for (size_t i = 0; i < g->n_data; i++)
        params += g->data[i]->kind == NRG_DATA_PARAM;
    fprintf(out, "reduced graph: %zu operators, %zu inputs, %zu outputs, %zu parameters\n",
            g->n_operators, g->n_inputs, g->n_outputs, params);
    for (size_t i = 0; i < g->n_inputs; i++)
        print_line("input ", g->inputs[i], out);
    for (size_t i = 0; i < g->n_data; i++)
        if (g->data[i]->kind == NRG_DATA_PARAM)
            print_line("param ", g->data[i], out);
    for (size_t i = 0; i < g->n_operators; i++)
        print_operator(&g->operators[i], out);
    for (size_t i = 0; i < g->n_outputs; i++)
        print_output(&g->outputs[i], out);
}

static void explain_kept(const struct nrg_operator *op, FILE *out)
{
    fprintf(out, "  cost rule %s (%s): %s MACs, %s FLOPs, %s bytes read, %s bytes written\n",
            op->rule->code, nrg_op_class_name(op->class), nrg_show_integer(op->cost.macs).text,
            nrg_show_integer(op->cost.flops).text, nrg_show_integer(op->cost.read_bytes).text,
            nrg_show_integer(op->cost.written_bytes).text);
    if (op->rule->flags & NRG_OP_NOT_RECORDED)
        fprintf(out, "  nrg has no rule for this kind: its cost is unknown\n");
    if (!op->times)
        fprintf(out, "  not counted: it stands in a branch that is not taken or costs less\n");
    if (op->times < 0)
        fprintf(out, "  it stands in a loop of unknown length\n");
}

static bool is_called(const struct nrg_op *op, const char *id)
{
    for (size_t i = 0; i < op->n_outputs; i++)
        if (!strcmp(op->outputs[i]->name, id))
            return true;
    return op->label && !strcmp(op->label, id);
}

bool nrg_graph_explain(const struct nrg_analysis *r, const char *id, FILE *out)
{
    const struct nrg_reduced *g = &r->reduced;
    bool found = false;
    id += *id == '%';
    for (size_t i = 0; i < g->n_dropped; i++) {
        const struct nrg_dropped *d = &g->dropped[i];
        if (!is_called(d->op, id))
            continue;
        found = true;
        fprintf(out, "%%%s = %s", id, d->op->kind);
        if (d->op->line)
            fprintf(out, " (line %u)", d->op->line);
        if (d->rule)
            fprintf(out, "\n  dropped by rule %d: %s\n", (int)d->rule, nrg_drop_rule_text(d->rule));
        else
            fprintf(out, "\n  %s\n", nrg_drop_rule_text(d->rule));
        if (d->data)
            fprintf(out, "  its output is %s %%%s%s%s\n", nrg_data_kind_name(d->data->kind),
                    d->data->name, d->data->path ? ": " : "", d->data->path ? d->data->path : "");
        if (d->kept >= 0)
            explain_kept(&g->operators[d->kept], out);
    }
    for (size_t i = 0; !found && i < g->n_inputs; i++) {
        if (strcmp(g->inputs[i]->name, id))
            continue;
        found = true;
        fprintf(out, "%%%s is an input of the graph\n", id);
    }
    return found;
}
