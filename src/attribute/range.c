/* See range.h. */
#include "attribute/range.h"

#include <errno.h>
#include <math.h>

#define ROUNDING 1e-9 /* of what an energy may be off by: less is none */

struct nrg_range_sum nrg_range_domain(const struct nrg_attribution_buckets *b, size_t domain,
                                      size_t first, size_t last)
{
    const struct nrg_time_bucket *buckets = &b->domain[domain * b->n];
    const struct nrg_range_error *error = &b->errors[domain];
    struct nrg_range_sum sum = {0};
    double band_low_j = 0, band_high_j = 0;
    double s = (double)(b->edges_ns[last] - b->edges_ns[first]) * 1e-9;
    for (size_t i = first; i < last; i++) {
        sum.energy_j += buckets[i].total_j;
        sum.idle_j += buckets[i].idle_j;
        sum.other_processes_j += buckets[i].other_processes_j;
        sum.covered_s += buckets[i].covered_s;
        band_low_j += buckets[i].low_j;
        band_high_j += buckets[i].high_j;
    }
    bool banded = !isnan(band_low_j) && !isnan(band_high_j);
    double mean_w = sum.covered_s > 0 ? fabs(sum.energy_j) / sum.covered_s : 0;
    double off_j = error->fixed_j + error->update_s * mean_w + error->per_s_j * s +
                   sqrt(error->noise_j2_per_s * sum.covered_s);
    double unread_j = fmax(0, s - sum.covered_s) * error->most_w;
    sum.low_j = fmax(0, (banded ? band_low_j : sum.energy_j * error->factor_low) - off_j);
    sum.high_j = (banded ? band_high_j : sum.energy_j * error->factor_high) + off_j + unread_j;
    return sum;
}

double nrg_range_row_end(const struct nrg_range_whole *whole, double end_j, double part_j,
                         double part_s)
{
    double off_j = fabs(end_j - whole->energy_j);
    double random_j = isnan(whole->random_j) ? 0 : fmin(whole->random_j, off_j);
    double time_share = part_s < whole->time_s ? part_s / whole->time_s : 1;
    bool some = fmin(whole->energy_j, part_j) > ROUNDING * off_j;
    double share = some ? part_j / whole->energy_j : time_share;
    double width_j = (off_j - random_j) * share + random_j * sqrt(share);
    if (isnan(end_j))
        return NAN;
    return end_j < whole->energy_j ? fmax(0, part_j - width_j) : part_j + width_j;
}

/* What the rows have in the one bucket. */
struct sums {
    double self_j, all_j, self_s, all_s;
};

static double self_of(const struct nrg_attribution_buckets *b, size_t row, const double *of)
{
    double sum_j = 0;
    for (size_t d = 0; d < b->n_domains; d++)
        sum_j += of[row * b->n_domains + d];
    return sum_j;
}

/* Parents stand before their children: from the last row on, each adds to the one above. */
static void add_up(const struct nrg_attribution *a, struct sums *sums, double *domain_j)
{
    const struct nrg_attribution_buckets *b = a->buckets;
    const double *from = b->inside_j ? b->inside_j : b->row_j;
    for (size_t i = 0; i < a->n_rows; i++) {
        sums[i].self_j = self_of(b, i, b->row_j);
        sums[i].all_j = self_of(b, i, from);
        sums[i].self_s = b->row_s[i];
        sums[i].all_s = (b->inside_s ? b->inside_s : b->row_s)[i];
    }
    for (size_t i = 0; i < a->n_rows * b->n_domains; i++)
        domain_j[i] = from[i];
    for (size_t i = a->n_rows; i-- > 0;) {
        size_t parent = a->rows[i].parent;
        if (parent == SIZE_MAX)
            continue;
        sums[parent].all_j += sums[i].all_j;
        sums[parent].all_s += sums[i].all_s;
        for (size_t d = 0; d < b->n_domains; d++)
            domain_j[parent * b->n_domains + d] += domain_j[i * b->n_domains + d];
    }
}

static void set_ends(const struct nrg_range_whole *whole, double part_j, double part_s,
                     double *const *ends, size_t n)
{
    for (size_t i = 0; i < n; i++)
        *ends[i] = nrg_range_row_end(whole, *ends[i], part_j, part_s);
}

