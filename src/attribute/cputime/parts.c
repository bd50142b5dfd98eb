/*
 * Which domains are shared out by CPU time, and the energy of their rows. See cputime.h.
 *
 * Modelled are sources that are estimated from CPU time and know what they would be without any:
 * they have a channel NAME.idle beside them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "attribute/buckets.h"
#include "attribute/cputime/cputime.h"
#include "base/mem.h"

#define WIDER_GAPS   4 /* times, when there is more than may be kept */
#define FIRST_GAP_NS NRG_NS_PER_MS
#define BELOW        (1 - 1e-7)          /* what is rounded to a float */
#define MOST_GAP_NS  (10 * NRG_NS_PER_S) /* longer ones do not make it less */

static bool is_modelled(const struct nrg_engine *e, const struct nrg_part *part)
{
    const struct nrg_channel *c = &part->channel->channel;
    return c->provenance == NRG_ESTIMATED && c->kind == NRG_COUNTER && !part->pool &&
           nrg_frame_companion(&e->frame, c->name, NRG_IDLE_SUFFIX) < e->frame.n;
}

/* A measured source has more to tell than CPU time, and no law that holds for each span. */
static int refuse(const struct nrg_engine *e)
{
    const char *name = e->parts[0].channel->channel.name;
    return nrg_fail(e->err, -EINVAL, nrg_recording_path(e->recording),
                    "method cpu-time is for energy that a model made of CPU time, which '%s' is "
                    "not: use integrate or regress",
                    name);
}

int nrg_cputime_choose(struct nrg_engine *e)
{
    size_t n = 0;
    bool asked = e->options->method == NRG_METHOD_CPU_TIME;
    if (!asked && e->options->method != NRG_METHOD_AUTO)
        return 0;
    for (size_t p = 0; p < e->n_parts; p++) {
        struct nrg_part *part = &e->parts[p];
        bool modelled = is_modelled(e, part);
        part->method = modelled ? NRG_METHOD_CPU_TIME : NRG_METHOD_AUTO;
        n += modelled;
        if (modelled)
            nrg_copy(part->out->why, sizeof part->out->why,
                     "its source is a model of CPU time, which is applied to that of the spans");
    }
    return asked && !n && e->n_parts ? refuse(e) : 0;
}

static bool is_used(const struct nrg_engine *e)
{
    for (size_t p = 0; p < e->n_parts; p++)
        if (e->parts[p].method == NRG_METHOD_CPU_TIME)
            return true;
    return false;
}

static void integrate_instead(struct nrg_engine *e, const char *why)
{
    for (size_t p = 0; p < e->n_parts; p++) {
        struct nrg_part *part = &e->parts[p];
        if (part->method != NRG_METHOD_CPU_TIME)
            continue;
        part->method = NRG_METHOD_INTEGRATE;
        snprintf(part->out->why, sizeof part->out->why, "its source is a model of CPU time, but %s",
                 why);
    }
}

static void add_energies(struct nrg_engine *e)
{
    const struct nrg_cpu_time *t = e->cpu_time;
    for (size_t i = 0; i < t->n_slots; i++) {
        for (size_t j = t->slots[i].first; j < nrg_cpu_slot_end(t, i); j++) {
            const struct nrg_cpu_entry *entry = &t->entries[j];
            for (size_t p = 0; p < e->n_parts; p++)
                e->row_parts[(size_t)entry->place * e->n_parts + p].energy_j +=
                    (double)entry->own_s * (double)t->price[i * e->n_parts + p];
        }
    }
}

/* Within a slot nothing tells when a place used its CPU time: evenly. */
void nrg_cputime_buckets(struct nrg_engine *e)
{
    const struct nrg_cpu_time *t = e->cpu_time;
    for (size_t i = 0; t && i < t->n_slots; i++) {
        const struct nrg_cpu_slot *slot = &t->slots[i];
        struct nrg_span_ns when = {slot->begin_ns,
                                   slot->begin_ns + (int64_t)((double)slot->width_s * 1e9)};
        for (size_t j = slot->first; j < nrg_cpu_slot_end(t, i); j++)
            for (size_t p = 0; p < e->n_parts; p++) {
                double energy_j =
                    (double)t->entries[j].own_s * (double)t->price[i * e->n_parts + p];
                if (energy_j > 0)
                    nrg_buckets_spread(e->buckets, t->entries[j].place, p, when, energy_j);
            }
    }
}

/* Threads and their process are not read in one instant. In one cell the rows may have more than
 * there is, over the run they have not. */
static void limit_prices(struct nrg_engine *e)
{
    const struct nrg_cpu_time *t = e->cpu_time;
    for (size_t p = 0; t->n_slots && p < e->n_parts; p++) {
        double rows_j = 0, rows_s = 0;
        for (size_t i = 0; i < t->n_slots; i++) {
            double own_s = nrg_cpu_slot_own_s(t, i);
            rows_s += own_s;
            rows_j += own_s * (double)t->price[i * e->n_parts + p];
        }
        t->mean_price[p] = rows_s > 0 ? rows_j / rows_s : 0;
        for (size_t i = 0; i < t->n_slots && rows_j > t->there_j[p]; i++)
            t->price[i * e->n_parts + p] *= (float)(t->there_j[p] / rows_j * BELOW);
    }
}

/* -E2BIG: again, with longer intervals. */
static int make_slots(struct nrg_engine *e, int64_t gap_ns)
{
    struct nrg_cpu_readings readings;
    int rc = nrg_cpu_readings_init(&readings, e, gap_ns);
    if (rc)
        return rc;
    e->cpu_time = nrg_calloc(1, sizeof *e->cpu_time);
    rc = e->cpu_time ? 0 : -ENOMEM;
    if (!rc && !readings.any)
        integrate_instead(e, "the recording has none of processes or threads");
    else if (!rc)
        rc = nrg_cpu_slots_make(e, &readings);
    nrg_cpu_readings_release(&readings, e);
    return rc;
}

int nrg_cputime_parts(struct nrg_engine *e)
{
    int64_t gap_ns = 0;
    int rc = is_used(e) ? -E2BIG : 0;
    while (rc == -E2BIG && gap_ns < MOST_GAP_NS) {
        nrg_cputime_release(e);
        rc = make_slots(e, gap_ns);
        gap_ns = gap_ns ? WIDER_GAPS * gap_ns : FIRST_GAP_NS;
    }
    if (rc == -E2BIG) { /* cells alone are too many */
        integrate_instead(e, "there are too many spans for its bounds");
        nrg_cputime_release(e);
        rc = 0;
    }
    if (!rc && e->cpu_time)
        rc = nrg_cpu_rates_fit(e->cpu_time, e->walk.rows->n + 1, e->n_parts,
                               e->options->confidence > 0 ? e->options->confidence : 0.95);
    if (!rc && e->cpu_time) {
        nrg_cpu_divide(e->cpu_time);
        limit_prices(e);
        add_energies(e);
    }
    return rc;
}

void nrg_cputime_release(struct nrg_engine *e)
{
    if (e->cpu_time) {
        free(e->cpu_time->slots);
        free(e->cpu_time->entries);
        free(e->cpu_time->price);
        free(e->cpu_time->steps.items);
        nrg_arena_release(&e->cpu_time->memory);
    }
    free(e->cpu_time);
    e->cpu_time = NULL;
}
