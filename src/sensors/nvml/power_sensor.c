/*
 * How the power sensor behind NVML looks at the GPU, by architecture: see nvml/internal.h.
 *
 * Two sources. Yang, Adámek and Armour (SC24, arXiv 2312.02741) measured more than 70 boards: on
 * A100 and H100 a value is the mean of 25 ms of every 100 ms, and the other 75 ms are never seen.
 * NVIDIA's documentation of nvmlDeviceGetPowerUsage: a mean over one second since Ampere, except
 * on GA100 (A100, A30, A800). A mean over a second leaves nothing out, unless it is one of such
 * part-time values: these (Hopper), and those of boards whose updates nobody has measured, are said
 * to be half a second late. What neither source tells stays 0, not known; nrg calibrate --gpu finds
 * it.
 *
 * A row is for all boards of its architecture, or for those with one of its words in their name.
 */
#include <string.h>

#include "sensors/nvml/internal.h"

#define MS      NRG_NS_PER_MS
#define MEAN_NS (1000 * MS)
#define LATE_NS (MEAN_NS / 2)
#define WORDS   4

static const struct {
    unsigned architecture;
    const char *words[WORDS]; /* none: any name */
    struct nrg_nvml_power_sensor sensor;
} table[] = {
    {NVML_ARCH_AMPERE, {"A100", "A30", "A800"}, {100 * MS, 25 * MS, 0, 0}},
    {NVML_ARCH_AMPERE, {NULL}, {100 * MS, 100 * MS, MEAN_NS, 0}},
    {NVML_ARCH_ADA, {NULL}, {100 * MS, 100 * MS, MEAN_NS, 0}},
    {NVML_ARCH_HOPPER, {NULL}, {100 * MS, 25 * MS, 0, LATE_NS}},
};

static bool is_word(const char *name, const char *word)
{
    const char *at = strstr(name, word);
    const char *end = at ? at + strlen(word) : NULL;
    return at && !(*end >= '0' && *end <= '9'); /* "A30" is not in "A3000" */
}

static bool row_fits(size_t row, unsigned architecture, const char *name)
{
    bool fits = !table[row].words[0];
    for (size_t i = 0; i < WORDS && table[row].words[i]; i++)
        fits |= is_word(name, table[row].words[i]);
    return fits && table[row].architecture == architecture;
}

struct nrg_nvml_power_sensor nrg_nvml_power_sensor(unsigned architecture, const char *name)
{
    struct nrg_nvml_power_sensor unknown = {0};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (row_fits(i, architecture, name))
            return table[i].sensor;
    if (architecture > NVML_ARCH_HOPPER && architecture != (unsigned)NVML_ARCH_UNKNOWN)
        unknown.lag_ns = LATE_NS;
    return unknown;
}