static void set_row(struct nrg_attribution_row *row, const struct sums *sums, uint32_t calls)
{
    const struct nrg_range_whole all = {row->energy_j, row->random_j, row->time_s};
    const struct nrg_range_whole self = {row->energy_self_j, row->self_random_j, row->self_time_s};
    double *const ends[] = {&row->low_j, &row->high_j, &row->scaled_low_j, &row->scaled_high_j};
    double *const self_ends[] = {&row->self_low_j, &row->self_high_j, &row->self_scaled_low_j,
                                 &row->self_scaled_high_j};
    double all_j = isnan(row->energy_j) ? NAN : sums->all_j;
    double self_j = isnan(row->energy_self_j) ? NAN : sums->self_j;
    set_ends(&all, all_j, sums->all_s, ends, 4);
    set_ends(&self, self_j, sums->self_s, self_ends, 4);
    row->energy_j = all_j;
    row->energy_self_j = self_j;
    row->time_s = sums->all_s;
    row->self_time_s = sums->self_s;
    row->calls = calls;
    row->n_counts = 0; /* not known for a part of the run */
}

/* Leaves out rows that have no time in the range; `now` is where each row stands then. */
static void drop_empty(struct nrg_attribution *a, size_t *now)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n_rows; i++) {
        struct nrg_attribution_row row = a->rows[i];
        now[i] = SIZE_MAX;
        if (!(row.time_s > 0) && !row.calls)
            continue;
        row.parent = row.parent == SIZE_MAX ? SIZE_MAX : now[row.parent];
        now[i] = n;
        a->rows[n++] = row;
    }
    a->n_rows = n;
    for (size_t i = 0; i < n; i++)
        if (a->rows[i].merged_with != SIZE_MAX)
            a->rows[i].merged_with = now[a->rows[i].merged_with];
}

static void set_domains(struct nrg_attribution *a)
{
    const struct nrg_attribution_buckets *b = a->buckets;
    if (!a->n_domains)
        return; /* nothing is known of the whole run either */
    a->total_low_j = a->total_high_j = 0;
    a->total_j = a->unattributed_j = a->idle_j = a->other_processes_j = 0;
    for (size_t d = 0; d < a->n_domains; d++) {
        struct nrg_attribution_domain *to = &a->domains[d];
        struct nrg_range_sum sum = nrg_range_domain(b, d, 0, 1);
        double rows_j = 0;
        for (size_t i = 0; i < a->n_rows; i++)
            rows_j += b->row_j[i * b->n_domains + d];
        to->total_j = sum.energy_j;
        to->idle_j = sum.idle_j;
        to->other_processes_j = sum.other_processes_j;
        nrg_domain_settle(to, rows_j);
        a->total_j += to->total_j;
        a->total_low_j += sum.low_j;
        a->total_high_j += sum.high_j;
        a->idle_j += to->idle_j;
        a->other_processes_j += to->other_processes_j;
        a->unattributed_j += to->unattributed_j;
    }
    a->total_uncertainty_j = fmax(a->total_j - a->total_low_j, a->total_high_j - a->total_j);
}

int nrg_range_restrict(struct nrg_attribution *a, struct nrg_arena *arena)
{
    const struct nrg_attribution_buckets *b = a->buckets;
    struct nrg_arena scratch = {0};
    struct sums *sums = nrg_arena_array(&scratch, a->n_rows + 1, sizeof *sums);
    size_t *now = nrg_arena_array(&scratch, a->n_rows + 1, sizeof *now);
    double *domain_j = nrg_arena_array(arena, a->n_rows * a->n_domains + 1, sizeof *domain_j);
    int rc = scratch.failed || arena->failed ? -ENOMEM : 0;
    if (!rc) {
        set_domains(a);
        add_up(a, sums, domain_j);
        for (size_t i = 0; i < a->n_rows; i++) {
            struct nrg_attribution_row *row = &a->rows[i];
            set_row(row, &sums[i], b->row_calls[i]);
            if (row->domain_j)
                row->domain_j = &domain_j[i * a->n_domains];
            bool open = row->high_j - row->low_j > row->energy_j;
            row->flags =
                (row->flags & ~(unsigned)NRG_ROW_UNRESOLVED) | (open ? NRG_ROW_UNRESOLVED : 0);
        }
        drop_empty(a, now);
        a->buckets = NULL; /* its rows have other numbers now */
        a->duration_s = a->to_s - a->from_s;
        a->n_units = 0;
    }
    nrg_arena_release(&scratch);
    return rc;
}
