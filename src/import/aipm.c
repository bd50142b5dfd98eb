/*
 * AIPowerMeter's power_metrics.json: JSON lines {"date", "metrics": {"cpu", "gpu", ...}}, and
 * the string "END OF RECORDING SEGMENT" where the recorder was stopped. All generations of its
 * keys (docs/export.md lists them):
 *
 *   - the power of all packages together becomes package-0, psys_power -1 means that there is none
 *   - uncore_power may be a list of one
 *   - GPUs from per_gpu_power_draw (nvidia-smi) or per_gpu_nvidia_power (NVML)
 *   - shares of CPU time and memory per process; CPU seconds only in the newest files
 *   - "nrg", which `nrg export` adds: the interval, exact time, and domains without a key
 *
 * The machine's busy time and memory in use are not in the files; they follow from the shares, as
 * absolute / share. A date is the end of the interval over which the record's values are means.
 *
 * Unknown keys are ignored. Refuses lines that are not JSON, records without date or metrics,
 * values of the wrong type, and numbers that are not finite.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "import/internal.h"
#include "sensors/domain.h"
#include "sensors/virtual/replay_time.h"

#define END_OF_SEGMENT "END OF RECORDING SEGMENT"

static const struct power_key {
    const char *key, *name, *source;
} power_keys[] = {
    {"psys_power", "psys", "psys_power"},
    {"intel_power", "package-0", "intel_power: all packages"},
    {"Intel_power", "package-0", "Intel_power: all packages"},
    {"total_cpu_power", "core-0", "total_cpu_power: cores of all packages"},
    {"uncore_power", "uncore-0", "uncore_power"},
    {"total_dram_power", "dram-0", "total_dram_power"},
};

static bool is_aipm_line(const char *line, size_t len)
{
    bool keys = memmem(line, len, "\"date\"", 6) || memmem(line, len, "\"metrics\"", 9);
    size_t at = 0;
    while (at < len && (line[at] == ' ' || line[at] == '\t'))
        at++;
    if (at < len && line[at] == '{')
        return keys;
    return len - at > 4 && !memcmp(line + at, "\"END", 4);
}

static struct nrg_channel gauge_channel(const char *name, enum nrg_quantity quantity, double scale,
                                        const char *source)
{
    struct nrg_channel c = {.quantity = quantity,
                            .kind = NRG_GAUGE,
                            .provenance = NRG_DERIVED,
                            .scale = scale,
                            .resolution = scale};
    nrg_copy_clean(c.name, sizeof c.name, name, strlen(name));
    nrg_copy_clean(c.source, sizeof c.source, source, strlen(source));
    return c;
}

static int add_power(struct nrg_import *im, const char *name, const char *source,
                     enum nrg_provenance provenance, double power_w, struct nrg_error *err)
{
    struct nrg_channel c = gauge_channel(name, NRG_POWER, 1e-6, source);
    c.provenance = provenance;
    nrg_domain_describe(&c);
    return nrg_import_value(im, &c, power_w, err);
}

/* A number, or a list of one number: a stray comma made uncore_power one. */
static const json_t *number_in(const json_t *value)
{
    if (json_is_array(value) && json_array_size(value) == 1)
        value = json_array_get(value, 0);
    return json_is_number(value) ? value : NULL;
}

static int wrong_type(const char *key, struct nrg_error *err)
{
    return nrg_fail(err, -EINVAL, NULL, "\"%s\" is not what AIPowerMeter writes there", key);
}

static int cpu_powers(struct nrg_import *im, const json_t *cpu, struct nrg_error *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < sizeof power_keys / sizeof *power_keys; i++) {
        const struct power_key *k = &power_keys[i];
        const json_t *value = json_object_get(cpu, k->key), *number = number_in(value);
        if (value && !number)
            return wrong_type(k->key, err);
        /* -1: AIPowerMeter's "there is none" */
        if (number && json_number_value(number) >= 0)
            rc = add_power(im, k->name, k->source, NRG_DERIVED, json_number_value(number), err);
    }
    return rc;
}

