/*
 * A law carried over to a GPU without rows, by what datasheets say of both: seconds per byte by
 * their bandwidths, seconds per product by their FLOPs, static power by their power limits, joules
 * per product by joules per FLOP at the limit. Joules per byte, and what a layer costs whatever its
 * size, are carried as they are. The half width is that of the law and CARRIED_LN together, which
 * is what is left of the errors from H100 to B200 and back (docs/llm.md).
 *
 * Ownership: plain values. Errors: 0, or -errno with err. Threads: pure.
 */
#ifndef NRG_PREDICT_LLM_TRANSFER_H
#define NRG_PREDICT_LLM_TRANSFER_H

#include "predict/llm/law.h"

struct nrg_gpu {
    const char *name;
    double bytes_per_s;    /* of its memory */
    double flops, flops_8; /* dense, of 16 bits and of 8; 0: has none of these */
    double limit_w;        /* of the board */
    double memory_bytes;
};

/*
 * By name, letters of any case, without spaces and dashes, with or without the maker ("NVIDIA H100
 * 80GB HBM3"). NULL with err, which lists the known ones.
 */
const struct nrg_gpu *nrg_gpu_find(const char *name, struct nrg_error *err);

/* From the device of the law's profile. One that is not known is an error. */
int nrg_llm_law_transfer(struct nrg_llm_law *law, const char *from, const struct nrg_gpu *to,
                         double weight_bits, struct nrg_error *err);

#endif
