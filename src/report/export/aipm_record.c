/*
 * One record of the AIPowerMeter export: the keys of its documentation, of its files of 2021 to
 * 2025, and of 2026, side by side. docs/export.md says how each is computed. The definitions are
 * AIPowerMeter's; its slips are not repeated: what does not exist has no key (never -1), and no
 * fixed draw is charged to a process.
 *
 * Estimates never stand under a RAPL key: they are in "nrg", with their provenance.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/json/set.h"
#include "report/export/internal.h"

static bool is_domain(const struct nrg_recorded_channel *channels, size_t n, size_t i)
{
    const struct nrg_channel *c = &channels[i].channel;
    return !nrg_channel_is_companion(c) &&
           (c->quantity == NRG_ENERGY ||
            (c->quantity == NRG_POWER && !nrg_export_is_double(channels, n, i)));
}

static struct nrg_aipm_channel domain_role(const struct nrg_recorded_channel *r)
{
    static const struct {
        const char *prefix;
        enum nrg_aipm_role role;
    } roles[] = {{"package-", NRG_AIPM_PACKAGE},
                 {"core-", NRG_AIPM_CORE},
                 {"uncore-", NRG_AIPM_UNCORE},
                 {"dram-", NRG_AIPM_DRAM},
                 {"psys", NRG_AIPM_PSYS}};
    struct nrg_aipm_channel what = {.role = NRG_AIPM_OTHER};
    int end = 0;
    if (r->channel.provenance == NRG_ESTIMATED)
        return what;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (!strncmp(r->channel.name, roles[i].prefix, strlen(roles[i].prefix)))
            what.role = roles[i].role;
    /* The keys say nvidia: boards that hwmon shows are not. */
    if (sscanf(r->channel.name, "gpu-%u%n", &what.gpu, &end) == 1 && !r->channel.name[end] &&
        strcmp(r->driver, "hwmon"))
        what.role = NRG_AIPM_GPU;
    return what;
}

struct nrg_aipm_channel nrg_aipm_what(const struct nrg_recorded_channel *channels, size_t n,
                                      size_t i)
{
    const struct nrg_channel *c = &channels[i].channel;
    struct nrg_aipm_channel what = {.role = NRG_AIPM_NONE};
    int end = 0;
    if (is_domain(channels, n, i))
        return domain_role(&channels[i]);
    if (!strcmp(c->name, "cpu.busy") && c->quantity == NRG_SECONDS)
        what.role = NRG_AIPM_BUSY;
    else if (!strcmp(c->name, "memory.used") && c->quantity == NRG_BYTES)
        what.role = NRG_AIPM_MEMORY;
    else if (c->quantity == NRG_TEMPERATURE && !strncmp(c->name, "temperature.", 12))
        what.role = NRG_AIPM_TEMPERATURE;
    else if (sscanf(c->name, "gpu-%u%n", &what.gpu, &end) == 1)
        what.role = !strcmp(c->name + end, ".memory") ? NRG_AIPM_GPU_MEMORY
                    : !strcmp(c->name + end, ".util") ? NRG_AIPM_GPU_USE
                                                      : NRG_AIPM_NONE;
    return what;
}

/* Sum of the means of all channels of a role; NAN when one is not known, or there is none. */
static double sum_of(const struct nrg_aipm *a, const struct nrg_bin *bin, enum nrg_aipm_role role)
{
    double sum = NAN;
    for (size_t i = 0; i < a->n; i++)
        if (a->what[i].role == role)
            sum = (isnan(sum) ? 0 : sum) + nrg_bin_mean(&bin->cells[i]);
    return sum;
}

struct key {
    char text[24];
};

static struct key key_of(int64_t number)
{
    struct key key;
    snprintf(key.text, sizeof key.text, "%" PRId64, number);
    return key;
}

/* Under a number as key, added to what is there: a process number may have been used twice. */
static void add_at(json_t *map, int64_t number, double value)
{
    struct key key = key_of(number);
    nrg_json_real(map, key.text, value + json_number_value(json_object_get(map, key.text)));
}

static void add_bytes(json_t *map, int64_t number, int64_t bytes)
{
    struct key key = key_of(number);
    json_int_t old = json_integer_value(json_object_get(map, key.text));
    if (bytes != NRG_MISSING)
        json_object_set_new(map, key.text, json_integer(bytes + old));
}

