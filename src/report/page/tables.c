/*
 * Rows and buckets as arrays. Most rows have nothing in most buckets, so theirs are lists: of row i
 * the entries row_first[i] to row_first[i + 1], each with the number of its bucket.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/json/set.h"
#include "base/mem.h"
#include "report/attribution/report.h"
#include "report/page/internal.h"

/* Of each row, in this order; the last two only where something is estimated. */
static const char *const columns[] = {
    "row_time_s", "row_self_time_s", "row_energy_j",    "row_self_j",       "row_low_j",
    "row_high_j", "row_self_low_j",  "row_self_high_j", "row_random_j",     "row_self_random_j",
    "row_calls",  "row_macs",        "row_bytes",       "row_scaled_low_j", "row_scaled_high_j",
};
enum { N_COLUMNS = sizeof columns / sizeof *columns, N_SCALED = 2, MOST_COUNTERS = 4 };

static void set_columns(const struct nrg_attribution_row *row, double *const *to, size_t i)
{
    const double values[N_COLUMNS] = {
        row->time_s,
        row->self_time_s,
        row->energy_j,
        row->energy_self_j,
        row->low_j,
        row->high_j,
        row->self_low_j,
        row->self_high_j,
        row->random_j,
        row->self_random_j,
        (double)row->calls,
        row->macs,
        row->read_bytes + row->written_bytes,
        row->scaled_low_j,
        row->scaled_high_j,
    };
    for (size_t c = 0; c < N_COLUMNS; c++)
        to[c][i] = values[c];
}

struct texts {
    uint32_t *label, *name, *kind, *detail, *method, *provenance;
    int32_t *parent;
    uint8_t *flags;
};

static int set_texts(struct nrg_page_data *d, const struct texts *t, size_t i)
{
    const struct nrg_attribution *a = d->run->attribution;
    const struct nrg_attribution_row *row = &a->rows[i];
    struct nrg_str label = {0};
    int rc = nrg_attribution_label(a, i, true, &label);
    t->label[i] = nrg_page_string(d, label.text);
    t->name[i] = nrg_page_string(d, row->name);
    t->kind[i] = nrg_page_string(d, row->kind);
    t->detail[i] = nrg_page_string(d, row->detail);
    t->method[i] = nrg_page_string(d, nrg_method_name(row->method));
    t->provenance[i] = nrg_page_string(d, nrg_provenance_name(row->provenance));
    t->parent[i] = row->parent < a->n_rows ? (int32_t)row->parent : -1;
    t->flags[i] = (uint8_t)row->flags;
    nrg_str_release(&label);
    return rc;
}

static int add_rows(struct nrg_page_data *d)
{
    const struct nrg_attribution *a = d->run->attribution;
    size_t n = a->n_rows;
    double *to[N_COLUMNS];
    struct texts t = {.label = nrg_arena_array(&d->memory, n + 1, sizeof *t.label),
                      .name = nrg_arena_array(&d->memory, n + 1, sizeof *t.name),
                      .kind = nrg_arena_array(&d->memory, n + 1, sizeof *t.kind),
                      .detail = nrg_arena_array(&d->memory, n + 1, sizeof *t.detail),
                      .method = nrg_arena_array(&d->memory, n + 1, sizeof *t.method),
                      .provenance = nrg_arena_array(&d->memory, n + 1, sizeof *t.provenance),
                      .parent = nrg_arena_array(&d->memory, n + 1, sizeof *t.parent),
                      .flags = nrg_arena_array(&d->memory, n + 1, 1)};
    for (size_t c = 0; c < N_COLUMNS; c++)
        to[c] = nrg_arena_array(&d->memory, n + 1, sizeof *to[c]);
    int rc = d->memory.failed ? -ENOMEM : 0;
    for (size_t i = 0; !rc && i < n; i++) {
        set_columns(&a->rows[i], to, i);
        rc = set_texts(d, &t, i);
    }
    nrg_page_array(d, "row_label", "u4", t.label, n);
    nrg_page_array(d, "row_name", "u4", t.name, n);
    nrg_page_array(d, "row_kind", "u4", t.kind, n);
    nrg_page_array(d, "row_detail", "u4", t.detail, n);
    nrg_page_array(d, "row_method", "u4", t.method, n);
    nrg_page_array(d, "row_provenance", "u4", t.provenance, n);
    nrg_page_array(d, "row_parent", "i4", t.parent, n);
    nrg_page_array(d, "row_flags", "u1", t.flags, n);
    size_t shown = isnan(a->scale.low) ? N_COLUMNS - N_SCALED : N_COLUMNS;
    for (size_t c = 0; c < shown; c++)
        nrg_page_array(d, columns[c], "f8", to[c], n);
    return rc;
}

