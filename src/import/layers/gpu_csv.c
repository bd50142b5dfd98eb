/*
 * Tables of GPU profilers, one row for each thing that ran: nsys stats --report cuda_gpu_trace (and
 * its other reports with a start), and rocprofv3's *_kernel_trace.csv, *_memory_copy_trace.csv,
 * *_marker_api_trace.csv and *_hip_api_trace.csv, and rocprof's results.csv.
 *
 * Columns are known by name, without the unit behind it: "Start (ns)", "Start_Timestamp",
 * "BeginNs". A row with a device is on a track of that device's stream, others on the track of
 * their thread.
 *
 * Nsight counts from the start of its session, whose date these tables lack. rocprofv3 counts since
 * the machine was started, which on a machine that never slept is the clock of recordings.
 * rocprofv3 numbers agents, processors among them; agent_info.csv beside the file says which GPU
 * is which (gpu_agents.c).
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/parse.h"
#include "import/foreign.h"
#include "import/internal.h"
#include "import/layers/gpu_agents.h"
#include "sensors/channel.h"

enum role {
    BEGIN,
    END,
    DURATION,
    NAME,
    DIRECTION,
    DEVICE,
    SOURCE,
    TARGET,
    STREAM,
    QUEUE,
    PID,
    TID,
    DOMAIN,
    RESULT,
    ROLES
};

static const struct {
    const char *column;
    enum role role;
} columns[] = {
    {"Start", BEGIN},
    {"Start_Timestamp", BEGIN},
    {"BeginNs", BEGIN},
    {"End", END},
    {"End_Timestamp", END},
    {"EndNs", END},
    {"Duration", DURATION},
    {"Name", NAME},
    {"Kernel_Name", NAME},
    {"KernelName", NAME},
    {"Function", NAME},
    {"Direction", DIRECTION},
    {"Device", DEVICE},
    {"Agent_Id", DEVICE},
    {"gpu-id", DEVICE},
    {"Source_Agent_Id", SOURCE},
    {"Destination_Agent_Id", TARGET},
    {"Strm", STREAM},
    {"Stream_Id", STREAM},
    {"Queue_Id", QUEUE},
    {"queue-id", QUEUE},
    {"Pid", PID},
    {"Process_Id", PID},
    {"Tid", TID},
    {"Thread_Id", TID},
    {"Domain", DOMAIN},
    {"Result", RESULT},
};

static const struct {
    const char *unit;
    int power; /* of ten, in ns */
} units[] = {{"ns", 0},   {"nsec", 0}, {"us", 3},   {"\xce\xbcs", 3}, {"\xc2\xb5s", 3},
             {"usec", 3}, {"ms", 6},   {"msec", 6}, {"s", 9},         {"sec", 9}};

struct layout {
    int column[ROLES]; /* -1: none */
    int power[ROLES];  /* of ten, of times; -1: of a unit that is not known */
    size_t n;          /* cells of a row */
    bool since_boot;   /* rocprof's */
};

/* "Start (us)", "Start(nsec)": the name without the unit; *power as it says, 0 without one, -1 for
 * another. */
static struct nrg_cell split_unit(struct nrg_cell cell, int *power)
{
    nrg_trim(&cell.text, &cell.len);
    const char *open = cell.len ? memchr(cell.text, '(', cell.len) : NULL;
    *power = 0;
    if (!open || cell.text[cell.len - 1] != ')')
        return cell;
    struct nrg_cell unit = {open + 1, (size_t)(cell.text + cell.len - open) - 2};
    *power = -1;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (unit.len == strlen(units[i].unit) && !memcmp(unit.text, units[i].unit, unit.len))
            *power = units[i].power;
    cell.len = (size_t)(open - cell.text);
    nrg_trim(&cell.text, &cell.len);
    return cell;
}

static bool read_layout(const struct nrg_csv *header, struct layout *l)
{
    *l = (struct layout){.n = header->n};
    for (int i = 0; i < ROLES; i++)
        l->column[i] = -1;
    for (size_t k = 0; k < header->n; k++) {
        int power;
        struct nrg_cell cell = split_unit(header->cells[k], &power);
        for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
            enum role role = columns[i].role;
            if (cell.len != strlen(columns[i].column) || l->column[role] >= 0 ||
                strncasecmp(cell.text, columns[i].column, cell.len) != 0)
                continue;
            l->column[role] = (int)k;
            l->power[role] = power;
            l->since_boot |= role == BEGIN && i > 0;
        }
    }
    bool what = l->column[NAME] >= 0 || l->column[DIRECTION] >= 0;
    bool where = l->column[DEVICE] >= 0 || l->column[TARGET] >= 0 || l->column[TID] >= 0;
    return l->column[BEGIN] >= 0 && (l->column[END] >= 0 || l->column[DURATION] >= 0) && what &&
           where;
}

static bool is_gpu_table(const struct nrg_layer_head *head)
{
    char line[sizeof head->line];
    struct nrg_csv cells;
    struct layout layout;
    nrg_copy(line, sizeof line, head->line);
    if (nrg_import_foreign(line, strlen(line)) ||
        nrg_import_cells(&cells, line, strlen(line), NULL))
        return false;
    bool found = read_layout(&cells, &layout);
    nrg_csv_release(&cells);
    return found;
}