/* Sets a map unless it is empty; under a second name too when there is one. Takes it. */
static void set_map(json_t *o, const char *key, const char *also, json_t *map)
{
    if (json_object_size(map)) {
        json_object_set(o, key, map);
        if (also)
            json_object_set(o, also, map);
    }
    json_decref(map);
}

struct totals {
    double package_w, core_w, dram_w, busy_s, memory_bytes;
};

static json_t *scaled_map(const json_t *map, double factor)
{
    json_t *out = json_object(), *value;
    const char *key;
    json_object_foreach((json_t *)map, key, value)
    {
        nrg_json_real(out, key, json_number_value(value) * factor);
    }
    return out;
}

static void put_processes(json_t *cpu, const struct nrg_bin *bin, const struct totals *t)
{
    json_t *time_s = json_object(), *share = json_object(), *pss = json_object();
    json_t *uss = json_object(), *part = json_object();
    double all_s = 0;
    for (size_t i = 0; i < bin->n_processes; i++)
        all_s += bin->processes[i].cpu_s;
    /* The kernel counts busy time in ticks: never let the parts exceed the whole. */
    double busy_s = isnan(t->busy_s) ? NAN : fmax(t->busy_s, all_s);
    for (size_t i = 0; i < bin->n_processes; i++) {
        const struct nrg_bin_process *p = &bin->processes[i];
        int64_t bytes = p->pss_bytes != NRG_MISSING ? p->pss_bytes : p->rss_bytes;
        if (p->info->pid <= 0)
            continue; /* what was too short to be seen has no number */
        add_at(time_s, p->info->pid, p->cpu_s);
        add_at(share, p->info->pid, busy_s > 0 ? p->cpu_s / busy_s : isnan(busy_s) ? NAN : 0);
        add_bytes(pss, p->info->pid, bytes);
        add_bytes(uss, p->info->pid, p->uss_bytes);
        if (bytes != NRG_MISSING && t->memory_bytes > 0)
            add_at(part, p->info->pid, (double)bytes / t->memory_bytes);
    }
    set_map(cpu, "rel_intel_power", NULL, scaled_map(share, t->package_w));
    set_map(cpu, "per_process_cpu_power", NULL, scaled_map(share, t->core_w));
    set_map(cpu, "per_process_dram_power", NULL, scaled_map(part, t->dram_w));
    set_map(cpu, "absolute_cpu_time_per_pid", NULL, time_s);
    set_map(cpu, "per_process_cpu_uses", "cpu_uses", share);
    set_map(cpu, "per_process_mem_use_abs", "mem_use_abs", pss);
    set_map(cpu, "per_process_mem_use_percent", "mem_use_percent", part);
    set_map(cpu, "per_process_mem_use_uss", NULL, uss);
}

static json_t *cpu_json(const struct nrg_aipm *a, const struct nrg_bin *bin)
{
    json_t *cpu = json_object();
    struct totals t = {.package_w = sum_of(a, bin, NRG_AIPM_PACKAGE),
                       .core_w = sum_of(a, bin, NRG_AIPM_CORE),
                       .dram_w = sum_of(a, bin, NRG_AIPM_DRAM),
                       .busy_s = sum_of(a, bin, NRG_AIPM_BUSY) *
                                 (double)(bin->end_ns - bin->begin_ns) / 1e9,
                       .memory_bytes = sum_of(a, bin, NRG_AIPM_MEMORY)};
    put_processes(cpu, bin, &t);
    if (t.memory_bytes >= 0)
        json_object_set_new(cpu, "total_mem_use", json_integer(nrg_round_i64(t.memory_bytes)));
    NRG_JSON_REALS(cpu, {"intel_power", t.package_w}, {"psys_power", sum_of(a, bin, NRG_AIPM_PSYS)},
                   {"total_cpu_power", t.core_w}, {"total_dram_power", t.dram_w},
                   {"uncore_power", sum_of(a, bin, NRG_AIPM_UNCORE)});
    return cpu;
}

/* {"0": value, ...} of one role. */
static json_t *per_gpu(const struct nrg_aipm *a, const struct nrg_bin *bin, enum nrg_aipm_role role,
                       double factor)
{
    json_t *map = json_object();
    for (size_t i = 0; i < a->n; i++)
        if (a->what[i].role == role)
            add_at(map, a->what[i].gpu, factor * nrg_bin_mean(&bin->cells[i]));
    return map;
}

