/*
 * The ONNX reader: ModelProto and the order of the passes (see internal.h for the map of files). A
 * protobuf file has no magic number; it is recognised by its name's ending or by fields that begin
 * like a ModelProto: ir_version, then names, opsets or a graph, whose lengths fit the file. Weights
 * are never read; a model whose weights are in other files needs only its own.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "graph/onnx/internal.h"
#include "graph/param.h"
#include "graph/readers.h"

enum {
    M_IR_VERSION = 1,
    M_PRODUCER = 2,
    M_PRODUCER_VERSION = 3,
    M_GRAPH = 7,
    M_OPSET = 8,
    M_FUNCTION = 25
};
#define LAST_OPSET 25 /* of the default domain that these rules were written for */

int onnx_fail(struct onnx *x, const void *at, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const uint8_t *byte = at, *first = x->source->bytes;
    bool inside = byte >= first && byte <= first + x->source->size;
    char clean[400];
    nrg_copy_clean(clean, sizeof clean, text, strlen(text));
    return nrg_fail_at(x->err, -EBADMSG, x->source->name, inside ? byte - first : -1, "%s", clean);
}

int onnx_broken(struct onnx *x, const struct nrg_pb *msg)
{
    return onnx_fail(x, msg->at, "%s", msg->why ? msg->why : "broken");
}

int onnx_no_memory(struct onnx *x)
{
    const struct nrg_arena *arena = &x->model->arena;
    bool beyond = arena->limit && arena->used > arena->limit / 2;
    return nrg_fail(x->err, beyond ? -EFBIG : -ENOMEM, x->source->name, "%s",
                    beyond ? "grows far beyond its own size when written out: refused"
                           : "out of memory");
}

const char *onnx_text(struct onnx *x, const struct nrg_pb_field *field)
{
    size_t len = field->wire == NRG_PB_BYTES ? field->size : 0;
    return nrg_model_text(x->model, (const char *)field->bytes, len);
}

const char *onnx_shared(struct onnx *x, const struct nrg_pb_field *field)
{
    size_t len = field->wire == NRG_PB_BYTES ? field->size : 0;
    const void *key = len ? (const void *)field->bytes : "";
    const char *text = onnx_map_get(&x->texts, key, len);
    if (text)
        return text;
    text = onnx_text(x, field);
    return text && !onnx_map_add(x, &x->texts, key, len, (void *)(uintptr_t)text) ? text : NULL;
}

struct nrg_pb_field onnx_text_field(struct nrg_pb msg, uint32_t number)
{
    struct nrg_pb_field field;
    return nrg_pb_find(msg, number, &field) && field.wire == NRG_PB_BYTES
               ? field
               : (struct nrg_pb_field){.wire = NRG_PB_BYTES, .bytes = (const uint8_t *)""};
}

bool onnx_text_is(const struct nrg_pb_field *field, const char *text)
{
    return field->size == strlen(text) && !memcmp(field->bytes, text, field->size);
}

bool onnx_is_default_domain(const struct nrg_pb_field *domain)
{
    return !domain->size || onnx_text_is(domain, "ai.onnx");
}

/* The highest version of the default domain: a file that imports two is read by the newer. */
static void read_opset(struct onnx *x, struct nrg_pb msg)
{
    struct nrg_pb_field domain = onnx_text_field(msg, 1), version;
    if (onnx_is_default_domain(&domain) && nrg_pb_find(msg, 2, &version) &&
        version.value < INT32_MAX && (int64_t)version.value > x->opset)
        x->opset = (int64_t)version.value;
}

static int read_producer(struct onnx *x, struct nrg_pb msg)
{
    struct nrg_pb_field name = onnx_text_field(msg, M_PRODUCER);
    struct nrg_pb_field version = onnx_text_field(msg, M_PRODUCER_VERSION);
    char text[200], number[80];
    if (!name.size)
        return 0;
    nrg_copy_clean(text, 100, (const char *)name.bytes, name.size);
    nrg_copy_clean(number, sizeof number, (const char *)version.bytes, version.size);
    if (number[0])
        strcat(strcat(text, " "), number);
    x->model->producer = nrg_arena_copy(&x->model->arena, text, strlen(text));
    return x->model->producer ? 0 : onnx_no_memory(x);
}

static int prepare_graph(struct onnx *x)
{
    static const struct nrg_type unknown = {.kind = NRG_T_TENSOR, .rank = -1, .requires_grad = -1};
    static const struct nrg_type none = {.kind = NRG_T_NONE, .rank = -1, .requires_grad = -1};
    x->unknown = &unknown;
    x->graph = nrg_arena_alloc(&x->model->arena, sizeof *x->graph);
    if (!x->graph)
        return onnx_no_memory(x);
    x->graph->name = "";
    x->graph->complete = true;
    x->absent = onnx_new_value(x, "", &none);
    return x->absent ? 0 : -ENOMEM;
}

