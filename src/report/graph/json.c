/*
 * A model as JSON, schema nrg.graph/1 (docs/graph.md), and two models compared. What is unknown
 * is absent; sums of a part that is unknown stand beside the number of unknown operators, and a
 * sum of which nothing is known is absent too, so that 0 always means zero.
 */
#include <string.h>

#include "base/json/set.h"
#include "report/graph/report.h"

/* Also an empty one: the module of what is in none. */
static void set_text(json_t *o, const char *key, const char *text)
{
    if (text)
        json_object_set_new(o, key, nrg_json_string(text));
}

/* A sum over operators of which `unknown` could not be counted. */
static void set_sum(json_t *o, const char *key, int64_t sum, size_t unknown)
{
    if (sum || !unknown)
        json_object_set_new(o, key, json_integer(sum));
}

static json_t *tensor_json(const struct nrg_type *type)
{
    json_t *o = json_object();
    type = nrg_type_plain(type);
    if (type->kind != NRG_T_TENSOR)
        return o;
    if (type->rank >= 0 && (type->dims || !type->rank)) {
        json_t *dims = json_array();
        for (int i = 0; i < type->rank; i++)
            json_array_append_new(dims,
                                  type->dims[i] < 0 ? json_null() : json_integer(type->dims[i]));
        json_object_set_new(o, "dims", dims);
    }
    if (type->dtype != NRG_DTYPE_UNKNOWN)
        set_text(o, "dtype", nrg_dtype_name(type->dtype));
    return o;
}

static void set_source(json_t *o, const struct nrg_data *d)
{
    if (d->kind == NRG_DATA_PARAM)
        set_text(o, "param", d->path);
    if (d->kind != NRG_DATA_ACT)
        set_text(o, "kind", nrg_data_kind_name(d->kind));
    if (d->type_inferred)
        json_object_set_new(o, "inferred", json_true());
}

static json_t *data_json(const struct nrg_data *d)
{
    json_t *o = tensor_json(d->type);
    set_text(o, "id", d->name);
    set_source(o, d);
    return o;
}

static json_t *operator_json(const struct nrg_operator *op)
{
    json_t *o = json_pack("{s:s, s:s, s:s, s:[], s:[]}", "id", op->id, "kind", op->kind, "class",
                          nrg_op_class_name(op->class), "inputs", "outputs");
    if (!o)
        return NULL;
    set_text(o, "module", op->module);
    set_text(o, "label", op->op->label);
    for (size_t i = 0; i < op->n_inputs; i++)
        json_array_append_new(
            json_object_get(o, "inputs"),
            json_string(op->inputs[i]->path ? op->inputs[i]->path : op->inputs[i]->name));
    for (size_t i = 0; i < op->n_outputs; i++)
        json_array_append_new(json_object_get(o, "outputs"), data_json(op->outputs[i]));
    nrg_json_count(o, "macs", op->cost.macs);
    nrg_json_count(o, "flops", op->cost.flops);
    nrg_json_count(o, "read_bytes", op->cost.read_bytes);
    nrg_json_count(o, "written_bytes", op->cost.written_bytes);
    nrg_json_count(o, "params", op->cost.params);
    int64_t bytes = nrg_cost_add(op->cost.read_bytes, op->cost.written_bytes);
    if (op->cost.flops >= 0 && bytes > 0)
        json_object_set_new(o, "intensity", json_real((double)op->cost.flops / (double)bytes));
    if (op->times != 1)
        nrg_json_count(o, "times", op->times);
    set_text(o, "source", op->op->source);
    return o;
}

/* Parameters without a shape, and without a size in bytes. */
static void set_missing(json_t *o, size_t unknown, size_t unsized)
{
    if (unknown)
        nrg_json_count(o, "unknown_params", (int64_t)unknown);
    if (unsized)
        nrg_json_count(o, "unsized_params", (int64_t)unsized);
}

