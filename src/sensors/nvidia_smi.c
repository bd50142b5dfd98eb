/* See nvidia_smi.h. Two tables: what can be asked for, and the units in which it is written. */
#include "sensors/nvidia_smi.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "sensors/virtual/replay_time.h"

/* In order of preference where several say the same thing. */
static const struct nrg_smi_field fields[] = {
    {"power.draw.instant", "", NRG_POWER, 1e-3, "W"},
    {"power.draw", "", NRG_POWER, 1e-3, "W"}, /* since Ampere a mean of a second, but for GA100 */
    {"power.draw.average", "", NRG_POWER, 1e-3, "W"},
    {"utilization.gpu", ".util", NRG_UTILISATION, 1e-2, "%"},
    {"utilization.memory", ".mem-util", NRG_UTILISATION, 1e-2, "%"},
    {"utilization.encoder", ".enc", NRG_UTILISATION, 1e-2, "%"},
    {"utilization.decoder", ".dec", NRG_UTILISATION, 1e-2, "%"},
    {"clocks.sm", ".sm-clock", NRG_CLOCK, 1e6, "MHz"},
    {"clocks.current.sm", ".sm-clock", NRG_CLOCK, 1e6, "MHz"},
    {"clocks.mem", ".mem-clock", NRG_CLOCK, 1e6, "MHz"},
    {"clocks.current.memory", ".mem-clock", NRG_CLOCK, 1e6, "MHz"},
    {"memory.used", ".memory", NRG_BYTES, 1, "MiB"},
    {"temperature.gpu", ".temperature", NRG_TEMPERATURE, 1, "C"},
};
#define FIELDS (sizeof fields / sizeof *fields)

static const struct unit {
    const char *name;
    enum nrg_quantity quantity;
    double si;
} units[] = {
    {"W", NRG_POWER, 1},          {"mW", NRG_POWER, 1e-3},  {"kW", NRG_POWER, 1e3},
    {"%", NRG_UTILISATION, 1e-2}, {"MHz", NRG_CLOCK, 1e6},  {"GHz", NRG_CLOCK, 1e9},
    {"MiB", NRG_BYTES, 1048576},  {"KiB", NRG_BYTES, 1024}, {"GiB", NRG_BYTES, 1073741824},
    {"C", NRG_TEMPERATURE, 1},
};

/* What tells GPUs apart, the best first. */
static const char *const keys[] = {"index",      "uuid",   "gpu_uuid",  "pci.bus_id",
                                   "gpu_bus_id", "serial", "gpu_serial"};

static bool is_text(struct nrg_cell cell, const char *text)
{
    return cell.len == strlen(text) && !memcmp(cell.text, text, cell.len);
}

static struct nrg_cell trimmed(struct nrg_cell cell)
{
    nrg_trim(&cell.text, &cell.len);
    return cell;
}

static int unit_si(struct nrg_cell name, enum nrg_quantity quantity, double *si)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].quantity == quantity && is_text(name, units[i].name)) {
            *si = units[i].si;
            return 0;
        }
    return -EINVAL;
}

/* Splits "power.draw [W]"; a unit that is not there has length 0. */
static void split_title(struct nrg_cell cell, struct nrg_cell *name, struct nrg_cell *unit)
{
    *name = trimmed(cell);
    *unit = (struct nrg_cell){name->text, 0};
    const char *open = memchr(name->text, '[', name->len);
    if (!open || name->text[name->len - 1] != ']')
        return;
    *unit = (struct nrg_cell){open + 1, (size_t)(name->text + name->len - open) - 2};
    name->len = (size_t)(open - name->text);
    *name = trimmed(*name);
}

static bool has_value(const struct nrg_smi_columns *columns, const char *suffix)
{
    for (size_t i = 0; i < columns->n_values; i++)
        if (!strcmp(columns->values[i].field->suffix, suffix))
            return true;
    return false;
}

static int add_value(struct nrg_smi_columns *columns, const struct nrg_smi_field *field, int column,
                     struct nrg_cell unit)
{
    double si;
    if (has_value(columns, field->suffix) || columns->n_values == NRG_SMI_VALUES)
        return 0;
    if (!unit.len)
        unit = (struct nrg_cell){field->unit, strlen(field->unit)};
    if (unit_si(unit, field->quantity, &si))
        return -EINVAL;
    size_t n = columns->n_values++;
    columns->values[n].column = column;
    columns->values[n].unit = si;
    columns->values[n].field = field;
    return 0;
}

static int add_field(const struct nrg_csv *cells, const struct nrg_smi_field *field,
                     struct nrg_smi_columns *columns)
{
    for (size_t i = 0; i < cells->n; i++) {
        struct nrg_cell name, unit;
        split_title(cells->cells[i], &name, &unit);
        if (is_text(name, field->query))
            return add_value(columns, field, (int)i, unit);
    }
    return 0;
}

