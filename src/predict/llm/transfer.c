/*
 * See transfer.h. The table is from the makers' datasheets: NVIDIA's for A10, A100, H100, H200, L4,
 * L40, L40S, T4, V100, DGX B200 (an eighth of it) and GB200 NVL72 (a 72nd), the GeForce
 * architecture papers (products of 16 bits added in 32), AMD's for MI250X, MI300X, MI325X and
 * MI355X, Intel's white papers for Gaudi (its talk at Hot Chips 2024). Written from memory of
 * these sheets; most figures were compared with what public pages cite of them, those of V100, A10
 * and L4 were not. FLOPs are dense, without
 * sparsity, where a sheet has them with it half of that; bytes are decimal; watts are the most that
 * a maker lets the board draw. The first name that the device's begins with counts, so longer ones
 * stand before shorter ones; nothing but a size of memory and its kind may follow ("H100 80GB
 * HBM3"): an A10G is no A10, and "A100 80GB PCIe", as drivers call it, no board of 400 W.
 */
#include "predict/llm/transfer.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* 95 % of the errors from H100 to B200 are below 0.48 in ln, from B200 to H100 below 0.35. */
#define CARRIED_LN 0.45

static const struct nrg_gpu gpus[] = {
    {"A100 PCIe 40GB", 1.555e12, 312e12, 0, 250, 40e9},
    {"A100 PCIe", 1.935e12, 312e12, 0, 300, 80e9},
    {"A100 80GB PCIe", 1.935e12, 312e12, 0, 300, 80e9},
    {"A100 40GB", 1.555e12, 312e12, 0, 400, 40e9},
    {"A100", 2.039e12, 312e12, 0, 400, 80e9},
    {"A10", 0.6e12, 125e12, 0, 150, 24e9},
    {"B200", 8e12, 2250e12, 4500e12, 1000, 180e9},
    {"Gaudi 2", 2.46e12, 432e12, 865e12, 600, 96e9},
    {"Gaudi 3", 3.7e12, 1835e12, 1835e12, 900, 128e9},
    {"GB200", 8e12, 2500e12, 5000e12, 1200, 186e9},
    {"H100 NVL", 3.9e12, 835e12, 1671e12, 400, 94e9},
    {"H100 PCIe", 2e12, 756e12, 1513e12, 350, 80e9},
    {"H100", 3.35e12, 989e12, 1979e12, 700, 80e9},
    {"H200 NVL", 4.8e12, 835e12, 1671e12, 600, 141e9},
    {"H200", 4.8e12, 989e12, 1979e12, 700, 141e9},
    {"L40S", 0.864e12, 362e12, 733e12, 350, 48e9},
    {"L40", 0.864e12, 181e12, 362e12, 300, 48e9},
    {"L4", 0.3e12, 121e12, 242e12, 72, 24e9},
    {"MI250X", 3.277e12, 383e12, 0, 560, 128e9},
    {"MI300X", 5.3e12, 1307e12, 2615e12, 750, 192e9},
    {"MI325X", 6e12, 1307e12, 2615e12, 1000, 256e9},
    {"MI355X", 8e12, 2517e12, 5033e12, 1400, 288e9},
    {"RTX 4090", 1.008e12, 165e12, 330e12, 450, 24e9},
    {"RTX 5090", 1.792e12, 210e12, 419e12, 575, 32e9},
    {"T4", 0.32e12, 65e12, 0, 70, 16e9},
    {"V100 16GB", 0.9e12, 125e12, 0, 300, 16e9},
    {"V100", 0.9e12, 125e12, 0, 300, 32e9},
};
#define N_GPUS (sizeof gpus / sizeof *gpus)

/* Letters and digits alone, in lower case, without the maker and what is in every name. */
static void squeeze(const char *name, char *out, size_t size)
{
    static const char *const words[] = {"nvidia", "amd", "intel", "habana", "instinct", "geforce",
                                        "tesla",  "oam", "sxm5",  "sxm4",   "sxm2",     "sxm"};
    size_t n = 0;
    while (*name && n + 1 < size) {
        size_t skip = 0;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (!skip && !strncasecmp(name, words[i], strlen(words[i])))
                skip = strlen(words[i]);
        if (!skip && isalnum((unsigned char)*name))
            out[n++] = (char)tolower((unsigned char)*name);
        name += skip ? skip : 1;
    }
    out[n] = 0;
}

/* "80gb", "80gbhbm3". */
static bool is_memory(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    if (!digits || strncmp(text + digits, "gb", 2) != 0)
        return false;
    const char *kind = text + digits + 2;
    return !*kind || !strncmp(kind, "hbm", 3) || !strncmp(kind, "gddr", 4);
}

static const struct nrg_gpu *find(const char *name)
{
    char asked[128], known[32];
    squeeze(name, asked, sizeof asked);
    for (size_t i = 0; i < N_GPUS; i++) {
        squeeze(gpus[i].name, known, sizeof known);
        const char *rest = asked + strlen(known);
        if (!strncmp(asked, known, strlen(known)) && (!*rest || is_memory(rest)))
            return &gpus[i];
    }
    return NULL;
}

const struct nrg_gpu *nrg_gpu_find(const char *name, struct nrg_error *err)
{
    char list[400] = "";
    size_t n = 0;
    const struct nrg_gpu *gpu = find(name);
    for (size_t i = 0; !gpu && i < N_GPUS && n < sizeof list; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", gpus[i].name);
    if (!gpu)
        nrg_fail(err, -ENODEV, NULL, "the GPU '%s' is not known: known are %s", name, list);
    return gpu;
}

/* Products of 8-bit weights are of 8 bits where the GPU has such; those of 4 bits are unpacked. */
static double flops_of(const struct nrg_gpu *gpu, double weight_bits)
{
    bool eight = weight_bits > 6 && weight_bits < 12 && gpu->flops_8 > 0;
    return eight ? gpu->flops_8 : gpu->flops;
}

/* One board by two names, or with more memory. */
static bool is_as_fast(const struct nrg_gpu *a, const struct nrg_gpu *b)
{
    return a->bytes_per_s == b->bytes_per_s && a->flops == b->flops && a->flops_8 == b->flops_8 &&
           a->limit_w == b->limit_w;
}

int nrg_llm_law_transfer(struct nrg_llm_law *law, const char *from_name, const struct nrg_gpu *to,
                         double weight_bits, struct nrg_error *err)
{
    static const enum nrg_llm_term bytes[] = {NRG_LLM_DENSE_BYTES, NRG_LLM_EXPERT_BYTES,
                                              NRG_LLM_CACHE_BYTES, NRG_LLM_ACTIVATION_BYTES};
    static const enum nrg_llm_term products[] = {NRG_LLM_MACS, NRG_LLM_PROMPT_MACS};
    const struct nrg_gpu *from = nrg_gpu_find(from_name, err);
    if (!from)
        return -ENODEV;
    if (is_as_fast(from, to))
        return 0;
    double power = to->limit_w / from->limit_w;
    double product = flops_of(from, weight_bits) / flops_of(to, weight_bits);
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        law->seconds[bytes[i]] *= from->bytes_per_s / to->bytes_per_s;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        law->seconds[products[i]] *= product;
        law->joules[products[i]] *= product * power;
    }
    law->static_w *= power;
    law->carried_ln = CARRIED_LN;
    law->time_q = hypot(law->time_q, CARRIED_LN);
    law->expected_error = law->time_error = NAN;
    return 0;
}
