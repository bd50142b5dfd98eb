/*
 * CodeCarbon's emissions.csv. A row is a tracker's interval: `duration` seconds that end at
 * `timestamp` (local time, whole seconds), with kWh of CPU, GPUs and memory; the oldest versions
 * have their sum alone. A tracker that was flushed has several rows, each with all that was used
 * since its start: what a row adds to the one before is counted. Rows of tasks
 * (emissions_base_*.csv, with task_name) follow each other and have their own energies. Dates are
 * cut to the second, so that a row may seem to begin before the one before ended: it is moved
 * behind it.
 *
 * Provenance: memory is always a model (watts per module or GB); GPUs are counters of the driver.
 * The CPU is RAPL, Apple's powermetrics, or a share of the TDP, and no column tells which: it is
 * taken as estimated. A constant of the TDP may be several times what an idle processor draws, or
 * half of what a busy one does; that is the band.
 *
 * Refuses trackers that ran at the same time: both measured the whole machine, and their sum would
 * count it twice.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "import/internal.h"
#include "sensors/virtual/replay_time.h"

#define J_PER_KWH   3.6e6
#define ROUNDING_NS NRG_NS_PER_S       /* of a date */
#define SAME_NS     (2 * NRG_NS_PER_S) /* starts of one tracker agree to that */
#define LONGEST_S   3e8
#define CPU_LOW     0.8
#define CPU_HIGH    1.0
#define MEMORY_LOW  0.7
#define MEMORY_HIGH 1.0

enum { ID = 64, GPU = 1, PARTS = 3 };

static const struct part {
    const char *column, *name, *source;
    enum nrg_provenance provenance;
    double low, high;
} parts[PARTS + 1] = {
    {"cpu_energy", "package-0", "CodeCarbon's cpu_energy: RAPL, or a model of the TDP",
     NRG_ESTIMATED, CPU_LOW, CPU_HIGH},
    {"gpu_energy", "gpu-0", "CodeCarbon's gpu_energy: all GPUs", NRG_DERIVED, 0, 0},
    {"ram_energy", "dram-0", "CodeCarbon's ram_energy: a model", NRG_ESTIMATED, MEMORY_LOW,
     MEMORY_HIGH},
    {"energy_consumed", "tracked", "CodeCarbon's energy_consumed: CPU, GPUs and memory",
     NRG_ESTIMATED, CPU_LOW, CPU_HIGH},
};

struct carbon {
    bool have_header;
    size_t n_cells;
    int timestamp, run_id, duration, gpu_count, task, energies[PARTS + 1]; /* columns; -1: none */
    /* of the row before */
    bool any;
    char id[ID];
    int64_t start_ns, end_ns;
    double energies_j[PARTS + 1];
    uint64_t continued; /* rows that go on where another ended */
};

static bool is_codecarbon(const char *line, size_t len)
{
    return nrg_import_has_column(line, len, "duration") &&
           nrg_import_has_column(line, len, "emissions") &&
           nrg_import_has_column(line, len, "energy_consumed") &&
           nrg_import_has_column(line, len, "timestamp");
}

static void read_header(struct carbon *c, const struct nrg_csv *cells)
{
    *c = (struct carbon){.have_header = true, .n_cells = cells->n, .continued = c->continued};
    c->timestamp = nrg_csv_find(cells, "timestamp");
    c->run_id = nrg_csv_find(cells, "run_id");
    c->duration = nrg_csv_find(cells, "duration");
    c->gpu_count = nrg_csv_find(cells, "gpu_count");
    c->task = nrg_csv_find(cells, "task_name");
    for (size_t i = 0; i <= PARTS; i++)
        c->energies[i] = nrg_csv_find(cells, parts[i].column);
    bool apart = c->energies[0] >= 0 || c->energies[1] >= 0 || c->energies[2] >= 0;
    if (apart)
        c->energies[PARTS] = -1; /* their sum */
}

/* A machine without GPUs has an empty gpu_count and 0 kWh. */
static bool has_no_gpu(const struct carbon *c, const struct nrg_csv *cells)
{
    double count;
    return c->gpu_count >= 0 && !nrg_cell_number(cells->cells[c->gpu_count], &count) &&
           !(count > 0);
}

struct row {
    char id[ID];
    int64_t start_ns, end_ns;
    double energies_j[PARTS + 1]; /* NAN: missing */
};

static int read_energies(const struct carbon *c, const struct nrg_csv *cells, struct row *row,
                         struct nrg_error *err)
{
    for (size_t i = 0; i <= PARTS; i++) {
        row->energies_j[i] = NAN;
        if (c->energies[i] < 0)
            continue;
        double kwh;
        if (nrg_cell_number(cells->cells[c->energies[i]], &kwh) || kwh < 0 || kwh > 1e9)
            return nrg_fail(err, -EINVAL, NULL, "%s is no energy in kWh", parts[i].column);
        row->energies_j[i] = kwh * J_PER_KWH;
    }
    if (row->energies_j[GPU] == 0 && has_no_gpu(c, cells))
        row->energies_j[GPU] = NAN;
    return 0;
}

