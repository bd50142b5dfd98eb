/*
 * Fields of JSON documents, on jansson. What is missing stays absent: a number that is not finite,
 * a count that is negative (NRG_MISSING, too), an empty text. Texts that are not UTF-8 are made so.
 * `o` NULL, after an allocation failed, is harmless, as with jansson itself.
 */
#ifndef NRG_BASE_JSON_SET_H
#define NRG_BASE_JSON_SET_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct nrg_json_real {
    const char *key;
    double value;
};

void nrg_json_real(json_t *o, const char *key, double value);
void nrg_json_reals(json_t *o, const struct nrg_json_real *fields, size_t n);
/* Several at once: NRG_JSON_REALS(o, {"energy_j", e_j}, {"time_s", t_s}) */
#define NRG_JSON_REALS(o, ...)                                                                     \
    nrg_json_reals(o, (const struct nrg_json_real[]){__VA_ARGS__},                                 \
                   sizeof((const struct nrg_json_real[]){__VA_ARGS__}) /                           \
                       sizeof(struct nrg_json_real))
void nrg_json_count(json_t *o, const char *key, int64_t n);
void nrg_json_text(json_t *o, const char *key, const char *text);

/* As json_load_file, for what nrg_open_readable opens (base/input.h); why: line -1 if it does not.
 */
json_t *nrg_json_load_file(const char *path, size_t flags, json_error_t *why);

/* A new reference to the text, made UTF-8; NULL when out of memory. */
json_t *nrg_json_string(const char *text);
/* A list of texts. */
json_t *nrg_json_strings(const char *const *texts, size_t n);

#endif
