/*
 * The layer model as a part of a profile's JSON.
 *
 * Ownership: the caller releases the model that was parsed. Errors: NULL when out of memory; 0, or
 * -errno with err. Threads: nothing is shared.
 */
#ifndef NRG_PREDICT_COMPAT_LAYER_JSON_H
#define NRG_PREDICT_COMPAT_LAYER_JSON_H

#include <jansson.h>

#include "predict/compat/layer.h"

json_t *nrg_layer_json(const struct nrg_layer_model *model);
/* `name` is the file's, for messages. */
int nrg_layer_parse(struct nrg_layer_model *model, const json_t *doc, const char *name,
                    struct nrg_error *err);

#endif
