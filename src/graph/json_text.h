/*
 * JSON files of other tools, some of which hold their JSON as one quoted text, and the graph that
 * a list of layers in them becomes: one block of operators with what the file says of them.
 */
#ifndef NRG_GRAPH_JSON_TEXT_H
#define NRG_GRAPH_JSON_TEXT_H

#include <jansson.h>

#include "graph/param.h"
#include "graph/reader.h"

/* The document as it stands, by Jansson's flags; NULL with err. Free: json_decref. */
json_t *nrg_json_load(const struct nrg_source *source, size_t flags, struct nrg_error *err);
/* The document, unwrapped when it is a text that holds JSON; NULL with err. Free: json_decref. */
json_t *nrg_json_open(const struct nrg_source *source, struct nrg_error *err);

/* A JSON document whose beginning has the word, quoted or quoted twice. */
bool nrg_json_mentions(const struct nrg_source *source, const char *word);

/* Dims of a JSON list of numbers as a tensor type; negative ones are unknown. */
const struct nrg_type *nrg_json_tensor(struct nrg_model *model, const json_t *dims,
                                       enum nrg_dtype dtype);

/* Dims and rank of a JSON list of integers from `least` on; false: it is something else. */
bool nrg_json_dims(const json_t *list, int64_t least, struct nrg_tensor_info *tensor);

/*
 * A graph that is being made. A failed allocation is noted in `out_of_memory`, which is checked
 * once, at the end of a layer; until then pointers may be NULL and texts are "".
 */
struct nrg_layers {
    struct nrg_model *model;
    struct nrg_graph *graph;
    bool out_of_memory;
};

/* An empty graph with room for that many operators and inputs; NULL: out of memory. */
struct nrg_block *nrg_layers_begin(struct nrg_layers *layers, size_t n_ops, size_t n_inputs);
void *nrg_layers_take(struct nrg_layers *layers, size_t n, size_t size);  /* zeroed */
const char *nrg_layers_text(struct nrg_layers *layers, const char *text); /* NULL as "" */
struct nrg_value *nrg_layers_value(struct nrg_layers *layers, const char *name,
                                   const struct nrg_type *type);
/* A number or a list of them as an attribute; false: it is none, or is empty. */
bool nrg_layers_ints(struct nrg_layers *layers, const json_t *value, struct nrg_attr *attr);

#endif
