/*
 * Profiles as JSON files, schema nrg.profile/1 (docs/predict.md).
 *
 * Ownership: the caller releases a profile that was read. Errors: 0, or -errno with err; the
 * profile is then empty. Threads: nothing is shared.
 */
#ifndef NRG_PREDICT_PROFILE_JSON_H
#define NRG_PREDICT_PROFILE_JSON_H

#include <jansson.h>

#include "predict/profile.h"

/* A new reference; NULL when out of memory. */
json_t *nrg_profile_json(const struct nrg_profile *profile);

int nrg_profile_read(struct nrg_profile *profile, const char *path, struct nrg_error *err);
/* `name` is for messages. */
int nrg_profile_parse(struct nrg_profile *profile, const char *text, size_t size, const char *name,
                      struct nrg_error *err);

#endif