static bool is_ours(const struct nrg_bin *bin, int64_t pid)
{
    for (size_t i = 0; i < bin->n_processes; i++)
        if (pid > 0 && bin->processes[i].info->pid == pid)
            return true;
    return false;
}

/* The object for one GPU in a map of maps. */
static json_t *gpu_entry(json_t *map, int64_t gpu)
{
    struct key key = key_of(gpu);
    if (!json_object_get(map, key.text))
        json_object_set_new(map, key.text, json_object());
    return json_object_get(map, key.text);
}

struct gpu_maps {
    json_t *use, *memory, *own, *all;
};

static void collect_gpu(struct gpu_maps *m, const struct nrg_bin *bin)
{
    for (size_t i = 0; i < bin->n_gpu; i++) {
        const struct nrg_bin_gpu_process *g = &bin->gpu[i];
        int64_t pid = g->pid > 0 ? g->pid : g->device_pid;
        double share = g->shares ? g->share_sum / (double)g->shares : NAN;
        bool ours = is_ours(bin, g->pid);
        json_t *memory = gpu_entry(m->memory, g->gpu);
        add_at(gpu_entry(m->use, g->gpu), pid, share);
        if (ours)
            add_bytes(memory, pid, g->memory_bytes);
        add_at(m->own, g->gpu, isnan(share) ? NAN : ours ? share : 0);
        add_at(m->all, g->gpu, share);
    }
}

static void put_gpu_processes(json_t *gpu, const struct nrg_bin *bin, const json_t *power)
{
    struct gpu_maps m = {json_object(), json_object(), json_object(), json_object()};
    json_t *relative = json_object(), *attributed = json_object(), *value;
    const char *key;
    double sum_w = 0;
    collect_gpu(&m, bin);
    json_object_foreach(m.own, key, value)
    {
        double own = json_number_value(value), all = json_number_value(json_object_get(m.all, key));
        const json_t *draw = json_object_get(power, key);
        json_object_set_new(relative, key, json_real(all > 0 ? own / all : 0));
        if (!draw)
            continue;
        double part_w = json_number_value(draw) * (all > 0 ? own / all : 0);
        json_object_set_new(attributed, key, json_real(part_w));
        sum_w += part_w;
    }
    if (json_object_size(attributed))
        json_object_set_new(attributed, "all", json_real(sum_w));
    set_map(gpu, "per_gpu_attributable_mem_use", "memory", m.memory);
    set_map(gpu, "per_gpu_per_pid_utilization_absolute", "sm", m.use);
    set_map(gpu, "per_gpu_absolute_percent_usage", NULL, m.own);
    set_map(gpu, "per_gpu_estimated_attributable_utilization", NULL, relative);
    set_map(gpu, "per_gpu_attributable_power", NULL, attributed);
    json_decref(m.all);
}

static json_t *gpu_json(const struct nrg_aipm *a, const struct nrg_bin *bin)
{
    json_t *gpu = json_object();
    json_t *power = per_gpu(a, bin, NRG_AIPM_GPU, 1);
    json_t *use = per_gpu(a, bin, NRG_AIPM_GPU_USE, 100);
    size_t n_use = json_object_size(use);
    double power_w = sum_of(a, bin, NRG_AIPM_GPU);
    put_gpu_processes(gpu, bin, power);
    NRG_JSON_REALS(gpu, {"nvidia_draw_absolute", power_w}, {"nvidia_power", power_w});
    set_map(gpu, "per_gpu_power_draw", "per_gpu_nvidia_power", power);
    nrg_json_real(gpu, "nvidia_memory", sum_of(a, bin, NRG_AIPM_GPU_MEMORY));
    set_map(gpu, "per_gpu_nvidia_memory", NULL, per_gpu(a, bin, NRG_AIPM_GPU_MEMORY, 1));
    nrg_json_real(gpu, "nvidia_use_rate",
                  n_use ? 100 * sum_of(a, bin, NRG_AIPM_GPU_USE) / (double)n_use : NAN);
    set_map(gpu, "per_gpu_nvidia_use_rate", NULL, use);
    return gpu;
}

