/*
 * See side.h. Everything is computed as nrg report and nrg attribute do it, run by run; nothing of
 * a recording is kept open afterwards, so that hundreds of them can be compared.
 */
#include "compare/side.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/attribution.h"
#include "base/mem.h"
#include "compare/internal.h"

#define SEPARATOR "\x1f"

int nrg_compare_note(struct nrg_compare_notes *notes, const char *format, ...)
{
    va_list args;
    int rc = nrg_reserve(&notes->items, &notes->cap, notes->n + 1, sizeof *notes->items);
    if (rc)
        return rc;
    va_start(args, format);
    vsnprintf(notes->items[notes->n++], sizeof *notes->items, format, args);
    va_end(args);
    return 0;
}

const char *nrg_compare_side_name(const struct nrg_compare_side sides[2], int side)
{
    return sides[side].name ? sides[side].name : side ? "B" : "A";
}

/* ---- parts ---- */

static int64_t part_number(struct nrg_compare_side *side, const char *kind, const char *name)
{
    struct nrg_str key = {0};
    int64_t number = -ENOMEM;
    if (!nrg_str_addf(&key, "%s" SEPARATOR "%s", kind, name))
        number = nrg_map_intern(&side->index, key.text, key.len);
    nrg_str_release(&key);
    if (number <= (int64_t)side->n_parts)
        return number;
    struct nrg_compare_part part = {
        .kind = nrg_arena_copy(&side->arena, kind, strlen(kind)),
        .name = nrg_arena_copy(&side->arena, name, strlen(name)),
    };
    int rc = part.kind && part.name
                 ? nrg_append(&side->parts, &side->n_parts, &side->cap_parts, &part, sizeof part)
                 : -ENOMEM;
    return rc ? rc : number;
}

/* Adds to what the run has of that part already: processes of one name are one part. `use.own` is
 * in joules; the band is the same for all that is added to a part. */
static int add_part(struct nrg_compare_side *side, const char *kind, const char *name,
                    struct nrg_compare_value use)
{
    if (!isfinite(use.value) || use.value <= 0)
        return 0;
    int64_t number = part_number(side, kind, name);
    if (number < 0)
        return (int)number;
    struct nrg_compare_part *part = &side->parts[number - 1];
    int rc = nrg_reserve(&part->items, &part->cap, side->n_runs + 1, sizeof *part->items);
    if (rc)
        return rc;
    while (part->n <= side->n_runs)
        part->items[part->n++] = (struct nrg_compare_value){.low = 1, .high = 1};
    struct nrg_compare_value *o = &part->items[side->n_runs];
    double before_j = o->own * o->value;
    o->value += use.value;
    o->own = (before_j + (isfinite(use.own) ? use.own : 0)) / o->value;
    o->low = use.low > 0 ? use.low : 1;
    o->high = use.high > 0 ? use.high : 1;
    return 0;
}

const struct nrg_compare_part *nrg_compare_side_find(const struct nrg_compare_side *side,
                                                     const struct nrg_compare_part *like)
{
    struct nrg_str key = {0};
    int64_t number = 0;
    if (!nrg_str_addf(&key, "%s" SEPARATOR "%s", like->kind, like->name))
        number = nrg_map_known(&side->index, key.text, key.len);
    nrg_str_release(&key);
    return number > 0 ? &side->parts[number - 1] : NULL;
}

static int add_domains(struct nrg_compare_side *side, const struct nrg_summary *s)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < s->n_domains; i++) {
        const struct nrg_domain *d = &s->domains[i];
        bool estimated = d->channel->channel.provenance == NRG_ESTIMATED;
        struct nrg_compare_value use = {.value = d->energy_j, .own = d->uncertainty_j};
        if (estimated)
            use = (struct nrg_compare_value){.value = d->energy_j,
                                             .low = d->low_j / d->energy_j,
                                             .high = d->high_j / d->energy_j};
        rc = add_part(side, "domain", d->channel->channel.name, use);
    }
    return rc;
}