static json_t *module_json(const struct nrg_tree_node *n, bool graph, bool calls_known)
{
    json_t *o = json_pack("{s:s}", "name", n->name);
    if (!o)
        return NULL;
    nrg_json_text(o, "class", n->class_name);
    if (calls_known || (graph && !n->name[0]))
        nrg_json_count(o, "calls", (int64_t)n->calls);
    set_sum(o, "params", n->params, n->unknown_params);
    set_sum(o, "params_self", n->params_self, n->unknown_params);
    set_sum(o, "trainable_params", n->trainable, n->unknown_params);
    nrg_json_count(o, "buffers", n->buffers);
    set_sum(o, "param_bytes", n->param_bytes, n->unsized_params);
    set_missing(o, n->unknown_params, n->unsized_params);
    if (n->output)
        json_object_set_new(o, "output", tensor_json(n->output));
    if (!graph)
        return o;
    set_sum(o, "macs", n->cost.macs, n->unknown_operators);
    set_sum(o, "macs_self", n->self.macs, n->unknown_operators);
    set_sum(o, "flops", n->cost.flops, n->unknown_operators);
    set_sum(o, "flops_self", n->self.flops, n->unknown_operators);
    set_sum(o, "read_bytes", n->cost.read_bytes, n->unknown_operators);
    set_sum(o, "written_bytes", n->cost.written_bytes, n->unknown_operators);
    nrg_json_count(o, "operators", (int64_t)n->operators);
    if (n->unknown_operators)
        nrg_json_count(o, "unknown_operators", (int64_t)n->unknown_operators);
    return o;
}

static json_t *totals_json(const struct nrg_analysis *r)
{
    const struct nrg_totals *t = &r->totals;
    json_t *o = json_object();
    set_sum(o, "params", t->params, t->unknown_params);
    set_sum(o, "trainable_params", t->trainable, t->unknown_params);
    nrg_json_count(o, "buffers", t->buffers);
    set_sum(o, "param_bytes", t->param_bytes, t->unsized_params);
    set_missing(o, t->unknown_params, t->unsized_params);
    if (!r->has_graph)
        return o;
    set_sum(o, "macs", t->cost.macs, t->unknown_operators);
    set_sum(o, "flops", t->cost.flops, t->unknown_operators);
    set_sum(o, "read_bytes", t->cost.read_bytes, t->unknown_bytes);
    set_sum(o, "written_bytes", t->cost.written_bytes, t->unknown_bytes);
    nrg_json_count(o, "operators", (int64_t)t->operators);
    nrg_json_count(o, "unknown_operators", (int64_t)t->unknown_operators);
    set_sum(o, "peak_activation_bytes", t->peak_activation_bytes, t->unknown_activations);
    set_sum(o, "memory_bytes", t->peak_activation_bytes + t->param_bytes,
            t->unknown_activations + t->unsized_params);
    return o;
}

static json_t *data_list(struct nrg_data *const *data, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, data_json(data[i]));
    return list;
}

/* `of` names the tensor that an output is a view of, where it has another name. */
static json_t *outputs_json(const struct nrg_reduced *g)
{
    json_t *list = json_array();
    for (size_t i = 0; i < g->n_outputs; i++) {
        const struct nrg_output *output = &g->outputs[i];
        json_t *o = tensor_json(output->type);
        set_text(o, "id", output->name);
        if (output->data && strcmp(output->name, output->data->name) != 0)
            set_text(o, "of", output->data->name);
        if (output->data)
            set_source(o, output->data);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *warnings_json(const struct nrg_analysis *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->model.n_warnings; i++)
        json_array_append_new(list, json_string(r->model.warnings[i]));
    for (size_t i = 0; r->has_graph && i < r->reduced.n_warnings; i++)
        json_array_append_new(list, json_string(r->reduced.warnings[i]));
    return list;
}

json_t *nrg_graph_json(const struct nrg_analysis *r)
{
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:o, s:[], s:o}", "schema", "nrg.graph/1", "file",
                          r->name, "format", r->model.format ? r->model.format : "", "convention",
                          nrg_convention_name(r->convention), "totals", totals_json(r), "modules",
                          "warnings", warnings_json(r));
    if (!o)
        return NULL;
    set_text(o, "producer", r->model.producer);
    for (size_t i = 0; i < r->tree.n; i++)
        json_array_append_new(json_object_get(o, "modules"),
                              module_json(&r->tree.nodes[i], r->has_graph, r->tree.calls_known));
    char command[3 * PATH_MAX];
    if (nrg_graph_dump_command(r, command, sizeof command))
        set_text(o, "dump_command", command);
    if (!r->has_graph)
        return o;
    json_object_set_new(o, "inputs", data_list(r->reduced.inputs, r->reduced.n_inputs));
    json_object_set_new(o, "outputs", outputs_json(&r->reduced));
    json_t *operators = json_array();
    for (size_t i = 0; i < r->reduced.n_operators; i++)
        json_array_append_new(operators, operator_json(&r->reduced.operators[i]));
    json_object_set_new(o, "operators", operators);
    return o;
}

json_t *nrg_graph_compare_json(const struct nrg_analysis *a, const struct nrg_analysis *b)
{
    return json_pack("{s:s, s:[{s:s, s:o}, {s:s, s:o}]}", "schema", "nrg.graph-compare/1", "models",
                     "file", a->name, "totals", totals_json(a), "file", b->name, "totals",
                     totals_json(b));
}
