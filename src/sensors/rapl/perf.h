/*
 * The description of the kernel's "power" PMU, apart from the driver so that it can be checked
 * on a captured tree, where no counter can be opened.
 */
#ifndef NRG_SENSORS_RAPL_PERF_H
#define NRG_SENSORS_RAPL_PERF_H

#include "base/error.h"
#include "sensors/cpus.h"

struct nrg_perf_event {
    const char *name;   /* "energy-pkg" */
    const char *domain; /* nrg_rapl_channel's word: "package" */
    uint64_t config;
    double scale_j; /* joules per count */
};

struct nrg_perf_pmu {
    uint32_t type;
    struct nrg_perf_event events[5];
    size_t n_events;
    struct nrg_cpus cpus; /* one per package or die, to open the events on */
    char refused[256];    /* why an event was left out (the last one), "" */
};

/*
 * -ENOENT: this machine has no such PMU; -ENODATA: it has no energy event; -EINVAL: a file does
 * not hold what the kernel writes there. Release after success only.
 */
int nrg_perf_pmu_read(const struct nrg_root *root, struct nrg_perf_pmu *pmu, struct nrg_error *err);
/* True when nothing but psys is listed: the kernel does so where it does not count. */
bool nrg_perf_psys_is_alone(const struct nrg_perf_pmu *pmu);
void nrg_perf_pmu_release(struct nrg_perf_pmu *pmu);

/* "event=0x02" -> 2. Other terms are refused: they would count something else. */
int nrg_perf_config_parse(const char *text, uint64_t *config);

#endif
