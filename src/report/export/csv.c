/*
 * CSV for pandas, spreadsheets and R: export/formats.h, docs/export.md. The long form loses
 * nothing: one row per reading, in order of time, counters unwrapped and counted from their first
 * reading, missing readings left out. The wide form is means over a grid of time. Times are printed
 * from integers, so no nanosecond is lost in a double. Estimated columns of the wide form say so in
 * their name, because a cell can't.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/mem.h"
#include "energy/timeline.h"
#include "record/read/cursor.h"
#include "record/read/still.h"
#include "report/export/formats.h"
#include "report/export/internal.h"

int nrg_export_origin_ns(struct nrg_recording *recording, int64_t *origin_ns, struct nrg_error *err)
{
    int64_t last_ns, begin_ns;
    if (nrg_recording_extent(recording, origin_ns, &last_ns))
        return nrg_fail(err, -ENODATA, nrg_recording_path(recording), "holds no readings");
    if (!nrg_recording_integer(recording, "begin_ns", &begin_ns) && begin_ns > 0 &&
        begin_ns < *origin_ns)
        *origin_ns = begin_ns;
    return 0;
}

static void print_time(FILE *out, int64_t t_ns)
{
    uint64_t size = t_ns < 0 ? 0 - (uint64_t)t_ns : (uint64_t)t_ns;
    fprintf(out, "%s%" PRIu64 ".%09" PRIu64, t_ns < 0 ? "-" : "", size / 1000000000,
            size % 1000000000);
}

static void print_times(const struct nrg_recording *recording, FILE *out, int64_t t_ns,
                        int64_t origin_ns)
{
    int64_t real_ns = nrg_recording_realtime_ns(recording, t_ns);
    print_time(out, t_ns - origin_ns);
    fputc(',', out);
    if (real_ns)
        print_time(out, real_ns);
}

static int end_export(struct nrg_recording *recording, int rc, FILE *out, struct nrg_error *err)
{
    if (rc)
        return nrg_fail(err, rc, nrg_recording_path(recording), "cannot be read: %s",
                        strerror(-rc));
    if (fflush(out) || ferror(out))
        return nrg_fail(err, -EIO, NULL, "cannot write: %s", strerror(errno));
    return 0;
}

double nrg_export_value(const struct nrg_recording *recording, const struct nrg_recorded_channel *r,
                        struct nrg_export_sum *sum, int64_t t_ns, int64_t raw)
{
    const struct nrg_channel *c = &r->channel;
    if (c->kind != NRG_COUNTER)
        return (double)raw * c->scale;
    if (nrg_is_still(recording, r, t_ns))
        return sum->value;
    double step =
        sum->seen ? nrg_counted_step(recording, r, sum->raw, raw, sum->t_ns, t_ns, NULL) : 0;
    if (!sum->seen)
        *sum = (struct nrg_export_sum){.seen = true, .first_raw = raw};
    sum->unknown_steps += step < 0;
    sum->value += step > 0 ? step * c->scale : 0;
    sum->raw = raw;
    sum->t_ns = t_ns;
    return sum->value;
}

static void print_reading(const struct nrg_recording *recording, FILE *out,
                          const struct nrg_channel *c, int64_t t_ns, int64_t origin_ns,
                          double value)
{
    print_times(recording, out, t_ns, origin_ns);
    fputc(',', out);
    nrg_csv_cell(out, c->name);
    fprintf(out, ",%s,%s,%.15g,%s\n", nrg_quantity_name(c->quantity),
            nrg_quantity_unit(c->quantity), value, nrg_provenance_name(c->provenance));
}

int nrg_export_csv_long(struct nrg_recording *recording, FILE *out, struct nrg_error *err)
{
    size_t n;
    const struct nrg_recorded_channel *channels = nrg_recording_channels(recording, &n);
    struct nrg_export_sum *sums = nrg_calloc(n + 1, sizeof *sums);
    struct nrg_cursor *cursor = NULL;
    struct nrg_cursor_row row;
    int64_t origin_ns = 0;
    int rc = nrg_export_origin_ns(recording, &origin_ns, err);
    if (rc) {
        free(sums);
        return rc;
    }
    rc = sums ? nrg_cursor_open(recording, 1u << NRG_SAMPLES, &cursor) : -ENOMEM;
    for (size_t i = 0; !rc && i < n; i++)
        rc = nrg_stills_find(recording, channels[i].series);
    fputs("time_s,unix_time_s,channel,quantity,unit,value,provenance\n", out);
    while (!rc && !ferror(out) && (rc = nrg_cursor_next(cursor, &row)) > 0) {
        rc = 0;
        for (size_t i = 0; i < n; i++) {
            int64_t raw =
                channels[i].series == row.series ? row.cells[channels[i].column] : NRG_MISSING;
            const struct nrg_channel *c = &channels[i].channel;
            if (raw != NRG_MISSING)
                print_reading(recording, out, c, row.t_ns, origin_ns,
                              nrg_export_value(recording, &channels[i], &sums[i], row.t_ns, raw));
        }
    }
    nrg_cursor_free(cursor);
    free(sums);
    return end_export(recording, rc, out, err);
}

struct wide {
    struct nrg_recording *recording;
    const struct nrg_recorded_channel *channels;
    size_t n;
    bool *shown;
    int64_t origin_ns;
    FILE *out;
};

/* What a column of means is called after the colon. */
static const char *column_unit(const struct nrg_channel *c)
{
    static const char *const units[NRG_QUANTITIES] = {
        [NRG_ENERGY] = "power_w",    [NRG_POWER] = "power_w",
        [NRG_VOLTAGE] = "voltage_v", [NRG_CURRENT] = "current_a",
        [NRG_UTILISATION] = "util",  [NRG_BYTES] = "bytes",
        [NRG_CLOCK] = "clock_hz",    [NRG_TEMPERATURE] = "temperature_c",
        [NRG_SECONDS] = "per_s",     [NRG_APPARENT] = "apparent_va",
        [NRG_COUNT] = "count"};
    return units[c->quantity];
}