struct reader {
    struct nrg_layer_import *im;
    struct layout layout;
    const struct nrg_csv *row;
    struct nrg_gpu_agents agents;
    uint64_t bad, between_hosts;
    bool cut; /* the last line */
};

static struct nrg_cell cell_of(const struct reader *r, enum role role)
{
    int at = r->layout.column[role];
    struct nrg_cell cell = {"", 0};
    if (at >= 0 && (size_t)at < r->row->n)
        cell = r->row->cells[at];
    nrg_trim(&cell.text, &cell.len);
    return cell;
}

static int64_t time_of(const struct reader *r, enum role role)
{
    struct nrg_cell cell = cell_of(r, role);
    int64_t ns;
    return !cell.len || nrg_parse_scaled(cell.text, cell.len, r->layout.power[role], &ns)
               ? NRG_MISSING
               : ns;
}

static int32_t small_number(struct nrg_cell cell)
{
    char text[32];
    nrg_copy_clean(text, sizeof text, cell.text, cell.len);
    return nrg_chrome_small_number(text);
}

/* Copies run on the side that is a GPU: a copy to the host on its source. */
static struct nrg_cell device_cell(const struct reader *r)
{
    struct nrg_cell direction = cell_of(r, DIRECTION), device = cell_of(r, DEVICE);
    if (device.len)
        return device;
    bool to_host =
        direction.len >= 7 && !strncasecmp(direction.text + direction.len - 7, "TO_HOST", 7);
    device = cell_of(r, to_host ? SOURCE : TARGET);
    return device;
}

static int64_t device_track(struct reader *r, struct nrg_cell device)
{
    struct nrg_cell stream = cell_of(r, STREAM);
    stream = stream.len ? stream : cell_of(r, QUEUE);
    char name[64];
    snprintf(name, sizeof name, "%s %.*s", r->layout.column[STREAM] >= 0 ? "stream" : "queue",
             (int)(stream.len < 40 ? stream.len : 40), stream.text);
    if (r->layout.column[DIRECTION] >= 0)
        snprintf(name, sizeof name, "copies %.*s",
                 (int)(cell_of(r, DIRECTION).len < 40 ? cell_of(r, DIRECTION).len : 40),
                 cell_of(r, DIRECTION).text);
    return nrg_gpu_agents_track(&r->agents, r->im, device, name);
}

static int64_t thread_track(struct reader *r)
{
    struct nrg_span_track track = {.kind = "thread",
                                   .pid = small_number(cell_of(r, PID)),
                                   .tid = small_number(cell_of(r, TID))};
    snprintf(track.name, sizeof track.name, "%d thread %d", track.pid, track.tid);
    return nrg_span_sink_track(r->im->sink, &track);
}

/* Called as torch.profiler does, so that what GPUs waited for is found in all. */
static const char *copy_name(struct nrg_cell cell)
{
    static const char *const names[][4] = {
        {"HOST_TO_DEVICE", "Host-to-Device", "HtoD", "Memcpy HtoD"},
        {"DEVICE_TO_HOST", "Device-to-Host", "DtoH", "Memcpy DtoH"},
        {"DEVICE_TO_DEVICE", "Device-to-Device", "DtoD", "Memcpy DtoD"},
        {"HOST_TO_HOST", "Host-to-Host", "HtoH", "Memcpy HtoH"},
        {"PEER_TO_PEER", "Peer-to-Peer", "PtoP", "Memcpy PtoP"},
    };
    char text[256];
    nrg_copy_clean(text, sizeof text, cell.text, cell.len);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(text, names[i][0]) || strstr(text, names[i][1]) || strstr(text, names[i][2]))
            return names[i][3];
    return "Memcpy";
}

static int64_t name_of(struct reader *r, bool device)
{
    struct nrg_cell name = cell_of(r, NAME), domain = cell_of(r, DOMAIN);
    bool memcpy_row = name.len > 5 && !strncmp(name.text, "[CUDA memcpy", 12);
    bool memset_row = name.len > 5 && !strncmp(name.text, "[CUDA memset", 12);
    struct nrg_span_sink *sink = r->im->sink;
    if (r->layout.column[DIRECTION] >= 0 || memcpy_row) {
        const char *copy = copy_name(memcpy_row ? name : cell_of(r, DIRECTION));
        return nrg_span_sink_name(sink, NRG_KIND_KERNEL, copy, strlen(copy), "memcpy");
    }
    if (memset_row)
        return nrg_span_sink_name(sink, NRG_KIND_KERNEL, "Memset", 6, "memset");
    if (!name.len)
        name = (struct nrg_cell){"(no name)", 9};
    /* Calls of HIP and CUDA; ranges that the program marks have no other domain, and no result. */
    bool call = (domain.len && !memmem(domain.text, domain.len, "MARKER", 6)) ||
                r->layout.column[RESULT] >= 0;
    const char *kind = device ? NRG_KIND_KERNEL : call ? "runtime" : NRG_KIND_SPAN;
    return nrg_span_sink_name(sink, kind, name.text, name.len, "");
}