/* The object under the first of two keys that exists; *rc is set when it is not an object. */
static const json_t *map_of(const json_t *parent, const char *key, const char *other, int *rc,
                            struct nrg_error *err)
{
    const json_t *map = json_object_get(parent, key);
    if (!map && other)
        map = json_object_get(parent, other);
    if (!map || json_is_object(map))
        return map;
    *rc = wrong_type(key, err);
    return NULL;
}

static double real_at(const json_t *map, const char *key)
{
    const json_t *value = map ? json_object_get(map, key) : NULL;
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static int64_t bytes_at(const json_t *map, const char *key)
{
    double bytes = real_at(map, key);
    return bytes >= 0 && bytes < 1e18 ? (int64_t)bytes : NRG_MISSING;
}

struct maps {
    const json_t *share, *time_s, *pss, *memory_share, *uss;
};

static int find_maps(struct maps *m, const json_t *cpu, struct nrg_error *err)
{
    int rc = 0;
    m->share = map_of(cpu, "per_process_cpu_uses", "cpu_uses", &rc, err);
    m->time_s = map_of(cpu, "absolute_cpu_time_per_pid", NULL, &rc, err);
    m->pss = map_of(cpu, "per_process_mem_use_abs", "mem_use_abs", &rc, err);
    m->memory_share = map_of(cpu, "per_process_mem_use_percent", "mem_use_percent", &rc, err);
    m->uss = map_of(cpu, "per_process_mem_use_uss", NULL, &rc, err);
    return rc;
}

static int add_process(struct nrg_import *im, const struct maps *m, const char *key,
                       struct nrg_error *err)
{
    int64_t pid;
    double share = real_at(m->share, key), cpu_s = real_at(m->time_s, key);
    if (nrg_parse_i64(key, strlen(key), &pid))
        return nrg_fail(err, -EINVAL, NULL, "'%.40s' is not a process number", key);
    if (isnan(cpu_s) && !isnan(share)) {
        cpu_s = share * (double)im->interval_ns / 1e9;
        im->processes.shares_only = true;
    }
    int rc = nrg_import_process(im, pid, isnan(cpu_s) ? 0 : cpu_s, bytes_at(m->pss, key),
                                bytes_at(m->uss, key));
    return rc ? nrg_fail(err, rc, NULL, "process %.40s: %s", key, strerror(-rc)) : 0;
}

/* Busy time of the machine: the total that CPU shares refer to. */
static int add_busy(struct nrg_import *im, const struct maps *m, struct nrg_error *err)
{
    struct nrg_channel c =
        gauge_channel("cpu.busy", NRG_SECONDS, 1e-6, "CPU time / share of busy time");
    double used_s = 0, shares = 0, step_s = (double)im->interval_ns / 1e9;
    const char *key;
    json_t *value;
    c.kind = NRG_COUNTER;
    json_object_foreach((json_t *)m->share, key, value)
    {
        double cpu_s = real_at(m->time_s, key), share = json_number_value(value);
        if (cpu_s > 0 && share > 0)
            used_s += cpu_s, shares += share;
    }
    if (m->time_s && shares > 0)
        step_s = used_s / shares;
    if (!m->time_s) {
        c.provenance = NRG_ESTIMATED;
        nrg_copy(c.source, sizeof c.source, "one busy CPU: the file has shares only");
    }
    if (im->begin_ns >= im->t_ns || (m->time_s && shares <= 0) || !(step_s < 1e9))
        step_s = 0;
    return nrg_import_add(im, &c, step_s, err);
}

/* Memory in use, from the share of the largest process, which is the most exact. */
static int add_memory(struct nrg_import *im, const json_t *cpu, const struct maps *m,
                      struct nrg_error *err)
{
    struct nrg_channel c =
        gauge_channel("memory.used", NRG_BYTES, 1, "PSS / share of memory in use");
    double largest = 0, used = NAN;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)m->pss, key, value)
    {
        double bytes = json_number_value(value), share = real_at(m->memory_share, key);
        if (bytes > largest && share > 0) {
            largest = bytes;
            used = bytes / share;
        }
    }
    if (isnan(used)) {
        used = real_at(cpu, "total_mem_use");
        nrg_copy(c.source, sizeof c.source, "total_mem_use");
    }
    return used >= 0 && used < 1e18 ? nrg_import_value(im, &c, used, err) : 0;
}