bool nrg_export_is_double(const struct nrg_recorded_channel *channels, size_t n, size_t i)
{
    const struct nrg_channel *c = &channels[i].channel;
    for (size_t k = 0; c->quantity == NRG_POWER && k < n; k++)
        if (channels[k].channel.quantity == NRG_ENERGY &&
            !strcmp(channels[k].channel.name, c->name))
            return true;
    return false;
}

static void print_header(struct wide *w)
{
    fputs("time_s,unix_time_s", w->out);
    for (size_t i = 0; i < w->n; i++) {
        const struct nrg_channel *c = &w->channels[i].channel;
        char name[96];
        w->shown[i] = !nrg_export_is_double(w->channels, w->n, i);
        if (!w->shown[i])
            continue;
        snprintf(name, sizeof name, "%s:%s%s", c->name,
                 c->provenance == NRG_ESTIMATED ? "estimated_" : "", column_unit(c));
        fputc(',', w->out);
        nrg_csv_cell(w->out, name);
    }
    fputc('\n', w->out);
}

static int print_bin(void *arg, const struct nrg_bin *bin)
{
    struct wide *w = arg;
    print_times(w->recording, w->out, bin->begin_ns, w->origin_ns);
    for (size_t i = 0; i < w->n; i++) {
        if (!w->shown[i])
            continue;
        double mean = nrg_bin_mean(&bin->cells[i]);
        fputc(',', w->out);
        if (!isnan(mean))
            fprintf(w->out, "%.9g", mean);
    }
    fputc('\n', w->out);
    return ferror(w->out) ? -EIO : 0;
}