static int read_row(const struct nrg_import *im, const struct nrg_csv *cells, struct row *row,
                    struct nrg_error *err)
{
    const struct carbon *c = im->state;
    double duration_s;
    if (cells->n != c->n_cells)
        return nrg_fail(err, -EINVAL, NULL, "has %zu cells instead of %zu", cells->n, c->n_cells);
    struct nrg_cell stamp = cells->cells[c->timestamp];
    if (nrg_time_from_iso(stamp.text, stamp.len, &row->end_ns))
        return nrg_fail(err, -EINVAL, NULL, "timestamp is not YYYY-mm-ddTHH:MM:SS");
    if (nrg_cell_number(cells->cells[c->duration], &duration_s) || !(duration_s >= 0) ||
        duration_s > LONGEST_S)
        return nrg_fail(err, -EINVAL, NULL, "duration is no time in seconds");
    row->end_ns -= im->options->zone_offset_ns;
    row->start_ns = row->end_ns - (int64_t)llround(duration_s * 1e9);
    row->id[0] = '\0';
    if (c->run_id >= 0)
        nrg_copy_clean(row->id, sizeof row->id, cells->cells[c->run_id].text,
                       cells->cells[c->run_id].len);
    return read_energies(c, cells, row, err);
}

/* Whether the row before is the beginning of this one. */
static bool continues(const struct carbon *c, const struct row *row)
{
    if (c->task >= 0 || !c->any || strcmp(c->id, row->id) != 0 || row->end_ns < c->end_ns ||
        llabs(row->start_ns - c->start_ns) > SAME_NS)
        return false;
    for (size_t i = 0; i <= PARTS; i++)
        if (row->energies_j[i] < c->energies_j[i])
            return false;
    return true;
}

static struct nrg_import_energy energy_of(const struct part *part, double energy_j)
{
    struct nrg_import_energy e = {
        .channel = nrg_import_energy_channel(part->name, part->provenance, part->source),
        .energy_j = energy_j};
    e.channel.error_low = part->low;
    e.channel.error_high = part->high;
    return e;
}

/* What earlier rows of the same tracker said; rows may leave a part out. */
static double known_before(const struct carbon *c, size_t part, bool more)
{
    return more && !isnan(c->energies_j[part]) ? c->energies_j[part] : 0;
}

static int add_row(struct nrg_import *im, const struct row *row, struct nrg_error *err)
{
    struct carbon *c = im->state;
    struct nrg_import_energy energies[PARTS + 1];
    bool more = continues(c, row);
    int64_t begin_ns = more ? c->end_ns : row->start_ns, end_ns = row->end_ns;
    if (!more && c->any && begin_ns < c->end_ns - ROUNDING_NS)
        return nrg_fail(err, -ERANGE, NULL,
                        "began %.0f s before the row before ended: trackers that ran at the same "
                        "time count the machine twice; keep the rows of one of them",
                        (double)(c->end_ns - begin_ns) / 1e9);
    if (c->any && begin_ns < c->end_ns) {
        end_ns += c->end_ns - begin_ns;
        begin_ns = c->end_ns;
    }
    for (size_t i = 0; i <= PARTS; i++)
        energies[i] = energy_of(&parts[i], row->energies_j[i] - known_before(c, i, more));
    c->continued += more && !im->writing;
    c->any = true;
    nrg_copy(c->id, sizeof c->id, row->id);
    c->start_ns = row->start_ns;
    for (size_t i = 0; i <= PARTS; i++)
        c->energies_j[i] =
            isnan(row->energies_j[i]) ? known_before(c, i, more) : row->energies_j[i];
    end_ns = end_ns > begin_ns ? end_ns : begin_ns + 1;
    c->end_ns = end_ns;
    return nrg_import_interval(im, end_ns, end_ns - begin_ns, energies, PARTS + 1, err);
}

static int read_line(struct nrg_import *im, char *line, size_t len, struct nrg_error *err)
{
    struct carbon *c = im->state;
    struct nrg_csv cells;
    struct row row;
    bool header = is_codecarbon(line, len);
    int rc = nrg_import_cells(&cells, line, len, err);
    if (rc)
        return rc;
    if (header)
        read_header(c, &cells);
    else
        rc = read_row(im, &cells, &row, err);
    if (!rc && !header)
        rc = add_row(im, &row, err);
    nrg_csv_release(&cells);
    return rc;
}

static int finish(struct nrg_import *im, struct nrg_error *err)
{
    struct carbon *c = im->state;
    (void)err;
    if (c->continued)
        nrg_import_note(im,
                        "%llu rows go on where the row before ended (flushes of one tracker): "
                        "what they add is counted",
                        (unsigned long long)c->continued);
    *c = (struct carbon){.continued = c->continued};
    return 0;
}

const struct nrg_import_format nrg_import_codecarbon = {
    .name = "codecarbon",
    .match = is_codecarbon,
    .record = read_line,
    .finish = finish,
    .means = true,
    .state_size = sizeof(struct carbon),
};
