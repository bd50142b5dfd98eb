/* See files.h. */
#include "sensors/machine/files.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"

enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, FIELDS };

/* No machine has run this long; sums of five stay far from overflow. */
#define MAX_TICKS (INT64_MAX / 16)

static const char *line_end(const char *text, const char *end)
{
    const char *newline = memchr(text, '\n', (size_t)(end - text));
    return newline ? newline : end;
}

static int parse_count(const char *text, size_t len, int64_t *out)
{
    uint64_t count;
    int rc = nrg_parse_u64(text, len, &count);
    if (!rc && count > MAX_TICKS)
        rc = -ERANGE;
    if (!rc)
        *out = (int64_t)count;
    return rc;
}

static int parse_cpu_name(const char *name, size_t len, int *cpu)
{
    uint64_t number;
    if (len < 3 || memcmp(name, "cpu", 3))
        return -ENOENT;
    *cpu = NRG_CPU_ALL;
    if (len == 3)
        return 0;
    if (nrg_parse_u64(name + 3, len - 3, &number) || number > 65535)
        return -ENOENT;
    *cpu = (int)number;
    return 0;
}

int nrg_proc_stat_line(const char **text, const char *end, int *cpu, struct nrg_cpu_ticks *out)
{
    const char *p = *text, *stop = line_end(p, end), *field;
    int64_t ticks[FIELDS] = {0};
    size_t len, n = 0;
    *text = stop < end ? stop + 1 : end;
    field = nrg_next_field(&p, stop, &len);
    int rc = field ? parse_cpu_name(field, len, cpu) : -ENOENT;
    while (!rc && n < FIELDS && (field = nrg_next_field(&p, stop, &len)))
        rc = parse_count(field, len, &ticks[n++]);
    if (rc)
        return rc;
    if (n <= IDLE)
        return -EINVAL;
    out->busy = ticks[USER] + ticks[NICE] + ticks[SYSTEM] + ticks[IRQ] + ticks[SOFTIRQ];
    out->idle = ticks[IDLE] + ticks[IOWAIT];
    out->steal = n > STEAL ? ticks[STEAL] : NRG_MISSING;
    return 0;
}

int64_t nrg_cpu_ticks_between(int64_t from, int64_t to)
{
    return from == NRG_MISSING || to <= from ? 0 : to - from;
}

int nrg_proc_stat_total(const char *text, size_t len, struct nrg_cpu_ticks *out)
{
    int cpu;
    int rc = nrg_proc_stat_line(&text, text + len, &cpu, out);
    return rc == -ENOENT || (!rc && cpu != NRG_CPU_ALL) ? -EINVAL : rc;
}

/* "MemTotal:   16384 kB": the value of the line whose label is `field`, else -ENOENT. */
static int meminfo_value(const char *line, const char *stop, const char *label, int64_t *out)
{
    size_t len, label_len = strlen(label);
    if ((size_t)(stop - line) <= label_len || memcmp(line, label, label_len) ||
        line[label_len] != ':')
        return -ENOENT;
    line += label_len + 1;
    const char *field = nrg_next_field(&line, stop, &len);
    return field ? parse_count(field, len, out) : -EINVAL;
}

int nrg_proc_meminfo(const char *text, size_t len, struct nrg_proc_memory *out)
{
    static const char *const labels[] = {"MemTotal", "MemAvailable", "MemFree", "Buffers",
                                         "Cached"};
    int64_t kib[] = {-1, -1, -1, 0, 0};
    const char *end = text + len;
    while (text < end) {
        const char *stop = line_end(text, end);
        for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
            int rc = meminfo_value(text, stop, labels[i], &kib[i]);
            if (rc && rc != -ENOENT)
                return rc;
        }
        text = stop < end ? stop + 1 : end;
    }
    if (kib[0] <= 0 || (kib[1] < 0 && kib[2] < 0))
        return -EINVAL;
    out->total_kib = kib[0];
    out->available_kib = kib[1] >= 0 ? kib[1] : kib[2] + kib[3] + kib[4];
    if (out->available_kib > out->total_kib)
        out->available_kib = out->total_kib;
    return 0;
}

int nrg_cgroup_cpu_stat(const char *text, size_t len, struct nrg_cpu_stat *out)
{
    static const char *const labels[] = {"usage_usec", "user_usec", "system_usec"};
    int64_t us[] = {-1, -1, -1};
    const char *end = text + len, *field;
    size_t field_len;
    while (text < end) {
        const char *stop = line_end(text, end), *p = text;
        text = stop < end ? stop + 1 : end;
        if (!(field = nrg_next_field(&p, stop, &field_len)))
            continue;
        for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
            if (field_len != strlen(labels[i]) || memcmp(field, labels[i], field_len))
                continue;
            field = nrg_next_field(&p, stop, &field_len);
            int rc = field ? parse_count(field, field_len, &us[i]) : -EINVAL;
            if (rc)
                return rc;
            break;
        }
    }
    *out = (struct nrg_cpu_stat){us[0], us[1], us[2]};
    return us[0] < 0 || us[1] < 0 || us[2] < 0 ? -EINVAL : 0;
}
