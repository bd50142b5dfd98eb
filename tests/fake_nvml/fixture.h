/*
 * For tests of the nvml driver: a tree, a script for the fake library, and the driver on it.
 * The library comes from the environment of the test (NRG_TEST_FAKE_NVML, see meson.build).
 */
#ifndef NRG_TESTS_NVML_FIXTURE_H
#define NRG_TESTS_NVML_FIXTURE_H

#include "support/tree.h"

struct nvml_fixture {
    struct tree tree;
    struct nrg_probe probe;
    struct keep_sink *keep;
    const struct nrg_found *found;
    void *sensor;
};

void nap_ms(long ms);
/* Makes the tree, writes the script and probes nvml alone. */
void nvml_probe_with(struct nvml_fixture *f, const char *script);
void nvml_open_gpu(struct nvml_fixture *f, size_t index);
int nvml_read_gpu(struct nvml_fixture *f);
void nvml_done(struct nvml_fixture *f);

size_t channel_index(const struct nrg_found *found, const char *name, enum nrg_quantity q);
/* Values of one channel in order of emission; how many. */
size_t nvml_values(const struct nvml_fixture *f, const char *name, enum nrg_quantity q,
                   int64_t *raw, int64_t *t_ns, size_t max);
int64_t nvml_last(const struct nvml_fixture *f, const char *name, enum nrg_quantity q);

#endif
