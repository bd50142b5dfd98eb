/* The script of the fake NVML: see the head of fake_nvml.c for its statements. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_nvml/fake_state.h"

static const char *const call_names[CALLS] = {
    [CALL_HANDLE] = "handle",
    [CALL_NAME] = "name",
    [CALL_ARCH] = "arch",
    [CALL_ENERGY] = "energy",
    [CALL_POWER] = "power",
    [CALL_FIELDS] = "fields",
    [CALL_UTILIZATION] = "utilization",
    [CALL_ENCODER] = "encoder",
    [CALL_DECODER] = "decoder",
    [CALL_CLOCK] = "clock",
    [CALL_MEMORY] = "memory",
    [CALL_TEMPERATURE] = "temperature",
    [CALL_MIG_MODE] = "mig-mode",
    [CALL_MIG_HANDLE] = "mig-handle",
    [CALL_SHARES] = "process-utilization",
    [CALL_PROCESSES] = "processes",
    [CALL_SAMPLES + 0] = "samples.0",
    [CALL_SAMPLES + 1] = "samples.1",
    [CALL_SAMPLES + 2] = "samples.2",
    [CALL_SAMPLES + 3] = "samples.3",
    [CALL_SAMPLES + 4] = "samples.4",
    [CALL_SAMPLES + 5] = "samples.5",
    [CALL_SAMPLES + 6] = "samples.6",
};

/* In the order of the sample types from 1 on, then memory and temperature. */
static const char *const value_names[] = {"util",     "mem-util",  "enc",    "dec",
                                          "sm-clock", "mem-clock", "memory", "temperature"};
static struct gpu *new_gpu(const char *name)
{
    if (fake.n_gpus == MAX_GPUS)
        return NULL;
    struct gpu *gpu = &fake.gpus[fake.n_gpus++];
    memset(gpu, 0, sizeof *gpu);
    snprintf(gpu->name, sizeof gpu->name, "%s", name);
    gpu->board.gpu = gpu;
    gpu->arch = 5;
    gpu->steps[gpu->n_steps++].w = 100;
    gpu->instant_w = -1;
    gpu->energy_j = 1000;
    gpu->energy_period_ms = 100;
    gpu->lost = -1;
    gpu->lost_after_ms = -1;
    gpu->entry_bytes = 24;
    for (int type = 0; type < TYPES; type++) {
        gpu->period_ms[type] = type ? 167 : 20;
        gpu->value_type[type] = 1;
    }
    return gpu;
}

static void parse_power(struct gpu *gpu, const char *text)
{
    int used = 0;
    gpu->n_steps = 1;
    sscanf(text, "%lf%n", &gpu->steps[0].w, &used);
    for (text += used; gpu->n_steps < MAX_STEPS; text += used, gpu->n_steps++)
        if (sscanf(text, "%lf %lf%n", &gpu->steps[gpu->n_steps].at_s, &gpu->steps[gpu->n_steps].w,
                   &used) != 2)
            break;
}

static void parse_fail(struct gpu *gpu, const char *text)
{
    char name[32];
    int code;
    double after_ms = 0;
    if (sscanf(text, "%31s %d %lf", name, &code, &after_ms) < 2)
        return;
    for (int call = 0; call < CALLS; call++) {
        bool all = !strcmp(name, "all") && call != CALL_HANDLE && call != CALL_NAME;
        bool samples = !strcmp(name, "samples") && call >= CALL_SAMPLES;
        if (all || samples || !strcmp(name, call_names[call])) {
            gpu->fail[call] = code;
            gpu->fail_after_ms[call] = after_ms;
        }
    }
}

static void parse_process(struct gpu *gpu, const char *text, bool client)
{
    char bytes[32], sm[16];
    struct process *process = &gpu->processes[gpu->n_processes];
    process->instance = ~0u;
    if (gpu->n_processes < MAX_PROCESSES &&
        sscanf(text, "%u %31s %15s %u", &process->pid, bytes, sm, &process->instance) >= 3) {
        process->bytes = strcmp(bytes, "na") ? strtoull(bytes, NULL, 10) : ~0ULL;
        process->sm = strcmp(sm, "-") ? atoi(sm) : -1;
        process->client = client;
        gpu->n_processes++;
    }
}

