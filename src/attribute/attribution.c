/*
 * See attribution.h. The engine runs once; rows, joules per unit of work and the rest are views of
 * what it found (internal.h). In a list of operators, what is done by something else (the modules'
 * own code, data loading) becomes one row, so that the sum stays the total.
 */
#include "attribute/attribution.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/buckets.h"
#include "attribute/internal.h"
#include "attribute/range.h"
#include "base/mem.h"

static const char *const method_names[] = {"auto",    "integrate", "nearest", "window",
                                           "regress", "cpu-time",  "mixed"};

const char *nrg_method_name(enum nrg_method method)
{
    return method_names[method];
}

int nrg_attribution_note(struct nrg_attribution *a, const char *what, const char *why, ...)
{
    struct nrg_missing note = {0};
    va_list ap;
    nrg_copy(note.what, sizeof note.what, what);
    va_start(ap, why);
    vsnprintf(note.why, sizeof note.why, why, ap);
    va_end(ap);
    return nrg_append(&a->notes, &a->n_notes, &a->cap_notes, &note, sizeof note);
}

static void sum_domains(struct nrg_engine *e)
{
    struct nrg_attribution *a = e->out;
    if (!a->n_domains) {
        a->total_j = a->unattributed_j = a->idle_j = a->other_processes_j = NAN;
        a->total_low_j = a->total_high_j = a->total_uncertainty_j = NAN;
    }
    for (size_t i = 0; i < a->n_domains; i++) {
        const struct nrg_attribution_domain *d = &a->domains[i];
        double off_j = d->total_j - d->domain->energy_j; /* lag, or several runs */
        bool guessed = e->n_windows == 1 && !strcmp(d->lag_source, "fitted");
        double doubt_j = guessed ? fabs(off_j) / 2 : 0;
        a->total_j += d->total_j;
        a->total_low_j += fmax(0, d->domain->low_j + off_j - doubt_j);
        a->total_high_j += d->domain->high_j + off_j + doubt_j;
        a->total_uncertainty_j += d->domain->uncertainty_j + doubt_j;
        a->unattributed_j += d->unattributed_j;
        a->idle_j += d->idle_j;
        a->other_processes_j += d->other_processes_j;
        if (d->domain->channel->channel.provenance > a->provenance)
            a->provenance = d->domain->channel->channel.provenance;
    }
}

/* One factor for what is estimated: where several domains are, their ends in sum. */
static void sum_scales(struct nrg_attribution *a)
{
    double low_j = 0, high_j = 0, all_j = 0;
    for (size_t i = 0; i < a->n_domains; i++) {
        const struct nrg_attribution_domain *d = &a->domains[i];
        if (isnan(d->scale.low) || !(d->total_j > 0))
            continue;
        all_j += d->total_j;
        low_j += d->scale.low * d->total_j;
        high_j += d->scale.high * d->total_j;
    }
    a->scale = (struct nrg_scale){NAN, NAN};
    if (all_j > 0)
        a->scale = (struct nrg_scale){low_j / all_j, high_j / all_j};
}

/* What no row has. For a regression or single readings that is simply the rest. */
static void set_rest(struct nrg_engine *e, const double *rows_j)
{
    for (size_t p = 0; p < e->n_parts; p++) {
        struct nrg_attribution_domain *out = e->parts[p].out;
        if (nrg_method_reads(e->parts[p].method))
            out->idle_j = out->other_processes_j = 0;
        /* For integrate this adds the rounding of millions of sums, nothing else. */
        nrg_domain_settle(out, rows_j[p]);
    }
}

/* Parts that are added end to end may reach beyond the whole, which they can't. */
static double within_total(const struct nrg_attribution *a, double energy_j, double high_j)
{
    return high_j > a->total_high_j ? fmax(energy_j, a->total_high_j) : high_j;
}

/* Single readings that stand for a span (nearest, window) are a rule of the user's, with a sum of
 * their own. */
static void bound_rows(struct nrg_attribution *a)
{
    for (size_t i = 0; i < a->n_rows; i++) {
        struct nrg_attribution_row *row = &a->rows[i];
        double *const ends[] = {&row->high_j, &row->scaled_high_j, &row->self_high_j,
                                &row->self_scaled_high_j};
        for (size_t k = 0; k < sizeof ends / sizeof *ends && !nrg_method_reads(row->method); k++)
            *ends[k] = within_total(a, row->energy_j, *ends[k]);
    }
}

static void bound_units(struct nrg_attribution *a)
{
    for (size_t i = 0; i < a->n_units && !nrg_method_reads(a->method); i++) {
        struct nrg_unit_use *unit = &a->units[i];
        unit->high_j = within_total(a, unit->energy_j, unit->high_j);
        unit->scaled_high_j = within_total(a, unit->energy_j, unit->scaled_high_j);
    }
}

static int make_result(struct nrg_engine *e)
{
    struct nrg_attribution *a = e->out;
    struct nrg_rows_memory *memory = a->memory;
    struct nrg_view_rows view = {0};
    int rc = nrg_view_rows(&view, e, e->options->by, &memory->arena);
    if (rc)
        return rc;
    a->rows = view.rows;
    a->n_rows = view.n;
    set_rest(e, view.part_j);
    sum_domains(e);
    sum_scales(a);
    nrg_note_all(e);
    a->buckets = view.buckets;
    rc = e->options->has_range ? nrg_range_restrict(a, &memory->arena) : nrg_units_make(e);
    bound_rows(a);
    bound_units(a);
    return rc;
}