/* Of the shares of processes no more is known than of the program's, which is their sum. */
static int add_processes(struct nrg_compare_side *side, const struct nrg_compare_run *run,
                         const struct nrg_summary *s)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < s->n_processes; i++) {
        const struct nrg_process_energy *p = &s->processes[i];
        struct nrg_compare_value use = {
            .value = nrg_sum_known(nrg_sum_known(p->cpu_j, p->dram_j), p->gpu_j),
            .low = run->program_low,
            .high = run->program_high};
        rc = add_part(side, "process", p->info->name, use);
    }
    return rc;
}

/* Rows of an attribution, of one kind of part. Operators are one part each, wherever called. */
static int add_rows(struct nrg_compare_side *side, struct nrg_compare_run *run,
                    struct nrg_recording *recording, int64_t number, enum nrg_rows_by by,
                    const char *kind, struct nrg_error *err)
{
    struct nrg_attribution_options how = {.idle_w = NAN, .by = by, .run = number};
    struct nrg_attribution a;
    int rc = nrg_attribution_make(&a, recording, &how, err);
    if (rc)
        return rc;
    nrg_compare_work(side, run, &a);
    if (by == NRG_BY_NAME)
        rc = nrg_attribution_list(&a, true);
    for (size_t i = 0; !rc && i < a.n_rows; i++) {
        const struct nrg_attribution_row *row = &a.rows[i];
        bool wanted = by == NRG_BY_NAME
                          ? !strcmp(row->kind, "operator") || !strcmp(row->kind, "kernel") ||
                                !strcmp(row->kind, "layer")
                          : !strcmp(row->kind, kind);
        if (wanted && row->merged_with == SIZE_MAX)
            rc = add_part(side, kind, row->name,
                          (struct nrg_compare_value){.value = row->energy_j,
                                                     .own = (row->high_j - row->low_j) / 2,
                                                     .low = a.scale.low,
                                                     .high = a.scale.high});
    }
    nrg_attribution_release(&a);
    return rc ? nrg_fail(err, rc, nrg_recording_path(recording), "out of memory") : 0;
}

/* ---- a run ---- */

/* The error of what is measured is each run's own; the band of what is estimated is common. */
static void fill_errors(struct nrg_compare_run *run, const struct nrg_summary *s)
{
    double own_j = 0, below_j = 0, above_j = 0;
    for (size_t i = 0; i < s->n_domains; i++) {
        const struct nrg_domain *d = &s->domains[i];
        if (!d->in_total)
            continue;
        if (d->channel->channel.provenance == NRG_ESTIMATED) {
            below_j += d->energy_j - d->low_j;
            above_j += d->high_j - d->energy_j;
        } else if (isfinite(d->uncertainty_j)) {
            own_j += d->uncertainty_j;
        }
    }
    run->own = s->total_j > 0 ? own_j / s->total_j : 0;
    run->low = s->total_j > 0 ? 1 - below_j / s->total_j : 1;
    run->high = s->total_j > 0 ? 1 + above_j / s->total_j : 1;
    run->program_low = s->program.energy_j > 0 ? s->program.low_j / s->program.energy_j : 1;
    run->program_high = s->program.energy_j > 0 ? s->program.high_j / s->program.energy_j : 1;
}

/* A run is known by its time to the nanosecond and by its joules, not by its file: that may have
 * been copied, linked, or be named by another path. */
static bool is_same_run(const struct nrg_compare_run *a, const struct nrg_compare_run *b)
{
    bool no_energy = isnan(a->energy_j) && isnan(b->energy_j);
    return a->begin_ns == b->begin_ns && a->clock_ns == b->clock_ns &&
           a->duration_s == b->duration_s && (no_energy || a->energy_j == b->energy_j);
}

const struct nrg_compare_run *nrg_compare_side_run(const struct nrg_compare_side *side,
                                                   const struct nrg_compare_run *like)
{
    for (size_t i = 0; i < side->n_runs; i++)
        if (is_same_run(&side->runs[i], like))
            return &side->runs[i];
    return NULL;
}

