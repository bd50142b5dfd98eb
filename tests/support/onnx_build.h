/*
 * For tests: ONNX files made by hand, field by field. Every function appends to a growing text
 * (protobuf allows any order) and aborts the test when memory runs out. Field numbers are those of
 * onnx.proto.
 */
#ifndef NRG_TESTS_ONNX_BUILD_H
#define NRG_TESTS_ONNX_BUILD_H

#include "base/mem.h"
#include "graph/reader.h"

/* Wire level. */
void pb_number(struct nrg_str *to, unsigned field, uint64_t value);
void pb_text(struct nrg_str *to, unsigned field, const char *text);
void pb_float(struct nrg_str *to, unsigned field, float value);
/* Takes the message: it is released. */
void pb_message(struct nrg_str *to, unsigned field, struct nrg_str *message);

/* Attributes of a node. */
void attr_int(struct nrg_str *node, const char *name, int64_t value);
void attr_ints(struct nrg_str *node, const char *name, size_t n, const int64_t *values);
void attr_text(struct nrg_str *node, const char *name, const char *value);
/* A constant int64 tensor; rank 0 when n is 1 and scalar is set. */
void attr_tensor(struct nrg_str *node, const char *name, size_t n, const int64_t *values,
                 bool scalar);
void attr_graph(struct nrg_str *node, const char *name, struct nrg_str *graph);

/* "x,w,b" and "y": names between commas; an empty one is left out. */
struct nrg_str node_of(const char *op_type, const char *inputs, const char *outputs);

/* Parts of a graph. Dims end with END; DIM_N is the symbol "N", DIM_ANY nothing. */
#define END     INT64_MIN
#define DIM_N   (INT64_MIN + 1)
#define DIM_ANY (INT64_MIN + 2)
void graph_input(struct nrg_str *graph, const char *name, int dtype, const int64_t *dims);
void graph_output(struct nrg_str *graph, const char *name);
/* Floats without contents: only the dims matter. */
void graph_weight(struct nrg_str *graph, const char *name, const int64_t *dims);
void graph_ints(struct nrg_str *graph, const char *name, size_t n, const int64_t *values);
void graph_node(struct nrg_str *graph, struct nrg_str *node);
#define DIMS(...) ((const int64_t[]){__VA_ARGS__, END})
#define INTS(...)                                                                                  \
    sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), ((const int64_t[]){__VA_ARGS__})

/* The whole file around a graph (which is taken). */
struct nrg_str model_of(struct nrg_str *graph, int opset);
/* Reads bytes as ONNX and releases them. */
int read_onnx(struct nrg_str *file, const char *name, struct nrg_model *model,
              struct nrg_error *err);

const struct nrg_op *op_of(const struct nrg_model *model, const char *kind);
/* The type of a value by name, as text: "float32[1,-1,3]", "[*]" for an unknown rank. */
const char *type_text(const struct nrg_model *model, const char *value, char *buf, size_t size);

#endif