static int cpu_processes(struct nrg_import *im, const json_t *cpu, struct nrg_error *err)
{
    struct maps m = {0};
    const char *key;
    json_t *value;
    int rc = find_maps(&m, cpu, err);
    json_object_foreach((json_t *)m.share, key, value)
    {
        if (!rc)
            rc = add_process(im, &m, key, err);
    }
    json_object_foreach((json_t *)m.pss, key, value)
    {
        if (!rc && (!m.share || !json_object_get(m.share, key)))
            rc = add_process(im, &m, key, err);
    }
    if (!rc && m.share)
        rc = add_busy(im, &m, err);
    return rc ? rc : add_memory(im, cpu, &m, err);
}

/* {"0": value, "1": value} as channels gpu-0.SUFFIX, ... */
static int gpu_values(struct nrg_import *im, const json_t *map, const struct nrg_channel *like,
                      double factor, struct nrg_error *err)
{
    const char *key;
    json_t *value;
    int rc = 0;
    json_object_foreach((json_t *)map, key, value)
    {
        int64_t gpu;
        struct nrg_channel c = *like;
        if (nrg_parse_i64(key, strlen(key), &gpu) || gpu < 0 || gpu > 4095)
            return nrg_fail(err, -EINVAL, NULL, "'%.40s' is not the number of a GPU", key);
        snprintf(c.name, sizeof c.name, "gpu-%d%.32s", (int)gpu, like->name);
        if (!rc && json_is_number(value) && json_number_value(value) >= 0)
            rc = nrg_import_value(im, &c, json_number_value(value) * factor, err);
    }
    return rc;
}

static int gpu_power(struct nrg_import *im, const json_t *gpu, struct nrg_error *err)
{
    int rc = 0;
    const json_t *draw = map_of(gpu, "per_gpu_power_draw", NULL, &rc, err);
    const json_t *map = map_of(gpu, "per_gpu_nvidia_power", NULL, &rc, err);
    if (rc)
        return rc;
    struct nrg_channel c =
        gauge_channel("", NRG_POWER, 1e-6, map ? "per_gpu_nvidia_power" : "nvidia-smi");
    c.provenance = map ? NRG_DERIVED : NRG_MEASURED;
    if (map || draw)
        return gpu_values(im, map ? map : draw, &c, 1, err);
    double all_w = real_at(gpu, "nvidia_power");
    if (isnan(all_w))
        all_w = real_at(gpu, "nvidia_draw_absolute");
    return all_w >= 0 ? add_power(im, "gpu-0", "all GPUs together", NRG_MEASURED, all_w, err) : 0;
}

static int gpu_process(struct nrg_import *im, const char *pid_text, const char *gpu_text,
                       double share, int64_t bytes, struct nrg_error *err)
{
    int64_t pid, gpu;
    if (nrg_parse_i64(pid_text, strlen(pid_text), &pid) ||
        nrg_parse_i64(gpu_text, strlen(gpu_text), &gpu))
        return nrg_fail(err, -EINVAL, NULL, "GPU '%.20s', process '%.20s': not numbers", gpu_text,
                        pid_text);
    int rc = nrg_import_gpu_process(im, pid, gpu, share, bytes);
    return rc ? nrg_fail(err, rc, NULL, "process %.20s of GPU %.20s: %s", pid_text, gpu_text,
                         strerror(-rc))
              : 0;
}

