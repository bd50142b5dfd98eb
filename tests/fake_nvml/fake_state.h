/*
 * The state behind the fake library: GPUs as the script says (fake_script.c fills it, fake_nvml.c
 * plays it). Globals are the library's nature here: NVML has no handle for itself.
 */
#ifndef NRG_TESTS_FAKE_STATE_H
#define NRG_TESTS_FAKE_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_nvml/fake_nvml.h"

enum { MAX_GPUS = 16, MAX_STEPS = 256, MAX_SAMPLES = 64, MAX_PROCESSES = 32, MAX_MIG = 16 };
enum { TYPES = 7, DEPTH = 120 };

enum { VALUES = 8, VALUE_MEMORY = 6, VALUE_TEMPERATURE = 7 };

struct process {
    unsigned pid;
    unsigned long long bytes;
    int sm;            /* -1: none */
    unsigned instance; /* of MIG; all ones: none */
    bool client;       /* of MPS */
};

struct nvmlDevice_st { /* a board or a MIG instance */
    struct gpu *gpu;
    unsigned long long used_bytes;
    unsigned processors; /* of an instance; 0: not told */
    double busy;         /* percent of them, as the performance monitor says; -1: it has none */
};

struct gpu {
    char name[96];
    unsigned arch;
    size_t n_steps;
    struct {
        double at_s, w;
    } steps[MAX_STEPS];
    double energy_j, energy_period_ms, lost_after_ms, limit_w;
    double power_mean_ms, power_period_ms;
    bool has_instant;
    int instant_type;
    double instant_w; /* negative: as it is */
    double values[VALUES];
    int fail[CALLS];
    double fail_after_ms[CALLS];
    long lost;
    atomic_long calls;
    double period_ms[TYPES];
    int value_type[TYPES];
    unsigned claim[TYPES];
    size_t n_samples[TYPES];
    struct {
        double at_ms, value;
    } samples[TYPES][MAX_SAMPLES];
    bool ignore_last;
    size_t n_processes;
    struct process processes[MAX_PROCESSES];
    unsigned garbage, entry_bytes;
    size_t n_mig;
    struct nvmlDevice_st board, mig[MAX_MIG];
};

struct fake {
    pthread_mutex_t lock;
    int users, init;
    size_t n_gpus;
    unsigned claimed_gpus;
    int64_t zero_ns;          /* time 0 as the script says; 0: it does not */
    int64_t mono_ns, real_ns; /* time 0 */
    struct gpu gpus[MAX_GPUS];
};

extern struct fake fake;

/* Reads $NRG_FAKE_NVML into `fake`; the caller sets time 0. */
void fake_load(void);

#endif