static void find_key(const struct nrg_csv *cells, struct nrg_smi_columns *columns)
{
    columns->gpu = -1;
    for (size_t i = 0; columns->gpu < 0 && i < sizeof keys / sizeof *keys; i++) {
        columns->gpu = nrg_csv_find(cells, keys[i]);
        columns->gpu_is_index = i == 0;
    }
}

int nrg_smi_read_header(const struct nrg_csv *cells, struct nrg_smi_columns *columns)
{
    int rc = 0;
    *columns = (struct nrg_smi_columns){.n_cells = cells->n};
    columns->time = nrg_csv_find(cells, "timestamp");
    find_key(cells, columns);
    for (size_t i = 0; !rc && i < FIELDS; i++)
        rc = add_field(cells, &fields[i], columns);
    return rc || columns->n_values ? rc : -EINVAL;
}

static bool is_index(struct nrg_cell cell)
{
    int64_t number;
    return !nrg_parse_i64(cell.text, cell.len, &number) && number >= 0 && number < 1024;
}

int nrg_smi_guess_columns(const struct nrg_csv *cells, struct nrg_smi_columns *columns)
{
    int64_t t_ns;
    *columns = (struct nrg_smi_columns){.time = -1, .gpu = -1, .n_cells = cells->n};
    for (size_t i = 0; i < cells->n; i++) {
        struct nrg_cell cell = trimmed(cells->cells[i]);
        bool watts = cell.len > 2 && !memcmp(cell.text + cell.len - 2, " W", 2);
        if (!nrg_smi_read_time(cell, &t_ns))
            columns->time = (int)i;
        else if (watts && (columns->n_values ||
                           add_value(columns, &fields[0], (int)i, (struct nrg_cell){"W", 1})))
            return -EINVAL; /* power.draw, or power.limit? */
        else if (cell.len > 4 && !memcmp(cell.text, "GPU-", 4))
            columns->gpu = (int)i;
        else if (columns->gpu < 0 && i < 2 && is_index(cell)) {
            columns->gpu = (int)i;
            columns->gpu_is_index = true;
        }
    }
    if (columns->gpu >= 0)
        columns->gpu_is_index = is_index(trimmed(cells->cells[columns->gpu]));
    return columns->time >= 0 && columns->n_values ? 0 : -EINVAL;
}

int nrg_smi_read_time(struct nrg_cell cell, int64_t *t_ns)
{
    char text[40];
    cell = trimmed(cell);
    if (cell.len < 11 || cell.len >= sizeof text)
        return -EINVAL;
    snprintf(text, sizeof text, "%.*s", (int)cell.len, cell.text);
    if (text[4] == '/' && text[7] == '/')
        text[4] = text[7] = '-';
    return nrg_time_from_iso(text, strlen(text), t_ns);
}

static bool is_missing(struct nrg_cell cell)
{
    return !cell.len || cell.text[0] == '[' || is_text(cell, "N/A") || is_text(cell, "ERR!");
}

int nrg_smi_read_value(const struct nrg_smi_columns *columns, size_t k, struct nrg_cell cell,
                       double *value)
{
    double unit = columns->values[k].unit;
    cell = trimmed(cell);
    if (is_missing(cell))
        return -ENODATA;
    size_t digits = 0;
    while (digits < cell.len && strchr("0123456789.+-eE", cell.text[digits]))
        digits++;
    struct nrg_cell rest = trimmed((struct nrg_cell){cell.text + digits, cell.len - digits});
    if (rest.len && unit_si(rest, columns->values[k].field->quantity, &unit))
        return -EINVAL;
    if (nrg_parse_double(cell.text, digits, value) || *value < 0)
        return -EINVAL;
    *value *= unit;
    return 0;
}

#define QUICK_NS (50 * NRG_NS_PER_MS) /* nvidia-smi is done with a GPU */

/* Of the first moment that has several. */
static size_t lines_of_one_moment(const int64_t *spacings_ns, size_t n)
{
    size_t first = 0, lines = 1;
    while (first < n && spacings_ns[first] != 0)
        first++;
    while (first < n && spacings_ns[first++] == 0)
        lines++;
    return lines;
}

size_t nrg_smi_lines_at_once(const int64_t *spacings_ns, size_t n)
{
    size_t last = 0, length = 0, bursts = 0;
    int64_t least_ns = INT64_MAX;
    for (size_t i = 0; i < n; i++)
        least_ns = spacings_ns[i] < least_ns ? spacings_ns[i] : least_ns;
    if (n && least_ns == 0)
        return lines_of_one_moment(spacings_ns, n);
    for (size_t i = 0; i < n; i++) {
        if (spacings_ns[i] <= 4 * least_ns + NRG_NS_PER_MS)
            continue;
        size_t lines = bursts++ ? i - last : i + 1;
        if (bursts > 1 && lines != length)
            return 0;
        length = lines;
        last = i;
    }
    size_t enough = least_ns < QUICK_NS ? 2 : 8; /* slow lines may stall twice by chance */
    return bursts >= enough && length >= 2 ? length : 0;
}