/* {chip: [[label, C, null, null], ...]}: the limits are not recorded. */
static json_t *temperature_json(const struct nrg_aipm *a, const struct nrg_bin *bin)
{
    json_t *chips = json_object();
    for (size_t i = 0; i < a->n; i++) {
        double mean = nrg_bin_mean(&bin->cells[i]);
        const char *name = a->channels[i].channel.name + strlen("temperature.");
        if (a->what[i].role != NRG_AIPM_TEMPERATURE || isnan(mean))
            continue;
        char chip[48];
        snprintf(chip, sizeof chip, "%.*s", (int)strcspn(name, "."), name);
        const char *label = name + strlen(chip);
        if (!json_object_get(chips, chip))
            json_object_set_new(chips, chip, json_array());
        json_array_append_new(json_object_get(chips, chip),
                              json_pack("[s, f, n, n]", *label ? label + 1 : "", mean));
    }
    return chips;
}

/* Mean power of an estimate's companion channel; NAN without one. */
static double companion_w(const struct nrg_aipm *a, const struct nrg_bin *bin, const char *name,
                          const char *suffix)
{
    char full[64];
    snprintf(full, sizeof full, "%.48s%s", name, suffix);
    for (size_t i = 0; i < a->n; i++)
        if (!strcmp(a->channels[i].channel.name, full) &&
            a->channels[i].channel.quantity == NRG_ENERGY)
            return nrg_bin_mean(&bin->cells[i]);
    return NAN;
}

static json_t *own_domain(const struct nrg_aipm *a, const struct nrg_bin *bin,
                          const struct nrg_channel *c, double mean_w)
{
    json_t *o = json_pack("{s:f, s:s}", "power_w", mean_w, "provenance",
                          nrg_provenance_name(c->provenance));
    NRG_JSON_REALS(o, {"low_w", companion_w(a, bin, c->name, NRG_LOW_SUFFIX)},
                   {"high_w", companion_w(a, bin, c->name, NRG_HIGH_SUFFIX)});
    return o;
}

/* An estimate's own has no band but the estimate's. */
static json_t *own_idle(const struct nrg_aipm_idle *idle)
{
    const struct nrg_idle_power *p = &idle->found;
    json_t *o = json_pack("{s:f, s:s}", "power_w", p->power_w, "method", idle->method);
    if (strcmp(idle->method, "estimate") != 0)
        NRG_JSON_REALS(o, {"low_w", fmax(0, p->power_w - p->less_w)},
                       {"high_w", p->power_w + p->more_w});
    return o;
}

static json_t *own_json(const struct nrg_aipm *a, const struct nrg_bin *bin, int64_t real_end_ns)
{
    char exact[40];
    snprintf(exact, sizeof exact, "%" PRId64 ".%09" PRId64, real_end_ns / NRG_NS_PER_S,
             real_end_ns % NRG_NS_PER_S);
    json_t *o = json_pack("{s:f, s:s}", "interval_s", (double)(bin->end_ns - bin->begin_ns) / 1e9,
                          "unix_time_s", exact);
    json_t *domains = json_object();
    for (size_t i = 0; i < a->n; i++) {
        const struct nrg_channel *c = &a->channels[i].channel;
        double mean = nrg_bin_mean(&bin->cells[i]);
        if (a->what[i].role == NRG_AIPM_OTHER && isfinite(mean))
            json_object_set_new(domains, c->name, own_domain(a, bin, c, mean));
    }
    set_map(o, "domains", NULL, domains);
    const struct nrg_aipm_idle *idle = &a->idle[bin->span];
    if (idle->method && isfinite(idle->found.power_w))
        json_object_set_new(o, "idle", own_idle(idle));
    return o;
}

json_t *nrg_aipm_metrics(const struct nrg_aipm *a, const struct nrg_bin *bin, int64_t real_end_ns)
{
    json_t *metrics = json_object(), *gpu = gpu_json(a, bin);
    json_object_set_new(metrics, "cpu", cpu_json(a, bin));
    set_map(metrics, "gpu", NULL, gpu);
    set_map(metrics, "temperature", NULL, temperature_json(a, bin));
    json_object_set_new(metrics, "nrg", own_json(a, bin, real_end_ns));
    return metrics;
}
