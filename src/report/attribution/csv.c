/*
 * An attribution as CSV: a row per place in the tree with all that is known of it, and the parts
 * that belong to no span, the unattributed one last. What is not known is an empty cell.
 *
 * With a layer log beside a power log there is a second form: the columns of the earlier Jetson
 * tool's power_runtime_mapping_layerwise.csv, in its units (microwatts and milliseconds), so that
 * what was built on those files goes on working.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/csv.h"
#include "report/attribution/report.h"

static void real_cell(FILE *out, double value)
{
    fputc(',', out);
    if (isfinite(value))
        fprintf(out, "%.12g", value);
}

static void text_cell(FILE *out, const char *text)
{
    fputc(',', out);
    nrg_csv_cell(out, text);
}

static void integer_cell(FILE *out, int64_t value)
{
    fputc(',', out);
    if (value != NRG_MISSING)
        fprintf(out, "%" PRId64, value);
}

/* ---- names of counters: a column each ---- */

enum { MAX_COUNTS = 64 };

struct counters {
    const char *names[MAX_COUNTS];
    size_t n;
};

static void find_counters(const struct nrg_attribution *a, struct counters *c)
{
    c->n = 0;
    for (size_t i = 0; i < a->n_rows; i++)
        for (size_t k = 0; k < a->rows[i].n_counts; k++) {
            size_t at = 0;
            while (at < c->n && strcmp(c->names[at], a->rows[i].counts[k].name))
                at++;
            if (at == c->n && c->n < MAX_COUNTS)
                c->names[c->n++] = a->rows[i].counts[k].name;
        }
}

static void head_cell(FILE *out, const char *prefix, const char *name)
{
    struct nrg_str text = {0};
    if (!nrg_str_addf(&text, "%s%s", prefix, name))
        text_cell(out, text.text);
    nrg_str_release(&text);
}

static void print_csv_head(const struct nrg_attribution_report *r, const struct counters *counters,
                           FILE *out)
{
    const struct nrg_attribution *a = r->attribution;
    fputs("id,parent,depth,kind,name,detail,number,calls,time_s,self_time_s,energy_j,"
          "energy_self_j,low_j,high_j,energy_per_call_j,share,method,flags,updates_per_call,"
          "macs,flops,read_bytes,written_bytes,pj_per_mac,j_per_byte,provenance,low_with_scale_j,"
          "high_with_scale_j",
          out);
    if (r->cycles)
        fputs(",cycle,power_w,power_above_idle_w,run_time_s,energy_lag_corrected_j", out);
    for (size_t d = 0; d < a->n_domains; d++)
        head_cell(out, "energy_j:", nrg_attribution_domain_name(&a->domains[d]));
    for (size_t k = 0; k < counters->n; k++)
        head_cell(out, "count:", counters->names[k]);
    fputc('\n', out);
}

static void flags_cell(FILE *out, unsigned flags)
{
    char text[160] = "";
    size_t len = 0;
    for (size_t w = 0; w < NRG_ROW_FLAG_WORDS; w++) {
        const char *word = nrg_attribution_flag(flags, w);
        if (word[0] && len < sizeof text)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", len ? "; " : "", word);
    }
    text_cell(out, text);
}

static void cycle_cells(const struct nrg_execution *c, FILE *out)
{
    if (!c) {
        fputs(",,,,,", out);
        return;
    }
    fprintf(out, ",%" PRId64, c->cycle);
    real_cell(out, c->power_w);
    real_cell(out, c->power_above_idle_w);
    real_cell(out, c->run_time_s);
    real_cell(out, c->lag_corrected_j);
}

/* Empty where nothing is estimated. */
static void scale_cells(const struct nrg_attribution *a, double low_j, double high_j, FILE *out)
{
    real_cell(out, isnan(a->scale.low) ? NAN : low_j);
    real_cell(out, isnan(a->scale.low) ? NAN : high_j);
}

static void count_cell(FILE *out, const struct nrg_attribution_row *row, const char *name)
{
    double amount = NAN;
    for (size_t k = 0; k < row->n_counts; k++)
        if (!strcmp(row->counts[k].name, name))
            amount = row->counts[k].amount;
    real_cell(out, amount);
}