static int gpu_processes(struct nrg_import *im, const json_t *gpu, struct nrg_error *err)
{
    int rc = 0;
    const char *device, *pid;
    json_t *value, *entry;
    const json_t *use = map_of(gpu, "per_gpu_per_pid_utilization_absolute", "sm", &rc, err);
    const json_t *memory = map_of(gpu, "per_gpu_attributable_mem_use", "memory", &rc, err);
    json_object_foreach((json_t *)use, device, value)
    {
        const json_t *bytes = memory ? json_object_get(memory, device) : NULL;
        json_object_foreach(value, pid, entry)
        {
            if (!rc)
                rc = gpu_process(im, pid, device,
                                 json_is_number(entry) ? json_number_value(entry) : -1,
                                 bytes_at(bytes, pid), err);
        }
    }
    json_object_foreach((json_t *)memory, device, value)
    {
        const json_t *shares = use ? json_object_get(use, device) : NULL;
        json_object_foreach(value, pid, entry)
        {
            if (!rc && !json_object_get(shares, pid))
                rc = gpu_process(im, pid, device, -1, bytes_at(value, pid), err);
        }
    }
    return rc;
}

static int gpu_metrics(struct nrg_import *im, const json_t *gpu, struct nrg_error *err)
{
    struct nrg_channel memory = gauge_channel(".memory", NRG_BYTES, 1, "per_gpu_nvidia_memory");
    struct nrg_channel use =
        gauge_channel(".util", NRG_UTILISATION, 1e-6, "per_gpu_nvidia_use_rate");
    int rc = gpu_power(im, gpu, err);
    if (!rc)
        rc = gpu_values(im, json_object_get(gpu, "per_gpu_nvidia_memory"), &memory, 1, err);
    if (!rc)
        rc = gpu_values(im, json_object_get(gpu, "per_gpu_nvidia_use_rate"), &use, 0.01, err);
    return rc ? rc : gpu_processes(im, gpu, err);
}

/* {chip: [[label, C, high, critical], ...]} */
static int read_temperatures(struct nrg_import *im, const json_t *chips, struct nrg_error *err)
{
    const char *chip;
    json_t *list, *entry;
    int rc = 0;
    json_object_foreach((json_t *)chips, chip, list)
    {
        for (size_t i = 0; !rc && (entry = json_array_get(list, i)); i++) {
            const char *label = json_string_value(json_array_get(entry, 0));
            const json_t *value = json_array_get(entry, 1);
            char name[48], number[24];
            snprintf(number, sizeof number, "temp%zu", i + 1);
            snprintf(name, sizeof name, "temperature.%.14s.%.18s", chip,
                     label && *label ? label : number);
            struct nrg_channel c = gauge_channel(name, NRG_TEMPERATURE, 1e-3, "temperature");
            c.provenance = NRG_MEASURED;
            if (json_is_number(value))
                rc = nrg_import_value(im, &c, json_number_value(value), err);
        }
    }
    return rc;
}

/* The band of an estimate. */
static int own_band(struct nrg_import *im, const char *name, const json_t *entry,
                    struct nrg_error *err)
{
    static const struct {
        const char *key, *suffix;
    } edges[] = {{"low_w", NRG_LOW_SUFFIX}, {"high_w", NRG_HIGH_SUFFIX}};
    int rc = 0;
    for (size_t i = 0; !rc && i < sizeof edges / sizeof *edges; i++) {
        char full[64];
        double power_w = real_at(entry, edges[i].key);
        snprintf(full, sizeof full, "%.40s%s", name, edges[i].suffix);
        struct nrg_channel c = gauge_channel(full, NRG_POWER, 1e-6, "nrg export");
        c.provenance = NRG_ESTIMATED;
        if (power_w >= 0)
            rc = nrg_import_value(im, &c, power_w, err);
    }
    return rc;
}

/* What nrg's own export adds: domains that AIPowerMeter has no key for, with their provenance. */
static int own_domains(struct nrg_import *im, const json_t *nrg, struct nrg_error *err)
{
    const char *name;
    json_t *entry;
    int rc = 0;
    json_object_foreach(json_object_get(nrg, "domains"), name, entry)
    {
        const char *word = json_string_value(json_object_get(entry, "provenance"));
        int provenance = word ? nrg_provenance_from_name(word) : -1;
        double power_w = real_at(entry, "power_w");
        if (!rc && !isnan(power_w))
            rc = add_power(im, name, "nrg export",
                           provenance < 0 ? NRG_ESTIMATED : (enum nrg_provenance)provenance,
                           power_w, err);
        if (!rc && !isnan(power_w))
            rc = own_band(im, name, entry, err);
    }
    return rc;
}