/* Both of its agents are processors. */
static bool is_between_hosts(struct nrg_cell direction)
{
    return direction.len && memmem(direction.text, direction.len, "HOST_TO_HOST", 12);
}

static int add_row(struct reader *r)
{
    struct nrg_cell device = device_cell(r);
    bool on_device = r->layout.column[DEVICE] >= 0 || r->layout.column[TARGET] >= 0;
    if (is_between_hosts(cell_of(r, DIRECTION))) {
        r->between_hosts++;
        return 0;
    }
    int64_t begin_ns = time_of(r, BEGIN), end_ns = time_of(r, END),
            length_ns = time_of(r, DURATION);
    if (end_ns == NRG_MISSING && begin_ns != NRG_MISSING && length_ns != NRG_MISSING &&
        __builtin_add_overflow(begin_ns, length_ns, &end_ns))
        end_ns = NRG_MISSING;
    if (begin_ns == NRG_MISSING || end_ns == NRG_MISSING || (on_device && !device.len)) {
        r->bad++;
        return 0;
    }
    const struct nrg_sink_span span = {.begin_ns = begin_ns,
                                       .end_ns = end_ns,
                                       .track =
                                           on_device ? device_track(r, device) : thread_track(r),
                                       .name = name_of(r, on_device),
                                       .number = NRG_MISSING,
                                       .path = NRG_MISSING};
    nrg_layer_tick(r->im);
    int rc = nrg_layer_span(r->im, &span, &r->bad);
    return rc < 0 ? rc : 0;
}

/* The columns, all of whose units must be known: no time is taken for another one. */
static int use_header(struct reader *r, long long number, struct nrg_error *err)
{
    char head[80];
    if (!read_layout(r->row, &r->layout))
        return -EINVAL;
    for (enum role role = BEGIN; role <= DURATION; role++) {
        if (r->layout.column[role] < 0 || r->layout.power[role] >= 0)
            continue;
        struct nrg_cell cell = cell_of(r, role);
        nrg_copy_clean(head, sizeof head, cell.text, cell.len);
        head[strcspn(head, ")")] = '\0';
        return nrg_fail_at(err, -EINVAL, r->im->file->path, number,
                           "has times in '%s', a unit that nrg does not know: write them in ns",
                           head + strcspn(head, "(") + 1);
    }
    return 0;
}

/* One line: its cells, then what is made of them. */
static int use_line(struct reader *r, struct nrg_lines *lines, bool header, struct nrg_error *err)
{
    struct nrg_csv cells;
    const char *path = r->im->file->path;
    int rc = nrg_import_cells(&cells, lines->text.text, lines->text.len, err);
    if (rc && lines->unfinished && !header && rc != -ENOMEM) {
        r->cut = true;
        return 0;
    }
    if (rc)
        return nrg_fail_at(err, rc, path, lines->number, "is not a line of CSV");
    r->row = &cells;
    if (header)
        rc = use_header(r, lines->number, err);
    else if (cells.n == r->layout.n)
        rc = add_row(r);
    else if (cells.n && lines->unfinished)
        r->cut = true;
    else if (cells.n)
        rc = nrg_fail_at(err, -EINVAL, path, lines->number, "has %zu columns, the header has %zu",
                         cells.n, r->layout.n);
    nrg_csv_release(&cells);
    r->row = NULL;
    return rc == -ENOMEM ? nrg_layer_out_of_memory(r->im, err) : rc;
}

static int read_lines(struct reader *r, struct nrg_lines *lines, struct nrg_error *err)
{
    const char *path = r->im->file->path;
    int more = nrg_layer_header(lines), rc = more > 0 ? use_line(r, lines, true, err) : 0;
    /* A blank line ends the report: the next one has other columns. */
    while (!rc && (more = nrg_lines_next(lines)) > 0 && lines->text.len)
        rc = use_line(r, lines, false, err);
    return !rc && more < 0 ? nrg_fail_at(err, more, path, lines->number, "cannot be read: %s",
                                         nrg_input_why(-more))
                           : rc;
}

static int read_table(struct nrg_layer_import *im, struct nrg_error *err)
{
    struct reader r = {.im = im};
    struct nrg_lines lines = {.in = im->in};
    int rc = read_lines(&r, &lines, err);
    im->file->since_boot = r.layout.since_boot;
    if (!rc)
        rc = nrg_gpu_agents_finish(&r.agents, im, err);
    nrg_layer_count(im, r.bad, "row", "rows", "without a usable time or device left out");
    nrg_layer_count(im, r.between_hosts, "copy", "copies",
                    "from host to host, which no GPU makes, left out");
    if (r.cut)
        nrg_layer_note(im, "its last line was cut off, and is left out");
    nrg_gpu_agents_release(&r.agents);
    nrg_str_release(&lines.text);
    return rc;
}

const struct nrg_layer_format nrg_layers_gpu_csv = {
    .name = "gpu-trace-csv",
    .form = NRG_LAYER_TABLE,
    .match = is_gpu_table,
    .read = read_table,
};
