/* See memory.h. GPUs are tried in powers of two, as servers have them, from those of the load on.
 */
#include "predict/llm/memory.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define MOST_GPUS 1024

static bool fits_into(const struct nrg_llm_config *c, const struct nrg_llm_load *load,
                      double memory_bytes)
{
    struct nrg_llm_work work;
    return !nrg_llm_work_make(&work, c, load, NULL) && work.gpu_bytes <= memory_bytes;
}

/* The largest whole number below the load's own size, by the size's place in it; 0: none fits. */
static double largest(const struct nrg_llm_config *c, struct nrg_llm_load load, size_t member,
                      double memory_bytes)
{
    double *size = (double *)(void *)((char *)&load + member);
    double low = 0, high = ceil(*size) - 1;
    while (low < high) {
        *size = ceil((low + high) / 2);
        if (fits_into(c, &load, memory_bytes))
            low = *size;
        else
            high = *size - 1;
    }
    return low;
}

void nrg_llm_fit_find(struct nrg_llm_fit *fit, const struct nrg_llm_config *c,
                      const struct nrg_llm_load *load, double memory_bytes)
{
    struct nrg_llm_load other = *load;
    *fit = (struct nrg_llm_fit){0};
    for (double gpus = 1; gpus <= MOST_GPUS && !(fit->gpus > 0); gpus *= 2) {
        other.gpus = gpus;
        other.tp = nrg_llm_default_tp(c, gpus);
        if (gpus < load->gpus || !fits_into(c, &other, memory_bytes))
            continue;
        fit->gpus = other.gpus;
        fit->tp = other.tp;
    }
    fit->batch = largest(c, *load, offsetof(struct nrg_llm_load, batch), memory_bytes);
    if (!(fit->batch > 0))
        fit->prompt = largest(c, *load, offsetof(struct nrg_llm_load, prompt), memory_bytes);
}

const char *nrg_llm_fit_text(const struct nrg_llm_fit *f, char *buf, size_t size)
{
    char gpus[80] = "", less[80] = "";
    if (f->gpus > 0)
        snprintf(gpus, sizeof gpus, "%g GPU%s (--gpus %g --tp %g)", f->gpus, f->gpus > 1 ? "s" : "",
                 f->gpus, f->tp);
    if (f->batch > 0)
        snprintf(less, sizeof less, "a batch of %g (--batch %g)", f->batch, f->batch);
    else if (f->prompt > 0)
        snprintf(less, sizeof less, "a prompt of %g tokens (--prompt %g)", f->prompt, f->prompt);
    snprintf(buf, size, "%s%s%s", gpus, *gpus && *less ? ", or " : "", less);
    if (!*buf)
        snprintf(buf, size, "nothing up to %d such GPUs", MOST_GPUS);
    return buf;
}
