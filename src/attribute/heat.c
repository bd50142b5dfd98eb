/*
 * Temperature beside a domain's power. Leakage grows with it, by about 1 % of idle power per degree
 * on processors and GPUs, so where it was recorded it says how idle power went during the run, far
 * better than a line from one baseline to another. Whether it does is judged by the regression
 * (regress/idle/drift.c).
 *
 * Refuses: temperatures of anything but the package or the GPU itself, and those that changed by
 * less than LEAST_RANGE_C.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attribute/internal.h"

#define LEAST_RANGE_C 2.0

/* A package's, by the labels of coretemp, k10temp and the kernel's thermal zones. */
static bool is_package(const char *name, int package)
{
    char id[24];
    snprintf(id, sizeof id, "package-id-%d", package);
    if (strncmp(name, "temperature.", 12))
        return false;
    return strstr(name, id) || (!package && (strstr(name, "tctl") || strstr(name, "tdie") ||
                                             strstr(name, "x86_pkg_temp")));
}

/* The channel that is beside a domain; frame->n: none. */
static size_t find_channel(const struct nrg_frame *f, const char *domain)
{
    char beside[64];
    int package = -1;
    snprintf(beside, sizeof beside, "%.40s.temperature", domain);
    sscanf(domain, "package-%d", &package);
    for (size_t i = 0; i < f->n; i++) {
        const struct nrg_channel *c = &f->channels[i].channel;
        if (c->quantity == NRG_TEMPERATURE &&
            (!strcmp(c->name, beside) || (package >= 0 && is_package(c->name, package))))
            return i;
    }
    return f->n;
}

bool nrg_heat_find(struct nrg_engine *e, const struct nrg_part *part, enum nrg_idle_seen seen,
                   struct nrg_heat *heat)
{
    size_t channel = find_channel(&e->frame, part->channel->channel.name);
    const struct nrg_timeline *tl = nrg_frame_timeline(&e->frame, channel);
    struct nrg_baseline_ends ends = {NAN, NAN};
    if (tl && tl->is_gauge)
        ends = nrg_frame_baseline_ends(&e->frame, channel);
    bool before = seen == NRG_IDLE_BEFORE;
    double there_c = before ? ends.before : ends.after, most_c = 0;
    if (isnan(there_c))
        return false;
    int64_t *t_ns = nrg_arena_array(&e->memory, tl->n, sizeof *t_ns);
    double *part_c = nrg_arena_array(&e->memory, tl->n, sizeof *part_c);
    if (e->memory.failed)
        return false;
    for (size_t i = 0; i < tl->n; i++) {
        t_ns[i] = nrg_point_ns(tl, i);
        part_c[i] = nrg_point_gauge(tl, i) - there_c;
        most_c = fmax(most_c, fabs(part_c[i]));
    }
    for (size_t i = 0; i < tl->n && most_c > 0; i++)
        part_c[i] /= most_c;
    *heat = (struct nrg_heat){t_ns, part_c, tl->n, most_c, 0};
    if (before && !isnan(ends.after) && most_c > 0)
        heat->after = (ends.after - there_c) / most_c;
    return most_c >= LEAST_RANGE_C;
}
