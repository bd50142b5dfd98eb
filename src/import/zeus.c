/*
 * The two logs of Zeus. ZeusMonitor(log_file=...) writes a line per measurement window, with the
 * joules of each GPU; `python -m zeus.monitor power` and PowerMonitor write watts over time:
 *
 *     start_time,window_name,elapsed_time,gpu0_energy         Time,0,1
 *     1681552800.1,epoch,12.34,1234.5                         1681552800.1,64.2,65.0
 *
 * Times are dates (of the text form: local time), or seconds of the machine's own clock in newer
 * versions. A line is written when its window ends. Windows may lie inside others: those are left
 * out of the sum, since the outer one contains them. Windows that overlap otherwise are refused.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "import/internal.h"
#include "sensors/virtual/replay_time.h"

#define FIRST_DATE_NS INT64_C(978307200000000000) /* 2001: before it, a clock since boot */
#define LONGEST_S     3e8
#define CLOCKS_NS     (100 * 1000) /* start and length are of two clocks */

enum { DEVICES = 64, WINDOWS = 1 << 20 };

static const struct {
    const char *before, *after, *domain;
} columns[] = {
    {"gpu", "_energy", "gpu"},
    {"cpu", "_energy", "package"},
    {"dram", "_energy", "dram"},
};

struct window {
    int64_t begin_ns, end_ns;
    bool inside; /* another one */
};

struct zeus {
    size_t n_cells, n;
    int time, elapsed; /* columns */
    struct {
        int column;
        struct nrg_channel channel;
    } devices[DEVICES];
    struct window *windows; /* of the first pass */
    size_t n_windows, cap_windows, at;
    uint64_t inside;
};

static void release(void *state)
{
    free(((struct zeus *)state)->windows);
}

/* ---- windows ---- */

static bool is_energy_log(const char *line, size_t len)
{
    return nrg_import_has_column(line, len, "start_time") &&
           nrg_import_has_column(line, len, "window_name") &&
           nrg_import_has_column(line, len, "elapsed_time");
}

static void add_device(struct zeus *z, size_t column, const char *name, const char *source)
{
    if (z->n == DEVICES)
        return;
    z->devices[z->n].column = (int)column;
    z->devices[z->n++].channel = nrg_import_energy_channel(name, NRG_MEASURED, source);
}

static int read_energy_header(struct zeus *z, const struct nrg_csv *cells, struct nrg_error *err)
{
    char name[40], source[80];
    z->n_cells = cells->n;
    z->n = 0;
    z->time = nrg_csv_find(cells, "start_time");
    z->elapsed = nrg_csv_find(cells, "elapsed_time");
    for (size_t i = 0; i < cells->n; i++)
        for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
            int number = nrg_import_numbered(cells->cells[i], columns[k].before, columns[k].after);
            if (number < 0)
                continue;
            snprintf(name, sizeof name, "%s-%d", columns[k].domain, number);
            snprintf(source, sizeof source, "Zeus: %s%d%s", columns[k].before, number,
                     columns[k].after);
            add_device(z, i, name, source);
        }
    return z->n ? 0
                : nrg_fail(err, -ENODATA, NULL,
                           "has no column of energy (gpu0_energy): Zeus saw no GPU");
}

/* A date as seconds or as text, or a clock since boot. */
static int read_time(struct nrg_import *im, struct nrg_cell cell, int64_t *t_ns)
{
    int rc = nrg_time_from_seconds(cell.text, cell.len, t_ns);
    if (!rc) {
        im->undated = *t_ns < FIRST_DATE_NS;
        return *t_ns >= 0 ? 0 : -EINVAL;
    }
    rc = nrg_time_from_iso(cell.text, cell.len, t_ns);
    *t_ns -= rc ? 0 : im->options->zone_offset_ns;
    return rc;
}

/* First pass: marks the windows inside this one, which ended before it did. */
static int note_window(struct nrg_import *im, struct window w, struct nrg_error *err)
{
    struct zeus *z = im->state;
    if (z->n_windows == WINDOWS)
        return nrg_fail(err, -E2BIG, NULL, "more than %d windows", WINDOWS);
    for (size_t i = z->n_windows; i-- > 0 && z->windows[i].end_ns > w.begin_ns + CLOCKS_NS;) {
        struct window *other = &z->windows[i];
        if (other->begin_ns < w.begin_ns - CLOCKS_NS && !other->inside)
            return nrg_fail(err, -EINVAL, NULL,
                            "overlaps another window without lying inside it: their energies "
                            "can't be told apart");
        z->inside += !other->inside;
        other->inside = true;
    }
    return nrg_append(&z->windows, &z->n_windows, &z->cap_windows, &w, sizeof w)
               ? nrg_fail(err, -ENOMEM, NULL, "out of memory")
               : 0;
}

static int read_energies(const struct zeus *z, const struct nrg_csv *cells,
                         struct nrg_import_energy *energies, struct nrg_error *err)
{
    for (size_t i = 0; i < z->n; i++) {
        energies[i].channel = z->devices[i].channel;
        if (nrg_cell_number(cells->cells[z->devices[i].column], &energies[i].energy_j) ||
            energies[i].energy_j < 0 || energies[i].energy_j > 1e12)
            return nrg_fail(err, -EINVAL, NULL, "%s: no energy in J", z->devices[i].channel.source);
    }
    return 0;
}

