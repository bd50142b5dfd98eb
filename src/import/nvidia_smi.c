/*
 * What `nvidia-smi --query-gpu=timestamp,power.draw,... --format=csv -l 1` wrote (nvidia_smi.h has
 * the cells). Every line is a record of one GPU at its own time. Power is a gauge; nvidia-smi
 * prints no energy.
 *
 * GPUs are told apart by index; or by uuid, bus id or serial number, and then counted in the order
 * in which they appear. A file without any of these is one GPU's, unless two of its lines are of
 * one moment or they come in bursts of the same number: then they are of several GPUs, and it can't
 * be known which.
 *
 * A header in the middle is another run appended to the file. Refuses files without `timestamp`,
 * cells that are no value of their column, and lines of another number of cells.
 */
#include "sensors/nvidia_smi.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "import/internal.h"

enum { MAX_GPUS = 64, KEY = 48, SPACINGS = 512 };

struct smi {
    struct nrg_smi_columns columns;
    bool have_columns;
    char gpus[MAX_GPUS][KEY];
    size_t n_gpus;
    int64_t spacings_ns[SPACINGS]; /* between the first lines of the file */
    size_t n_spacings;
};

static bool is_smi(const char *line, size_t len)
{
    char copy[4096];
    struct nrg_csv cells;
    struct nrg_smi_columns columns;
    if (!memchr(line, ',', len) || len >= sizeof copy)
        return false;
    memcpy(copy, line, len);
    if (nrg_import_cells(&cells, copy, len, NULL))
        return false;
    bool found = !nrg_smi_read_header(&cells, &columns) || !nrg_smi_guess_columns(&cells, &columns);
    nrg_csv_release(&cells);
    return found;
}

/* The number of the GPU that a line is about, or -errno. */
static int gpu_of(struct smi *smi, const struct nrg_csv *cells, struct nrg_error *err)
{
    if (smi->columns.gpu < 0)
        return 0;
    struct nrg_cell cell = cells->cells[smi->columns.gpu];
    int64_t index;
    char key[KEY];
    nrg_trim(&cell.text, &cell.len);
    if (smi->columns.gpu_is_index) {
        bool good = !nrg_parse_i64(cell.text, cell.len, &index) && index >= 0 && index < 1024;
        return good ? (int)index : nrg_fail(err, -EINVAL, NULL, "the GPU's index is no number");
    }
    nrg_copy_clean(key, sizeof key, cell.text, cell.len);
    for (size_t i = 0; i < smi->n_gpus; i++)
        if (!strcmp(smi->gpus[i], key))
            return (int)i;
    if (smi->n_gpus == MAX_GPUS)
        return nrg_fail(err, -E2BIG, NULL, "more than %d GPUs", MAX_GPUS);
    nrg_copy(smi->gpus[smi->n_gpus], KEY, key);
    return (int)smi->n_gpus++;
}

static int add_value(struct nrg_import *im, int gpu, size_t k, const struct nrg_csv *cells,
                     struct nrg_error *err)
{
    const struct smi *smi = im->state;
    const struct nrg_smi_field *field = smi->columns.values[k].field;
    struct nrg_cell cell = cells->cells[smi->columns.values[k].column];
    struct nrg_channel c = {.quantity = field->quantity, .kind = NRG_GAUGE, .scale = field->scale};
    double value;
    int rc = nrg_smi_read_value(&smi->columns, k, cell, &value);
    if (rc == -ENODATA)
        return 0;
    if (rc)
        return nrg_fail(err, rc, NULL, "\"%.*s\" is no %s", (int)(cell.len < 40 ? cell.len : 40),
                        cell.text, field->query);
    snprintf(c.name, sizeof c.name, "gpu-%d%s", gpu, field->suffix);
    snprintf(c.source, sizeof c.source, "nvidia-smi: %s", field->query);
    return nrg_import_value(im, &c, value, err);
}

static int read_values(struct nrg_import *im, const struct nrg_csv *cells, struct nrg_error *err)
{
    struct smi *smi = im->state;
    int64_t t_ns;
    if (cells->n != smi->columns.n_cells)
        return nrg_fail(err, -EINVAL, NULL, "has %zu cells instead of %zu", cells->n,
                        smi->columns.n_cells);
    if (nrg_smi_read_time(cells->cells[smi->columns.time], &t_ns))
        return nrg_fail(err, -EINVAL, NULL, "the timestamp is not YYYY/mm/dd HH:MM:SS.fff");
    if (im->have_time && !im->writing && smi->n_spacings < SPACINGS)
        smi->spacings_ns[smi->n_spacings++] = t_ns - im->options->zone_offset_ns - im->last_ns;
    int gpu = gpu_of(smi, cells, err);
    int rc = gpu < 0 ? gpu : nrg_import_begin(im, t_ns - im->options->zone_offset_ns, 0, err);
    for (size_t k = 0; !rc && k < smi->columns.n_values; k++)
        rc = add_value(im, gpu, k, cells, err);
    return rc ? rc : nrg_import_end(im, err);
}

static int read_header(struct nrg_import *im, const struct nrg_smi_columns *columns,
                       struct nrg_error *err)
{
    struct smi *smi = im->state;
    smi->columns = *columns;
    smi->have_columns = true;
    if (columns->time < 0)
        return nrg_fail(err, -ENODATA, NULL,
                        "has no times: add timestamp to nvidia-smi's --query-gpu");
    return nrg_import_end_segment(im);
}

static int read_line(struct nrg_import *im, char *line, size_t len, struct nrg_error *err)
{
    struct smi *smi = im->state;
    struct nrg_smi_columns columns;
    struct nrg_csv cells;
    int rc = nrg_import_cells(&cells, line, len, err);
    if (rc)
        return rc;
    if (!nrg_smi_read_header(&cells, &columns)) {
        rc = read_header(im, &columns, err);
    } else {
        if (!smi->have_columns)
            rc = nrg_smi_guess_columns(&cells, &smi->columns);
        smi->have_columns = !rc;
        rc = rc ? nrg_fail(err, rc, NULL, "has no header and is no line with a date and one power")
                : read_values(im, &cells, err);
    }
    nrg_csv_release(&cells);
    return rc;
}

static int check_gpus(struct nrg_import *im, struct nrg_error *err)
{
    struct smi *smi = im->state;
    size_t burst = smi->columns.gpu < 0 && !im->writing
                       ? nrg_smi_lines_at_once(smi->spacings_ns, smi->n_spacings)
                       : 0;
    smi->have_columns = false;
    if (burst)
        return nrg_fail(err, -EINVAL, NULL,
                        "its lines come %zu at a time, as of %zu GPUs, and nothing tells which is "
                        "whose: add index to nvidia-smi's --query-gpu",
                        burst, burst);
    return 0;
}

const struct nrg_import_format nrg_import_nvidia_smi = {
    .name = "nvidia-smi",
    .match = is_smi,
    .record = read_line,
    .finish = check_gpus,
    .takes_turns = true,
    .state_size = sizeof(struct smi),
};