int nrg_attribution_of(struct nrg_attribution *a, struct nrg_recording *recording,
                       const struct nrg_attribution_options *options,
                       const struct nrg_given_spans *given, struct nrg_error *err)
{
    struct nrg_engine e = {
        .recording = recording, .given = given, .options = options, .out = a, .err = err};
    struct nrg_rows_memory *memory = nrg_calloc(1, sizeof *memory);
    *a = (struct nrg_attribution){
        .idle = options->idle, .memory = memory, .from_s = NAN, .to_s = NAN};
    int rc = memory ? nrg_engine_open(&e) : nrg_fail(err, -ENOMEM, NULL, "out of memory");
    if (!rc) {
        if (err)
            *err = (struct nrg_error){0};
        rc = nrg_engine_run(&e);
        if (!rc)
            rc = make_result(&e);
        if (!rc)
            rc = nrg_recording_check(recording, err);
    }
    bool elsewhere = !rc && !given && nrg_units_need_paths(&e);
    nrg_engine_release(&e);
    if (elsewhere)
        rc = nrg_units_by_path(a, recording, options, err);
    if (rc && (!err || !err->code))
        nrg_fail(err, rc, nrg_recording_path(recording), "cannot attribute: %s", strerror(-rc));
    if (rc)
        nrg_attribution_release(a);
    return rc;
}

int nrg_attribution_make(struct nrg_attribution *a, struct nrg_recording *recording,
                         const struct nrg_attribution_options *options, struct nrg_error *err)
{
    return nrg_attribution_of(a, recording, options, NULL, err);
}

void nrg_attribution_release(struct nrg_attribution *a)
{
    struct nrg_rows_memory *memory = a->memory;
    if (memory) {
        nrg_arena_release(&memory->arena);
        nrg_span_catalog_release(&memory->catalog);
        free(memory->steps.items);
    }
    free(memory);
    free(a->domains);
    free(a->notes);
    free(a->units);
    nrg_summary_release(&a->summary);
    *a = (struct nrg_attribution){0};
}

static bool is_operator(const struct nrg_attribution_row *row)
{
    return !strcmp(row->kind, NRG_KIND_OPERATOR) || !strcmp(row->kind, NRG_KIND_KERNEL) ||
           !strcmp(row->kind, NRG_KIND_LAYER);
}

static void add_to_rest(struct nrg_attribution_row *rest, const struct nrg_attribution_row *row)
{
    rest->self_time_s += row->self_time_s;
    rest->flags |= row->flags;
    rest->energy_self_j = nrg_sum_known(rest->energy_self_j, row->energy_self_j);
    rest->self_low_j = nrg_sum_known(rest->self_low_j, row->self_low_j);
    rest->self_high_j = nrg_sum_known(rest->self_high_j, row->self_high_j);
    rest->self_scaled_low_j = nrg_sum_known(rest->self_scaled_low_j, row->self_scaled_low_j);
    rest->self_scaled_high_j = nrg_sum_known(rest->self_scaled_high_j, row->self_scaled_high_j);
    if (row->provenance > rest->provenance)
        rest->provenance = row->provenance;
}

static void keep_operators(struct nrg_attribution *a)
{
    struct nrg_attribution_row rest = nrg_row_unknown("(outside operators)", "rest", "");
    size_t n = 0;
    for (size_t i = 0; i < a->n_rows; i++) {
        if (!is_operator(&a->rows[i])) {
            add_to_rest(&rest, &a->rows[i]);
            continue;
        }
        a->rows[n] = a->rows[i];
        a->rows[n++].merged_with = SIZE_MAX;
    }
    if (n < a->n_rows) {
        rest.method = a->method;
        rest.time_s = rest.self_time_s;
        rest.energy_j = rest.energy_self_j;
        rest.self_high_j = within_total(a, rest.energy_j, rest.self_high_j);
        rest.self_scaled_high_j = within_total(a, rest.energy_j, rest.self_scaled_high_j);
        rest.low_j = rest.self_low_j;
        rest.high_j = rest.self_high_j;
        rest.scaled_low_j = rest.self_scaled_low_j;
        rest.scaled_high_j = rest.self_scaled_high_j;
        a->rows[n++] = rest;
    }
    a->n_rows = n;
}

struct placed {
    struct nrg_attribution_row row;
    size_t was;
};

/* Largest first, those without a number last; else as they stood. */
static int by_energy(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;
    double x = a->row.energy_j, y = b->row.energy_j;
    if (isnan(x) != isnan(y))
        return isnan(x) ? 1 : -1;
    if (x > y || y > x)
        return x > y ? -1 : 1;
    return a->was < b->was ? -1 : 1;
}

int nrg_attribution_list(struct nrg_attribution *a, bool operators)
{
    if (operators)
        keep_operators(a);
    struct nrg_arena memory = {0};
    size_t *now = nrg_arena_array(&memory, a->n_rows + 1, sizeof *now);
    struct placed *placed = nrg_arena_array(&memory, a->n_rows + 1, sizeof *placed);
    size_t n = memory.failed ? 0 : a->n_rows;
    for (size_t i = 0; i < n; i++)
        placed[i] = (struct placed){a->rows[i], i};
    if (n)
        qsort(placed, n, sizeof *placed, by_energy);
    for (size_t i = 0; i < n; i++) {
        a->rows[i] = placed[i].row;
        now[placed[i].was] = i;
    }
    for (size_t i = 0; i < n; i++)
        if (a->rows[i].merged_with < n)
            a->rows[i].merged_with = now[a->rows[i].merged_with];
    int rc = memory.failed ? -ENOMEM : 0;
    nrg_arena_release(&memory);
    return rc;
}