/* A line that is not whole must not be noted: others would be inside of what is never added. */
static int add_window(struct nrg_import *im, struct window w, const struct nrg_csv *cells,
                      struct nrg_error *err)
{
    struct zeus *z = im->state;
    struct nrg_import_energy energies[DEVICES];
    int rc = read_energies(z, cells, energies, err);
    if (!rc && !im->writing)
        rc = note_window(im, w, err);
    if (rc || (im->writing && z->at < z->n_windows && z->windows[z->at++].inside))
        return rc;
    if (im->have_time && im->writing && w.begin_ns < im->last_ns)
        w.begin_ns = im->last_ns;
    return nrg_import_interval(im, w.end_ns, w.end_ns - w.begin_ns, energies, z->n, err);
}

static int read_window(struct nrg_import *im, const struct nrg_csv *cells, struct nrg_error *err)
{
    struct zeus *z = im->state;
    struct window w = {0};
    double elapsed_s;
    if (cells->n < z->n_cells)
        return nrg_fail(err, -EINVAL, NULL, "has %zu cells instead of %zu", cells->n, z->n_cells);
    if (read_time(im, cells->cells[z->time], &w.begin_ns))
        return nrg_fail(err, -EINVAL, NULL, "start_time is neither seconds nor a date");
    if (nrg_cell_number(cells->cells[z->elapsed], &elapsed_s) || !(elapsed_s > 0) ||
        elapsed_s > LONGEST_S)
        return nrg_fail(err, -EINVAL, NULL, "elapsed_time is no time in seconds");
    w.end_ns = w.begin_ns + (int64_t)llround(elapsed_s * 1e9);
    return add_window(im, w, cells, err);
}

static int read_energy_line(struct nrg_import *im, char *line, size_t len, struct nrg_error *err)
{
    struct nrg_csv cells;
    bool header = is_energy_log(line, len);
    int rc = nrg_import_cells(&cells, line, len, err);
    if (rc)
        return rc;
    rc = header ? read_energy_header(im->state, &cells, err) : read_window(im, &cells, err);
    nrg_csv_release(&cells);
    return rc;
}

static int finish_windows(struct nrg_import *im, struct nrg_error *err)
{
    struct zeus *z = im->state;
    (void)err;
    z->at = 0;
    if (z->inside)
        nrg_import_note(im,
                        "%llu windows lie inside others, which contain their energy: they are "
                        "not added",
                        (unsigned long long)z->inside);
    return 0;
}

const struct nrg_import_format nrg_import_zeus_energy = {
    .name = "zeus",
    .match = is_energy_log,
    .record = read_energy_line,
    .finish = finish_windows,
    .means = true,
    .state_size = sizeof(struct zeus),
    .release = release,
};

/* ---- power ---- */

/* The number of the GPU that a column of power is about; -1: it is about something else. */
static int power_column(struct nrg_cell cell)
{
    int number = nrg_import_numbered(cell, "", "");
    return number >= 0 ? number : nrg_import_numbered(cell, "gpu", "_power");
}

static bool is_power_log(const char *line, size_t len)
{
    char copy[4096];
    struct nrg_csv cells;
    if (len < 6 || len >= sizeof copy || strncasecmp(line, "time,", 5) != 0)
        return false;
    memcpy(copy, line, len);
    if (nrg_import_cells(&cells, copy, len, NULL))
        return false;
    bool all = cells.n > 1;
    for (size_t i = 1; i < cells.n; i++)
        all &= power_column(cells.cells[i]) >= 0;
    nrg_csv_release(&cells);
    return all;
}

static int read_power_header(struct zeus *z, const struct nrg_csv *cells)
{
    z->n_cells = cells->n;
    z->n = 0;
    for (size_t i = 1; i < cells->n && z->n < DEVICES; i++) {
        struct nrg_channel c = {
            .quantity = NRG_POWER, .kind = NRG_GAUGE, .scale = 1e-3, .source = "Zeus: power"};
        snprintf(c.name, sizeof c.name, "gpu-%d", power_column(cells->cells[i]));
        z->devices[z->n].column = (int)i;
        z->devices[z->n++].channel = c;
    }
    return 0;
}

static int read_powers(struct nrg_import *im, const struct nrg_csv *cells, struct nrg_error *err)
{
    struct zeus *z = im->state;
    int64_t t_ns;
    if (cells->n != z->n_cells)
        return nrg_fail(err, -EINVAL, NULL, "has %zu cells instead of %zu", cells->n, z->n_cells);
    if (read_time(im, cells->cells[0], &t_ns))
        return nrg_fail(err, -EINVAL, NULL, "the time is neither seconds nor a date");
    int rc = nrg_import_begin(im, t_ns, 0, err);
    for (size_t i = 0; !rc && i < z->n; i++) {
        double power_w;
        if (nrg_cell_number(cells->cells[z->devices[i].column], &power_w) || power_w < 0 ||
            power_w > 1e6)
            return nrg_fail(err, -EINVAL, NULL, "cell %zu is no power in W", i + 2);
        if (!isnan(power_w))
            rc = nrg_import_value(im, &z->devices[i].channel, power_w, err);
    }
    return rc ? rc : nrg_import_end(im, err);
}

static int read_power_line(struct nrg_import *im, char *line, size_t len, struct nrg_error *err)
{
    struct nrg_csv cells;
    bool header = is_power_log(line, len);
    int rc = nrg_import_cells(&cells, line, len, err);
    if (rc)
        return rc;
    rc = header ? read_power_header(im->state, &cells) : read_powers(im, &cells, err);
    nrg_csv_release(&cells);
    return rc;
}

const struct nrg_import_format nrg_import_zeus_power = {
    .name = "zeus-power",
    .match = is_power_log,
    .record = read_power_line,
    .state_size = sizeof(struct zeus),
};