int nrg_export_csv_wide(struct nrg_recording *recording, int64_t period_ns, FILE *out,
                        struct nrg_error *err)
{
    struct wide w = {.recording = recording, .out = out};
    struct nrg_span_ns span = {0};
    w.channels = nrg_recording_channels(recording, &w.n);
    int rc = nrg_export_origin_ns(recording, &w.origin_ns, err);
    if (rc)
        return rc;
    nrg_recording_extent(recording, &span.begin_ns, &span.end_ns);
    span.begin_ns = w.origin_ns;
    const struct nrg_bins_options options = {.spans = &span, .n_spans = 1, .period_ns = period_ns};
    w.shown = nrg_calloc(w.n + 1, sizeof *w.shown);
    if (!w.shown)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    print_header(&w);
    rc = nrg_bins_make(recording, &options, print_bin, &w, err);
    free(w.shown);
    return rc ? rc : end_export(recording, 0, out, err);
}

static void print_count(FILE *out, int64_t value)
{
    fputc(',', out);
    if (value != NRG_MISSING)
        fprintf(out, "%" PRId64, value);
}

static const struct nrg_process_info *find_process(const struct nrg_process_info *infos, size_t n,
                                                   int64_t id)
{
    /* Ids are in order and mostly without holes. */
    if (id >= 1 && (size_t)id <= n && infos[id - 1].id == id)
        return &infos[id - 1];
    for (size_t i = 0; i < n; i++)
        if (infos[i].id == id)
            return &infos[i];
    return NULL;
}

/* Cells after pid and command, by kind of row; absent ones stay empty. */
static void print_process_cells(FILE *out, const struct nrg_cursor_row *row)
{
    const int64_t *c = row->cells;
    if (row->kind == NRG_PROCESSES) {
        fputc(',', out);
        if (c[NRG_P_CPU_NS] != NRG_MISSING)
            print_time(out, c[NRG_P_CPU_NS]);
        print_count(out, c[NRG_P_RSS_BYTES]);
        print_count(out, c[NRG_P_THREADS]);
        fputs(",,,,,,,\n", out);
    } else if (row->kind == NRG_PROCESS_MEMORY) {
        fputs(",,,", out);
        for (int i = NRG_M_PSS_BYTES; i < NRG_M_COLUMNS; i++)
            print_count(out, c[i]);
        fputs(",,,\n", out);
    } else {
        fputs(",,,,,,,", out);
        print_count(out, c[NRG_G_GPU]);
        fputc(',', out);
        if (c[NRG_G_SM_PPM] != NRG_MISSING)
            fprintf(out, "%.6g", (double)c[NRG_G_SM_PPM] / 1e6);
        print_count(out, c[NRG_G_MEMORY_BYTES]);
        fputc('\n', out);
    }
}

int nrg_export_csv_processes(struct nrg_recording *recording, FILE *out, struct nrg_error *err)
{
    size_t n;
    const struct nrg_process_info *infos = nrg_recording_processes(recording, &n);
    struct nrg_cursor *cursor = NULL;
    struct nrg_cursor_row row;
    int64_t origin_ns = 0;
    int rc = nrg_export_origin_ns(recording, &origin_ns, err);
    if (rc)
        return rc;
    rc = nrg_cursor_open(recording,
                         1u << NRG_PROCESSES | 1u << NRG_PROCESS_MEMORY | 1u << NRG_GPU_PROCESSES,
                         &cursor);
    fputs("time_s,unix_time_s,pid,command,cpu_s,rss_bytes,threads,pss_bytes,uss_bytes,read_bytes,"
          "written_bytes,gpu,gpu_utilisation,gpu_memory_bytes\n",
          out);
    while (!rc && !ferror(out) && (rc = nrg_cursor_next(cursor, &row)) > 0) {
        bool gpu = row.kind == NRG_GPU_PROCESSES;
        const struct nrg_process_info *p = gpu ? NULL : find_process(infos, n, row.cells[0]);
        rc = 0;
        print_times(recording, out, row.t_ns, origin_ns);
        fprintf(
            out, ",%" PRId64 ",",
            gpu ? (row.cells[NRG_G_PID] > 0 ? row.cells[NRG_G_PID] : row.cells[NRG_G_DEVICE_PID])
                : (p ? (int64_t)p->pid : 0));
        nrg_csv_cell(out, p ? (p->command[0] ? p->command : p->name) : "");
        print_process_cells(out, &row);
    }
    nrg_cursor_free(cursor);
    return end_export(recording, rc, out, err);
}
