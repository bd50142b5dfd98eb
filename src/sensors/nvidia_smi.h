/*
 * The CSV of nvidia-smi (--query-gpu=... --format=csv), cell by cell:
 *
 *     index, timestamp, power.draw [W], memory.used [MiB]
 *     0, 2025/04/09 08:59:06.356, 63.86 W, 2163 MiB
 *
 * Units stand in the header, in the cells, or (nounits) in the header alone. Without a header
 * (noheader) a line is still known by its date and its only cell in watts. What a GPU does not
 * have is "[N/A]", "[Not Supported]" and the like: missing, never 0.
 *
 * Columns are named by the channels of the NVML driver: "" is the GPU's power, ".util" its load.
 * Columns that are not in the table are left out. Pure functions on the caller's data; negative
 * errno; any thread.
 */
#ifndef NRG_SENSORS_NVIDIA_SMI_H
#define NRG_SENSORS_NVIDIA_SMI_H

#include "base/csv.h"
#include "sensors/channel.h"

enum { NRG_SMI_VALUES = 12 };

struct nrg_smi_field {
    const char *query, *suffix; /* "power.draw"; what follows gpu-N in the channel's name */
    enum nrg_quantity quantity;
    double scale; /* of one raw unit; a bare number is in `unit` */
    const char *unit;
};

struct nrg_smi_columns {
    int time;          /* -1: none */
    int gpu;           /* index, uuid, bus id or serial number; -1: none */
    bool gpu_is_index; /* the cell is the GPU's number */
    size_t n_cells, n_values;
    struct {
        int column;
        double unit; /* SI value of a bare number: as the header says */
        const struct nrg_smi_field *field;
    } values[NRG_SMI_VALUES];
};

/* 0: the cells are a header. -EINVAL: they are not. */
int nrg_smi_read_header(const struct nrg_csv *cells, struct nrg_smi_columns *columns);
/* The columns of a line without a header, from its own cells; -EINVAL where they do not tell. */
int nrg_smi_guess_columns(const struct nrg_csv *cells, struct nrg_smi_columns *columns);

/* "2025/04/09 08:59:06.356" in ns since 1970, as if it were UTC (it is local time); -EINVAL. */
int nrg_smi_read_time(struct nrg_cell cell, int64_t *t_ns);
/* The cell of values[k] in SI units; -ENODATA: missing; -EINVAL: neither. */
int nrg_smi_read_value(const struct nrg_smi_columns *columns, size_t k, struct nrg_cell cell,
                       double *value);

/*
 * Lines that name no GPU, by the times between them: how many come together, at one moment or again
 * and again, as of so many GPUs. 0: they come one by one.
 */
size_t nrg_smi_lines_at_once(const int64_t *spacings_ns, size_t n);

#endif