/* Position of a counter's name in the list, which grows; MOST_COUNTERS: no room. */
static size_t counter_of(const char **names, size_t *n, const char *name)
{
    for (size_t i = 0; i < *n; i++)
        if (!strcmp(names[i], name))
            return i;
    if (*n == MOST_COUNTERS)
        return MOST_COUNTERS;
    names[*n] = name;
    return (*n)++;
}

/* What was counted while a row's spans were open: tokens, samples. */
static int add_counts(struct nrg_page_data *d)
{
    const struct nrg_attribution *a = d->run->attribution;
    const char *names[MOST_COUNTERS];
    size_t n = 0;
    double *counts = nrg_arena_array(&d->memory, MOST_COUNTERS * a->n_rows + 1, sizeof *counts);
    json_t *list = json_array();
    for (size_t i = 0; counts && i < a->n_rows; i++)
        for (size_t k = 0; k < a->rows[i].n_counts; k++) {
            size_t c = counter_of(names, &n, a->rows[i].counts[k].name);
            if (c < MOST_COUNTERS)
                counts[c * a->n_rows + i] += a->rows[i].counts[k].amount;
        }
    for (size_t c = 0; c < n; c++)
        json_array_append_new(list, nrg_json_string(names[c]));
    json_object_set_new(d->head, "counters", list);
    nrg_page_array(d, "row_counts", "f8", counts, n * a->n_rows);
    return counts ? 0 : -ENOMEM;
}

static void add_domains(struct nrg_page_data *d)
{
    const struct nrg_attribution_buckets *b = d->run->attribution->buckets;
    /* as the struct has them: total, idle, others, covered time, least, most */
    nrg_page_array(d, "domain_buckets", "f8", b->domain,
                   b->n_domains * b->n * (sizeof *b->domain / sizeof(double)));
}

/* Energy of a row in a bucket, over all domains. */
static double bucket_j(const struct nrg_attribution_buckets *b, size_t row, size_t bucket)
{
    double sum_j = 0;
    for (size_t p = 0; p < b->n_domains; p++)
        sum_j += b->row_j[(row * b->n_domains + p) * b->n + bucket];
    return sum_j;
}

static bool has_entry(const struct nrg_attribution_buckets *b, size_t row, size_t bucket)
{
    size_t at = row * b->n + bucket;
    return b->row_s[at] > 0 || b->row_calls[at] || bucket_j(b, row, bucket) > 0;
}

static int add_buckets(struct nrg_page_data *d)
{
    const struct nrg_attribution_buckets *b = d->run->attribution->buckets;
    size_t n_rows = d->run->attribution->n_rows, n = 0;
    uint32_t *first = nrg_arena_array(&d->memory, n_rows + 1, sizeof *first);
    if (!first)
        return -ENOMEM;
    for (size_t i = 0; i < n_rows; i++)
        for (size_t k = 0; k < b->n; k++)
            n += has_entry(b, i, k);
    uint32_t *bucket = nrg_arena_array(&d->memory, n + 1, sizeof *bucket);
    uint32_t *calls = nrg_arena_array(&d->memory, n + 1, sizeof *calls);
    float *energy_j = nrg_arena_array(&d->memory, n + 1, sizeof *energy_j);
    float *time_s = nrg_arena_array(&d->memory, n + 1, sizeof *time_s);
    if (d->memory.failed)
        return -ENOMEM;
    n = 0;
    for (size_t i = 0; i < n_rows; i++) {
        for (size_t k = 0; k < b->n; k++) {
            if (!has_entry(b, i, k))
                continue;
            bucket[n] = (uint32_t)k;
            calls[n] = b->row_calls[i * b->n + k];
            energy_j[n] = (float)bucket_j(b, i, k);
            time_s[n++] = (float)b->row_s[i * b->n + k];
        }
        first[i + 1] = (uint32_t)n;
    }
    nrg_page_array(d, "row_first", "u4", first, n_rows + 1);
    nrg_page_array(d, "entry_bucket", "u4", bucket, n);
    nrg_page_array(d, "entry_calls", "u4", calls, n);
    nrg_page_array(d, "entry_j", "f4", energy_j, n);
    nrg_page_array(d, "entry_s", "f4", time_s, n);
    return 0;
}

int nrg_page_tables(struct nrg_page_data *d)
{
    int rc = add_rows(d);
    if (!rc)
        rc = add_counts(d);
    if (rc)
        return rc;
    add_domains(d);
    return add_buckets(d);
}