static double others_of(const struct nrg_recording *recording, const struct nrg_summary *s)
{
    int64_t cpus;
    if (nrg_recording_integer(recording, "cpus", &cpus) || cpus < 1 || !(s->duration_s > 0))
        return NAN;
    return fmax(0, s->cpu_utilisation - s->cpu_time_s / s->duration_s / (double)cpus);
}

static int add_run(struct nrg_compare_side *side, struct nrg_recording *recording,
                   const struct nrg_summary *s, int64_t number, struct nrg_error *err)
{
    int64_t began_ns = nrg_recording_realtime_ns(recording, s->begin_ns);
    struct nrg_compare_run run = {
        .file = nrg_compare_keep(side, nrg_recording_path(recording)),
        .begin_ns = began_ns ? began_ns : NRG_MISSING,
        .clock_ns = s->begin_ns,
        .energy_j = s->total_j,
        .program_j = s->program.energy_j,
        .duration_s = s->duration_s,
        .peak_memory_bytes = s->peak_memory_bytes,
        .covered = s->total_covered,
        .others = others_of(recording, s),
        .exit_code = s->exit_code,
        .provenance = s->total_provenance,
    };
    if (nrg_compare_side_run(side, &run)) {
        side->n_again++;
        return 0;
    }
    nrg_compare_facts(side, &run, recording, s);
    nrg_compare_clocks(&run, recording, s);
    fill_errors(&run, s);
    int rc = add_domains(side, s);
    if (!rc)
        rc = add_processes(side, &run, s);
    if (rc)
        return nrg_fail(err, rc, run.file, "out of memory");
    size_t at = 0;
    if (nrg_recording_next_series(recording, NRG_SPANS, &at)) {
        rc = add_rows(side, &run, recording, number, NRG_BY_MODULE, "module", err);
        if (!rc)
            rc = add_rows(side, &run, recording, number, NRG_BY_NAME, "operator", err);
    }
    if (!rc && nrg_append(&side->runs, &side->n_runs, &side->cap_runs, &run, sizeof run))
        rc = nrg_fail(err, -ENOMEM, run.file, "out of memory");
    return rc;
}

static int add_whole_run(struct nrg_compare_side *side, struct nrg_recording *recording,
                         const struct nrg_run *run, struct nrg_error *err)
{
    struct nrg_summary summary;
    int rc = nrg_summary_make(&summary, recording, run, NRG_SPLIT_ACTIVE, err);
    if (rc)
        return rc;
    rc = add_run(side, recording, &summary, run->id, err);
    nrg_summary_release(&summary);
    return rc;
}

int nrg_compare_side_add(struct nrg_compare_side *side, const char *path, struct nrg_error *err)
{
    struct nrg_recording *recording;
    size_t n, seen = 0;
    int rc = nrg_recording_open(path, &recording, err);
    if (rc)
        return rc;
    const struct nrg_run *runs = nrg_recording_runs(recording, &n);
    for (size_t i = 0; !rc && i < n; i++) {
        if (!strcmp(runs[i].kind, "baseline"))
            continue;
        seen++;
        if (runs[i].end_ns <= runs[i].begin_ns) /* it is 0 where there is none */
            side->n_cut++;
        else
            rc = add_whole_run(side, recording, &runs[i], err);
    }
    if (!rc && !seen)
        rc = nrg_recording_no_run(recording, "run", err);
    if (!rc)
        rc = nrg_recording_check(recording, err);
    side->n_damaged += nrg_recording_damage(recording) > 0;
    nrg_recording_close(recording);
    return rc;
}

void nrg_compare_side_release(struct nrg_compare_side *side)
{
    for (size_t i = 0; i < side->n_parts; i++)
        free(side->parts[i].items);
    free(side->parts);
    free(side->runs);
    nrg_map_release(&side->index);
    nrg_arena_release(&side->arena);
    *side = (struct nrg_compare_side){0};
}
