/*
 * Pages of metrics: the text format of Prometheus and OpenMetrics, read tolerantly. Lines that are
 * neither a comment nor a sample are passed over and counted. A whole page in JSON quotes, which
 * one build of llama.cpp sent, is read as if it had none.
 *
 * Embedded; points into the page, which it may change, and which must outlive it. No memory, no
 * error. One thread at a time.
 */
#ifndef NRG_SENSORS_LLM_EXPOSITION_H
#define NRG_SENSORS_LLM_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>

struct nrg_exposition {
    char *at, *end;
    size_t samples, refused; /* lines */
};

/* Texts with their length; not terminated. */
struct nrg_exposition_sample {
    const char *name, *labels; /* labels: what is within the braces; "" for none */
    size_t name_len, labels_len;
    double value; /* may be NAN, infinite, negative */
};

void nrg_exposition_init(struct nrg_exposition *e, char *page, size_t len);
/* False after the last sample. */
bool nrg_exposition_next(struct nrg_exposition *e, struct nrg_exposition_sample *sample);
/* The value of a label, as it is written, not terminated; NULL when the sample has none of that
 * name.
 */
const char *nrg_exposition_label(const struct nrg_exposition_sample *sample, const char *label,
                                 size_t *len);

#endif