static void parse_mig(struct gpu *gpu, const char *text)
{
    struct nvmlDevice_st *mig = &gpu->mig[gpu->n_mig++];
    *mig = (struct nvmlDevice_st){.gpu = gpu, .busy = -1};
    sscanf(text, "%llu %u %lf", &mig->used_bytes, &mig->processors, &mig->busy);
}

/* Statements with a sample type as first argument. */
static bool parse_typed(struct gpu *gpu, const char *word, const char *text)
{
    unsigned type;
    double a = 0, b = 0;
    int n = sscanf(text, "%u %lf %lf", &type, &a, &b);
    if (n < 2 || type >= TYPES)
        return false;
    if (!strcmp(word, "period"))
        gpu->period_ms[type] = a;
    else if (!strcmp(word, "value-type"))
        gpu->value_type[type] = (int)a;
    else if (!strcmp(word, "claim"))
        gpu->claim[type] = (unsigned)a;
    else if (!strcmp(word, "sample") && n == 3 && gpu->n_samples[type] < MAX_SAMPLES) {
        gpu->samples[type][gpu->n_samples[type]].at_ms = a;
        gpu->samples[type][gpu->n_samples[type]++].value = b;
    } else
        return false;
    return true;
}

static void parse_gpu(struct gpu *gpu, const char *word, const char *text)
{
    double number = strtod(text, NULL);
    for (int i = 0; i < VALUES; i++)
        if (!strcmp(word, value_names[i]))
            gpu->values[i] = number;
    gpu->board.used_bytes = (unsigned long long)gpu->values[VALUE_MEMORY];
    if (!strcmp(word, "arch"))
        gpu->arch = (unsigned)number;
    else if (!strcmp(word, "power"))
        parse_power(gpu, text);
    else if (!strcmp(word, "power-mean"))
        gpu->power_mean_ms = number;
    else if (!strcmp(word, "power-period"))
        gpu->power_period_ms = number;
    else if (!strcmp(word, "instant"))
        gpu->has_instant = sscanf(text, "%d %lf", &gpu->instant_type, &gpu->instant_w) > 0;
    else if (!strcmp(word, "limit"))
        gpu->limit_w = number;
    else if (!strcmp(word, "energy"))
        gpu->energy_j = number;
    else if (!strcmp(word, "energy-period"))
        gpu->energy_period_ms = number;
    else if (!strcmp(word, "fail"))
        parse_fail(gpu, text);
    else if (!strcmp(word, "lost"))
        gpu->lost = (long)number;
    else if (!strcmp(word, "lost-after"))
        gpu->lost_after_ms = number;
    else if (!strcmp(word, "ignore-last"))
        gpu->ignore_last = true;
    else if (!strcmp(word, "process") || !strcmp(word, "mps-client"))
        parse_process(gpu, text, word[0] == 'm');
    else if (!strcmp(word, "garbage"))
        gpu->garbage = (unsigned)number;
    else if (!strcmp(word, "entry-bytes"))
        gpu->entry_bytes = (unsigned)number;
    else if (!strcmp(word, "mig") && gpu->n_mig < MAX_MIG)
        parse_mig(gpu, text);
    else
        parse_typed(gpu, word, text);
}

static void parse_line(char *line, struct gpu **gpu)
{
    char word[32];
    int used = 0;
    line[strcspn(line, "#\n")] = '\0';
    if (sscanf(line, "%31s %n", word, &used) != 1)
        return;
    const char *text = line + used;
    if (!strcmp(word, "zero"))
        fake.zero_ns = strtoll(text, NULL, 10);
    else if (!strcmp(word, "init"))
        fake.init = atoi(text);
    else if (!strcmp(word, "gpus"))
        fake.claimed_gpus = (unsigned)strtoul(text, NULL, 10);
    else if (!strcmp(word, "gpu"))
        *gpu = new_gpu(text);
    else if (*gpu)
        parse_gpu(*gpu, word, text);
}

void fake_load(void)
{
    const char *path = getenv("NRG_FAKE_NVML");
    FILE *file = path ? fopen(path, "re") : NULL;
    char line[8192];
    struct gpu *gpu = NULL;
    fake.init = 0;
    fake.zero_ns = 0;
    fake.claimed_gpus = 0;
    fake.n_gpus = 0;
    if (!file)
        new_gpu("Fake GPU");
    while (file && fgets(line, sizeof line, file))
        parse_line(line, &gpu);
    if (file)
        fclose(file);
}
