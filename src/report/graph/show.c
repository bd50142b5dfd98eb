/* Small printers for graph reports: dims, counts, CSV and the reduced graph's text and DOT. */
#include <string.h>

#include "base/csv.h"
#include "report/graph/report.h"
#include "report/units.h"

const char *nrg_show_dims(char *buf, size_t size, const struct nrg_type *type)
{
    size_t at = 0;
    while (type && type->kind == NRG_T_OPTIONAL && type->n_args == 1)
        type = type->args[0];
    snprintf(buf, size, "-");
    if (!type || type->kind != NRG_T_TENSOR || type->rank < 0 || (type->rank && !type->dims))
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

const char *nrg_show_integer(char *buf, size_t size, int64_t n)
{
    char digits[32];
    size_t at = 0;
    if (n < 0) {
        snprintf(buf, size, "-");
        return buf;
    }
    size_t len = (size_t)snprintf(digits, sizeof digits, "%lld", (long long)n);
    for (size_t i = 0; i < len && at + 2 < size; i++) {
        if (i && (len - i) % 3 == 0)
            buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = '\0';
    return buf;
}

const char *nrg_show_count(char *buf, size_t size, int64_t n)
{
    static const char *const units[] = {"", " k", " M", " G", " T", " P", " E"};
    double v = (double)n;
    size_t unit = 0;
    if (n < 10000) {
        snprintf(buf, size, n < 0 ? "-" : "%lld", (long long)n);
        return buf;
    }
    for (; v >= 999.95 && unit < 6; unit++)
        v /= 1000;
    snprintf(buf, size, "%.*f%s", v >= 99.95 ? 1 : v >= 9.995 ? 2 : 3, v, units[unit]);
    return buf;
}

/* ---- CSV ---- */

static void csv_int(FILE *out, int64_t n)
{
    fputc(',', out);
    if (n >= 0)
        fprintf(out, "%lld", (long long)n);
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
        csv_int(out, op->cost.macs);
        csv_int(out, op->cost.flops);
        csv_int(out, op->cost.read_bytes);
        csv_int(out, op->cost.written_bytes);
        csv_int(out, op->cost.params);
        csv_int(out, op->times);
        fputc(',', out);
        nrg_csv_cell(out, op->op->source);
        fputc('\n', out);
    }
}

static int64_t unless_unknown(int64_t sum, size_t unknown)
{
    return sum || !unknown ? sum : NRG_COST_UNKNOWN;
}

void nrg_graph_csv(const struct nrg_graph_report *r, bool operators, FILE *out)
{
    char dims[200];
    if (operators && r->reduced) {
        csv_operators(r->reduced, out);
        return;
    }
    fprintf(out, "name,class,output,calls,params,trainable_params,buffers,macs,macs_self,flops,"
                 "read_bytes,written_bytes,operators,unknown_operators\n");
    for (size_t i = 0; i < r->tree->n; i++) {
        const struct nrg_tree_node *n = &r->tree->nodes[i];
        nrg_csv_cell(out, n->name);
        fputc(',', out);
        nrg_csv_cell(out, n->class_name);
        nrg_show_dims(dims, sizeof dims, n->output);
        fprintf(out, ",%s", strcmp(dims, "-") ? dims : "");
        csv_int(out, r->tree->calls_known ? (int64_t)n->calls : -1);
        csv_int(out, unless_unknown(n->params, n->unknown_params));
        csv_int(out, unless_unknown(n->trainable, n->unknown_params));
        csv_int(out, n->buffers);
        bool graph = r->reduced != NULL;
        size_t unknown = n->unknown_operators + !graph;
        csv_int(out, unless_unknown(n->cost.macs, unknown));
        csv_int(out, unless_unknown(n->self.macs, unknown));
        csv_int(out, unless_unknown(n->cost.flops, unknown));
        csv_int(out, unless_unknown(n->cost.read_bytes, unknown));
        csv_int(out, unless_unknown(n->cost.written_bytes, unknown));
        csv_int(out, graph ? (int64_t)n->operators : -1);
        csv_int(out, graph ? (int64_t)n->unknown_operators : -1);
        fputc('\n', out);
    }
}

/* ---- the reduced graph ---- */

static void print_data(const struct nrg_data *d, FILE *out)
{
    char dims[200];
    const struct nrg_type *type = d->type;
    fprintf(out, "%%%s", d->name);
    if (d->kind == NRG_DATA_PARAM)
        fprintf(out, " \"%s\"", d->path);
    nrg_show_dims(dims, sizeof dims, type);
    if (strcmp(dims, "-"))
        fprintf(out, " : %s[%s]", nrg_dtype_name(type->dtype), dims);
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
    char macs[32];
    print_list(op->outputs, op->n_outputs, out);
    fprintf(out, "%s%s(", op->n_outputs ? " = " : "", op->kind);
    print_list(op->inputs, op->n_inputs, out);
    fprintf(out, ")");
    if (op->cost.macs)
        fprintf(out, "  macs %s", nrg_show_integer(macs, sizeof macs, op->cost.macs));
    if (op->times < 0)
        fprintf(out, "  times ?");
    else if (op->times != 1)
        fprintf(out, "  times %lld", (long long)op->times);
    if (op->module && op->module[0])
        fprintf(out, "  # %s", op->module);
    fputc('\n', out);
}

void nrg_graph_reduced_text(const struct nrg_graph_report *r, FILE *out)
{
    const struct nrg_reduced *g = r->reduced;
    size_t params = 0;
    for (size_t i = 0; i < g->n_data; i++)
        params += g->data[i]->kind == NRG_DATA_PARAM;
    fprintf(out, "reduced graph: %zu operators, %zu inputs, %zu outputs, %zu parameters\n",
            g->n_operators, g->n_inputs, g->n_outputs, params);
    for (size_t i = 0; i < g->n_inputs; i++) {
        fputs("input ", out);
        print_data(g->inputs[i], out);
        fputc('\n', out);
    }
    for (size_t i = 0; i < g->n_data; i++) {
        if (g->data[i]->kind != NRG_DATA_PARAM)
            continue;
        fputs("param ", out);
        print_data(g->data[i], out);
        fputc('\n', out);
    }
    for (size_t i = 0; i < g->n_operators; i++)
        print_operator(&g->operators[i], out);
    for (size_t i = 0; i < g->n_outputs; i++) {
        fputs("output ", out);
        print_data(g->outputs[i], out);
        fputc('\n', out);
    }
}

static void explain_kept(const struct nrg_operator *op, FILE *out)
{
    char a[32], b[32], c[32], d[32];
    fprintf(out, "  cost rule %s (%s): %s MACs, %s FLOPs, %s bytes read, %s bytes written\n",
            op->rule->code, nrg_op_class_name(op->class),
            nrg_show_integer(a, sizeof a, op->cost.macs),
            nrg_show_integer(b, sizeof b, op->cost.flops),
            nrg_show_integer(c, sizeof c, op->cost.read_bytes),
            nrg_show_integer(d, sizeof d, op->cost.written_bytes));
    if (op->rule->flags & NRG_OP_NOT_RECORDED)
        fprintf(out, "  nrg has no rule for this kind: its cost is unknown\n");
    if (!op->times)
        fprintf(out, "  not counted: it stands in a branch that is not taken or costs less\n");
    if (op->times < 0)
        fprintf(out, "  it stands in a loop of unknown length\n");
}

static bool makes(const struct nrg_op *op, const char *id)
{
    for (size_t i = 0; i < op->n_outputs; i++)
        if (!strcmp(op->outputs[i]->name, id))
            return true;
    return op->label && !strcmp(op->label, id);
}

bool nrg_graph_explain(const struct nrg_graph_report *r, const char *id, FILE *out)
{
    const struct nrg_reduced *g = r->reduced;
    bool found = false;
    id += *id == '%';
    for (size_t i = 0; i < g->n_dropped; i++) {
        const struct nrg_dropped *d = &g->dropped[i];
        if (!makes(d->op, id))
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