/* And the idle power that the recording knew, by how it was found. */
static int own_idle(struct nrg_import *im, const json_t *nrg, struct nrg_error *err)
{
    const json_t *idle = json_object_get(nrg, "idle");
    const char *method = json_string_value(json_object_get(idle, "method"));
    double power_w = real_at(idle, "power_w");
    if (!method || !(power_w >= 0))
        return 0;
    struct nrg_channel c = gauge_channel(NRG_IDLE_CHANNEL, NRG_POWER, 1e-6, method);
    double low_w = real_at(idle, "low_w"), high_w = real_at(idle, "high_w");
    if (power_w > 0 && low_w >= 0 && low_w <= power_w && high_w >= power_w) {
        c.error_low = 1 - low_w / power_w;
        c.error_high = high_w / power_w - 1;
    }
    return nrg_import_value(im, &c, power_w, err);
}

static int parse_date(const struct nrg_import *im, const json_t *record, const json_t *nrg,
                      int64_t *t_ns, struct nrg_error *err)
{
    const char *date = json_string_value(json_object_get(record, "date"));
    const char *exact = json_string_value(json_object_get(nrg, "unix_time_s"));
    if (exact && !nrg_time_from_seconds(exact, strlen(exact), t_ns))
        return 0;
    if (!date)
        return nrg_fail(err, -EINVAL, NULL, "a record of AIPowerMeter has a \"date\"");
    if (nrg_time_from_iso(date, strlen(date), t_ns))
        return nrg_fail(err, -EINVAL, NULL, "\"date\" is not YYYY-MM-DD HH:MM:SS.ffffff: '%.40s'",
                        date);
    bool zone = strlen(date) > 19 && strpbrk(date + 19, "Z+-");
    if (!zone)
        *t_ns -= im->options->zone_offset_ns;
    return 0;
}

static const struct {
    const char *key;
    int (*read)(struct nrg_import *im, const json_t *part, struct nrg_error *err);
} parts[] = {
    {"cpu", cpu_powers},  {"cpu", cpu_processes},
    {"gpu", gpu_metrics}, {"temperature", read_temperatures},
    {"nrg", own_domains}, {"nrg", own_idle},
};

static int read_metrics(struct nrg_import *im, const json_t *record, struct nrg_error *err)
{
    const json_t *all = json_object_get(record, "metrics");
    const json_t *nrg = json_object_get(all, "nrg");
    double interval_s = real_at(nrg, "interval_s");
    int64_t t_ns;
    if (!json_is_object(all))
        return nrg_fail(err, -EINVAL, NULL, "a record of AIPowerMeter has \"metrics\"");
    int rc = parse_date(im, record, nrg, &t_ns, err);
    bool told = interval_s > 0 && interval_s < 1e6;
    if (!rc)
        rc = nrg_import_begin(im, t_ns, told ? (int64_t)llround(interval_s * 1e9) : 0, err);
    for (size_t i = 0; !rc && i < sizeof parts / sizeof *parts; i++)
        rc = parts[i].read(im, json_object_get(all, parts[i].key), err);
    return rc ? rc : nrg_import_end(im, err);
}

static int read_record(struct nrg_import *im, char *line, size_t len, struct nrg_error *err)
{
    json_error_t why;
    json_t *doc = json_loadb(line, len, JSON_DECODE_ANY, &why);
    int rc;
    if (!doc)
        return nrg_fail(err, -EINVAL, NULL, "column %d: %s", why.column, why.text);
    if (json_is_string(doc) && !strcmp(json_string_value(doc), END_OF_SEGMENT))
        rc = nrg_import_end_segment(im);
    else if (json_is_object(doc))
        rc = read_metrics(im, doc, err);
    else
        rc = nrg_fail(err, -EINVAL, NULL, "is neither a record nor \"" END_OF_SEGMENT "\"");
    json_decref(doc);
    return rc;
}

const struct nrg_import_format nrg_import_aipowermeter = {
    .name = "aipowermeter",
    .means = true,
    .match = is_aipm_line,
    .record = read_record,
};