static void print_csv_row(const struct nrg_attribution_report *r, const struct counters *counters,
                          size_t i, FILE *out)
{
    const struct nrg_attribution *a = r->attribution;
    const struct nrg_attribution_row *row = &a->rows[i];
    fprintf(out, "%zu", i);
    integer_cell(out, row->parent < a->n_rows ? (int64_t)row->parent : NRG_MISSING);
    fprintf(out, ",%u", row->depth);
    text_cell(out, row->kind);
    text_cell(out, row->name);
    text_cell(out, row->detail);
    integer_cell(out, row->number);
    fprintf(out, ",%" PRIu64, row->calls);
    const double values[] = {row->time_s,
                             row->self_time_s,
                             row->energy_j,
                             row->energy_self_j,
                             row->low_j,
                             row->high_j,
                             row->calls ? row->energy_j / (double)row->calls : NAN,
                             row->energy_j / a->total_j};
    for (size_t k = 0; k < sizeof values / sizeof *values; k++)
        real_cell(out, values[k]);
    text_cell(out, nrg_method_name(row->method));
    flags_cell(out, row->flags);
    const double more[] = {row->updates_per_call,  row->macs,          row->flops,
                           row->read_bytes,        row->written_bytes, nrg_row_pj_per_mac(row),
                           nrg_row_j_per_byte(row)};
    for (size_t k = 0; k < sizeof more / sizeof *more; k++)
        real_cell(out, more[k]);
    text_cell(out, isnan(row->energy_j) ? "" : nrg_provenance_name(row->provenance));
    scale_cells(a, row->scaled_low_j, row->scaled_high_j, out);
    if (r->cycles)
        cycle_cells(nrg_cycle_of_row(r->cycles, i), out);
    for (size_t d = 0; d < a->n_domains; d++)
        real_cell(out, row->domain_j ? row->domain_j[d] : NAN);
    for (size_t k = 0; k < counters->n; k++)
        count_cell(out, row, counters->names[k]);
    fputc('\n', out);
}

/* A part of the energy that belongs to no span. */
struct part {
    const char *kind, *name;
    double energy_j, low_j, high_j;
    size_t of_domain; /* offset of the domain's own part */
};

static void print_part(const struct nrg_attribution_report *r, const struct counters *counters,
                       const struct part *p, FILE *out)
{
    const struct nrg_attribution *a = r->attribution;
    fprintf(out, ",,0,%s,%s,,,,,,", p->kind, p->name);
    if (isfinite(p->energy_j))
        fprintf(out, "%.12g", p->energy_j);
    fputc(',', out); /* energy_self_j */
    real_cell(out, p->low_j);
    real_cell(out, p->high_j);
    fputc(',', out); /* energy_per_call_j */
    real_cell(out, p->energy_j / a->total_j);
    fputs(",,,,,,,,,,", out);
    scale_cells(a, p->low_j, p->high_j, out); /* the total has it already */
    if (r->cycles)
        fputs(",,,,,", out);
    for (size_t d = 0; d < a->n_domains; d++)
        real_cell(out,
                  *(const double *)(const void *)((const char *)&a->domains[d] + p->of_domain));
    for (size_t k = 0; k < counters->n; k++)
        fputc(',', out);
    fputc('\n', out);
}

int nrg_attribution_csv(const struct nrg_attribution_report *r, FILE *out)
{
    const struct nrg_attribution *a = r->attribution;
    struct counters counters;
    find_counters(a, &counters);
    print_csv_head(r, &counters, out);
    for (size_t i = 0; i < a->n_rows; i++)
        if (!nrg_row_left_out(r, i))
            print_csv_row(r, &counters, i, out);
    const struct part parts[] = {
        {"total", "total", a->total_j, a->total_low_j, a->total_high_j,
         offsetof(struct nrg_attribution_domain, total_j)},
        {"idle", "idle", a->idle_j, NAN, NAN, offsetof(struct nrg_attribution_domain, idle_j)},
        {"other", "other processes", a->other_processes_j, NAN, NAN,
         offsetof(struct nrg_attribution_domain, other_processes_j)},
        {"unattributed", "unattributed", a->unattributed_j, NAN, NAN,
         offsetof(struct nrg_attribution_domain, unattributed_j)},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        print_part(r, &counters, &parts[i], out);
    return 0;
}

int nrg_attribution_csv_cycles(const struct nrg_attribution_report *r, FILE *out)
{
    const struct nrg_attribution *a = r->attribution;
    if (!r->cycles)
        return -EINVAL;
    fputs("cycle,layer_name,layer_type,layer_power_including_idle_power_micro_watt,"
          "layer_power_excluding_idle_power_micro_watt,layer_run_time\n",
          out);
    for (size_t i = 0; i < r->cycles->n; i++) {
        const struct nrg_execution *e = &r->cycles->executions[i];
        const char *type = e->row < a->n_rows ? a->rows[e->row].detail : "";
        if (e->left_out)
            continue;
        fprintf(out, "%" PRId64, e->cycle);
        text_cell(out, e->row < a->n_rows ? a->rows[e->row].name : "");
        text_cell(out, type[0] ? type : "Unknown");
        real_cell(out, e->power_w * 1e6);
        real_cell(out, e->power_above_idle_w * 1e6);
        real_cell(out, e->run_time_s * 1e3);
        fputc('\n', out);
    }
    return 0;
}