/* One pass for what graphs need to know, which may come after them. */
static int read_header(struct onnx *x, struct nrg_pb msg, struct nrg_pb_field *graph)
{
    struct nrg_pb_field field;
    bool has_graph = false;
    int rc;
    while ((rc = nrg_pb_next(&msg, &field)) > 0) {
        rc = 0;
        if (field.number == M_OPSET)
            read_opset(x, nrg_pb_inside(&field));
        else if (field.number == M_FUNCTION)
            rc = onnx_add_function(x, nrg_pb_inside(&field));
        else if (field.number == M_GRAPH) {
            if (field.wire != NRG_PB_BYTES)
                return onnx_fail(x, msg.at, "field 7 (the graph) has wire type %d: not ONNX",
                                 (int)field.wire);
            *graph = field;
            has_graph = true;
        }
        if (rc)
            return rc;
    }
    if (rc < 0)
        return onnx_broken(x, &msg);
    return has_graph ? 0 : onnx_fail(x, NULL, "has no graph: not an ONNX model");
}

static int number_op(void *arg, struct nrg_op *op)
{
    struct nrg_graph *graph = arg;
    op->id = (uint32_t)graph->n_ops++;
    return 0;
}

/* Names of symbols of the graph's inputs: what a user must fix to get numbers. */
static void warn_symbols(struct onnx *x)
{
    struct nrg_str text = {0};
    const struct nrg_block *body = x->graph->body;
    for (unsigned s = 2; s < x->n_symbols + 2u; s++)
        for (size_t i = 0; i < body->n_inputs; i++) {
            const struct nrg_type *type = body->inputs[i]->type;
            int d = 0;
            while (type->dims && d < type->rank && type->dims[d] != -(int64_t)s)
                d++;
            if (!type->dims || d >= type->rank)
                continue;
            nrg_str_addf(&text, "%s%s[%d]", text.len ? ", " : "", body->inputs[i]->name, d);
            break;
        }
    if (text.len)
        nrg_model_warn(x->model,
                       "inputs have dimensions without a number (%s): what depends on them is "
                       "unknown; export with fixed shapes to count it",
                       text.text);
    nrg_str_release(&text);
}

static void warn_oddities(struct onnx *x)
{
    warn_symbols(x);
    if (x->reordered)
        nrg_model_warn(x->model, "nodes were not in the order of their data: sorted");
    if (x->opset > LAST_OPSET)
        nrg_model_warn(x->model, "opset %lld is newer than this reader's rules (%d)",
                       (long long)x->opset, LAST_OPSET);
    if (x->n_conflicts)
        nrg_model_warn(x->model,
                       "%zu shapes declared in the file differ from what follows from the nodes "
                       "(first: '%s'): the declared ones are used",
                       x->n_conflicts, x->first_conflict);
    if (x->n_broken)
        nrg_model_warn(x->model,
                       "%zu nodes cannot work on the shapes they get (first: '%s'): left unknown",
                       x->n_broken, x->first_broken);
}

static int run_passes(struct onnx *x)
{
    struct nrg_pb msg = nrg_pb_of(x->source->bytes, x->source->size);
    struct nrg_pb_field graph;
    int rc = read_header(x, msg, &graph);
    if (!rc)
        rc = prepare_graph(x);
    if (!rc)
        rc = read_producer(x, msg);
    if (!rc)
        rc = onnx_graph(x, nrg_pb_inside(&graph), NULL, &x->graph->body);
    if (!rc)
        rc = onnx_params(x);
    if (!rc)
        rc = onnx_scopes_finish(x);
    if (!rc)
        rc = onnx_params_place(x);
    if (!rc)
        rc = onnx_shapes(x, x->graph->body);
    if (rc)
        return rc;
    onnx_each_op(x->graph->body, number_op, x->graph);
    warn_oddities(x);
    return nrg_model_add_graph(x->model, x->graph) ? onnx_no_memory(x) : 0;
}

static int onnx_read(const struct nrg_source *source, struct nrg_model *model,
                     struct nrg_error *err)
{
    struct onnx x = {.source = source, .model = model, .err = err};
    int rc = run_passes(&x);
    onnx_map_release(&x.values);
    onnx_map_release(&x.texts);
    onnx_map_release(&x.symbols);
    onnx_map_release(&x.modules);
    free(x.functions);
    free(x.known);
    return rc;
}

/* Only the outermost fields: they are few, and the graph is skipped in one step. */
static int onnx_match(const struct nrg_source *source)
{
    struct nrg_pb msg = nrg_pb_of(source->bytes, source->size);
    struct nrg_pb_field field;
    bool version = false, graph = false, opsets = false;
    int rc;
    if (nrg_ends_with(source->name, ".onnx"))
        return 90;
    while ((rc = nrg_pb_next(&msg, &field)) > 0) {
        if (field.number > 31 || (field.number == M_IR_VERSION && field.wire != NRG_PB_VARINT))
            return 0;
        version |= field.number == M_IR_VERSION && field.value < 100;
        graph |= field.number == M_GRAPH && field.wire == NRG_PB_BYTES;
        opsets |= field.number == M_OPSET && field.wire == NRG_PB_BYTES;
    }
    if (rc < 0) /* a download that stopped */
        return version && source->bytes[0] == 8 ? 30 : 0;
    return graph ? opsets && version ? 85 : 40 : 0;
}

const struct nrg_reader nrg_reader_onnx = {
    .name = "onnx",
    .summary = "ONNX models (.onnx), shapes inferred",
    .match = onnx_match,
    .read = onnx_read,
};
