/* JSON files of other tools, some of which hold their JSON as one quoted text. */
#ifndef NRG_GRAPH_JSON_TEXT_H
#define NRG_GRAPH_JSON_TEXT_H

#include <jansson.h>

#include "graph/reader.h"

/* The document, unwrapped when it is a text that holds JSON; NULL with err. Free: json_decref. */
json_t *nrg_json_open(const struct nrg_source *source, struct nrg_error *err);

/* A JSON document whose beginning has the word, quoted or quoted twice. */
bool nrg_json_mentions(const struct nrg_source *source, const char *word);

/* Dims of a JSON list of numbers as a tensor type; negative ones are unknown. */
const struct nrg_type *nrg_json_tensor(struct nrg_model *model, const json_t *dims,
                                       enum nrg_dtype dtype);
/* A clean copy in the arena; NULL: out of memory. */
const char *nrg_json_copy(struct nrg_model *model, const char *text);

#endif
