/*
 * Rows of Nsight's tables (nsys.h) as spans: kernels, copies, fills and graphs on tracks of the
 * GPU's streams, calls of CUDA and ranges of NVTX on tracks of threads. A call and the work that it
 * launched share a correlation id inside of a process (chrome_tie.c). Times are ns since the
 * session began, whose date the file says.
 */
#include "import/layers/nsys.h"

#include <errno.h>
#include <sqlite3.h>
#include <string.h>

#include "base/mem.h"
#include "import/foreign.h"
#include "record/format.h"
#include "record/store/database.h"
#include "sensors/channel.h"

/* eventType of ranges: of the program's calls, and of the text files that nsys takes beside them.
 */
enum {
    NVTX_PUSH_POP = 59,
    NVTX_START_END = 60,
    NVTXT_PUSH_POP = 70,
    NVTXT_START_END = 71,
};

#define COUNT(a)      (sizeof(a) / sizeof *(a))
#define FIRST_DATE_NS INT64_C(978307200000000000) /* 2001 */

struct reader {
    struct nrg_layer_import *im;
    struct nrg_nsys nsys;
    struct nrg_chrome_ties ties;
    const char *what; /* of the table that is read */
    uint64_t bad, marks, payloads;
};

static bool is_there(sqlite3_stmt *row, int column)
{
    return sqlite3_column_type(row, column) != SQLITE_NULL;
}

/* Correlation ids are 32 bits, and of one process. */
static int64_t link_of(int64_t global, sqlite3_stmt *row, int column)
{
    return is_there(row, column)
               ? nrg_nsys_pid(global) << 32 | (sqlite3_column_int64(row, column) & 0xffffffff)
               : NRG_MISSING;
}

/* 1: added; 0: not; -errno. */
static int add_span(struct reader *r, sqlite3_stmt *row, int64_t track, int64_t name)
{
    const struct nrg_sink_span span = {.begin_ns = sqlite3_column_int64(row, 0),
                                       .end_ns = is_there(row, 1) ? sqlite3_column_int64(row, 1)
                                                                  : NRG_MISSING,
                                       .track = track,
                                       .name = name,
                                       .number = NRG_MISSING,
                                       .path = NRG_MISSING};
    nrg_layer_tick(r->im);
    if (!is_there(row, 0)) {
        r->bad++;
        return 0;
    }
    return nrg_layer_span(r->im, &span, &r->bad);
}

/* --- work of GPUs --- */

static const char *const work_columns[] = {
    "start",         "end",       "deviceId",    "streamId", "correlationId", "globalPid",
    "demangledName", "shortName", "mangledName", "copyKind", "graphId",       "name"};

static int64_t stream_track(struct reader *r, sqlite3_stmt *row, int gpu)
{
    int64_t pid = nrg_nsys_pid(sqlite3_column_int64(row, 5));
    struct nrg_span_track track = {.kind = "gpu", .pid = (int32_t)pid};
    const char *domain = r->im->options->domain;
    snprintf(track.domain, sizeof track.domain, "gpu-%d", gpu);
    nrg_copy(track.domain, sizeof track.domain, domain ? domain : track.domain);
    snprintf(track.name, sizeof track.name, "GPU %d stream %lld", gpu,
             (long long)sqlite3_column_int64(row, 3));
    return nrg_span_sink_track(r->im->sink, &track);
}

/* Called as torch.profiler does, so that what GPUs waited for is found in both. */
static const char *copy_name(int64_t kind)
{
    static const char *const names[] = {
        [1] = "Memcpy HtoD",  [2] = "Memcpy DtoH",  [3] = "Memcpy HtoA",  [4] = "Memcpy AtoH",
        [5] = "Memcpy AtoA",  [6] = "Memcpy AtoD",  [7] = "Memcpy DtoA",  [8] = "Memcpy DtoD",
        [9] = "Memcpy HtoH",  [10] = "Memcpy PtoP", [11] = "Memcpy HtoD", [12] = "Memcpy DtoH",
        [13] = "Memcpy DtoD", /* from 11 on: of managed memory */
    };
    return kind > 0 && kind < (int64_t)COUNT(names) ? names[kind] : "Memcpy";
}

static int64_t kernel_name(struct reader *r, sqlite3_stmt *row)
{
    const char *text = "";
    for (int column = 6; column <= 8 && !text[0]; column++)
        if (is_there(row, column))
            text = nrg_nsys_text(&r->nsys, &r->nsys.text_ids, sqlite3_column_int64(row, column));
    if (!text[0] && sqlite3_column_type(row, 11) == SQLITE_TEXT)
        text = (const char *)sqlite3_column_text(row, 11);
    text = text && text[0] ? text : "(kernel without a name)";
    return nrg_span_sink_name(r->im->sink, NRG_KIND_KERNEL, text, strlen(text), "");
}

static int64_t work_name(struct reader *r, sqlite3_stmt *row)
{
    char graph[48];
    const char *text = graph, *detail = r->what;
    if (!strcmp(r->what, "kernel"))
        return kernel_name(r, row);
    if (!strcmp(r->what, "memcpy"))
        text = copy_name(sqlite3_column_int64(row, 9));
    else if (!strcmp(r->what, "memset"))
        text = "Memset";
    else
        snprintf(graph, sizeof graph, "CUDA graph %lld", (long long)sqlite3_column_int64(row, 10));
    return nrg_span_sink_name(r->im->sink, NRG_KIND_KERNEL, text, strlen(text), detail);
}

static int take_work(void *arg, sqlite3_stmt *row)
{
    struct reader *r = arg;
    int gpu = nrg_nsys_gpu(&r->nsys, nrg_nsys_pid(sqlite3_column_int64(row, 5)),
                           sqlite3_column_int64(row, 2));
    if (!is_there(row, 1) || gpu < 0) {
        r->bad++;
        return 0;
    }
    int rc = add_span(r, row, stream_track(r, row, gpu), work_name(r, row));
    return rc <= 0 ? rc
                   : nrg_chrome_kernel(&r->ties, r->im->sink,
                                       link_of(sqlite3_column_int64(row, 5), row, 4), NRG_MISSING);
}

/* --- threads --- */

static int64_t thread_track(struct reader *r, int64_t global)
{
    int64_t pid = nrg_nsys_pid(global), tid = nrg_nsys_tid(global);
    struct nrg_span_track track = {.kind = "thread", .pid = (int32_t)pid, .tid = (int32_t)tid};
    const char *name = nrg_nsys_text(&r->nsys, &r->nsys.thread_ids, global);
    snprintf(track.name, sizeof track.name, "%lld thread %lld %.60s", (long long)pid,
             (long long)tid, name);
    track.name[strlen(track.name) - !name[0]] = '\0';
    return nrg_span_sink_track(r->im->sink, &track);
}

static const char *const call_columns[] = {"start", "end", "globalTid", "correlationId", "nameId"};

/* "cudaLaunchKernel_v7000": the version is not part of the name. */
static size_t call_length(const char *name)
{
    const char *version = strstr(name, "_v");
    size_t len = strlen(name);
    return version && version[2] && strspn(version + 2, "0123456789") == strlen(version + 2)
               ? (size_t)(version - name)
               : len;
}

static int take_call(void *arg, sqlite3_stmt *row)
{
    struct reader *r = arg;
    int64_t global = sqlite3_column_int64(row, 2);
    const char *text = nrg_nsys_text(&r->nsys, &r->nsys.text_ids, sqlite3_column_int64(row, 4));
    text = text[0] ? text : "(call)";
    int64_t name = nrg_span_sink_name(r->im->sink, "runtime", text, call_length(text), "");
    int rc = add_span(r, row, thread_track(r, global), name);
    return rc <= 0 ? rc
                   : nrg_chrome_mark(&r->ties, r->im->sink->n - 1, NRG_LINK_CORRELATION,
                                     link_of(global, row, 3));
}

static const char *const range_columns[] = {
    "start",      "end",         "globalTid",  "eventType",  "text",
    "textId",     "domainId",    "category",   "int64Value", "uint64Value",
    "int32Value", "uint32Value", "floatValue", "doubleValue"};

/* The domain and the category of a range, as what nrg run --gpu-trace records of it. */
static void describe_range(struct reader *r, sqlite3_stmt *row, char *detail, size_t size)
{
    int64_t global = sqlite3_column_int64(row, 2), domain_id = sqlite3_column_int64(row, 6);
    int64_t category_id = sqlite3_column_int64(row, 7);
    const char *domain =
        nrg_nsys_text(&r->nsys, &r->nsys.domains, nrg_nsys_scope(global, domain_id, 0));
    const char *category = category_id
                               ? nrg_nsys_text(&r->nsys, &r->nsys.categories,
                                               nrg_nsys_scope(global, domain_id, category_id))
                               : "";
    snprintf(detail, size, "%.60s%s%.60s", domain, domain[0] && category[0] ? "/" : "", category);
}

static int take_range(void *arg, sqlite3_stmt *row)
{
    struct reader *r = arg;
    int64_t type = is_there(row, 3) ? sqlite3_column_int64(row, 3) : NVTX_PUSH_POP;
    char detail[NRG_SPAN_DETAIL_MAX + 1];
    const char *text =
        sqlite3_column_type(row, 4) == SQLITE_TEXT
            ? (const char *)sqlite3_column_text(row, 4)
            : nrg_nsys_text(&r->nsys, &r->nsys.text_ids, sqlite3_column_int64(row, 5));
    bool range = type == NVTX_PUSH_POP || type == NVTX_START_END || type == NVTXT_PUSH_POP ||
                 type == NVTXT_START_END;
    r->marks += !is_there(row, 1) && !range;
    if (!range)
        return 0;
    for (int column = 8; column < (int)COUNT(range_columns); column++)
        if (is_there(row, column)) {
            r->payloads++;
            break;
        }
    describe_range(r, row, detail, sizeof detail);
    text = text && text[0] ? text : "(range)";
    int64_t name = nrg_span_sink_name(r->im->sink, NRG_KIND_SPAN, text, strlen(text), detail);
    int rc = add_span(r, row, thread_track(r, sqlite3_column_int64(row, 2)), name);
    return rc < 0 ? rc : 0;
}

/* --- the file --- */

static int read_tables(struct reader *r, struct nrg_error *err)
{
    static const struct {
        const char *table, *what;
        const char *const *columns;
        size_t n_columns;
        int (*take)(void *, sqlite3_stmt *);
    } tables[] = {
        {"NVTX_EVENTS", "", range_columns, COUNT(range_columns), take_range},
        {"CUPTI_ACTIVITY_KIND_RUNTIME", "", call_columns, COUNT(call_columns), take_call},
        {"CUPTI_ACTIVITY_KIND_DRIVER", "", call_columns, COUNT(call_columns), take_call},
        {"CUPTI_ACTIVITY_KIND_KERNEL", "kernel", work_columns, COUNT(work_columns), take_work},
        {"CUPTI_ACTIVITY_KIND_MEMCPY", "memcpy", work_columns, COUNT(work_columns), take_work},
        {"CUPTI_ACTIVITY_KIND_MEMSET", "memset", work_columns, COUNT(work_columns), take_work},
        {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "graph", work_columns, COUNT(work_columns), take_work},
    };
    int rc = 0;
    for (size_t i = 0; !rc && i < COUNT(tables); i++) {
        r->what = tables[i].what;
        rc = nrg_nsys_scan(&r->nsys, tables[i].table, tables[i].columns, tables[i].n_columns,
                           tables[i].take, r, err);
    }
    return rc;
}

static void add_notes(struct reader *r)
{
    struct nrg_layer_import *im = r->im;
    nrg_layer_count(im, r->bad, "row", "rows", "without a usable time or device left out");
    nrg_layer_count(im, r->marks, "mark", "marks",
                    "and other rows of NVTX without a length left out");
    nrg_layer_count(im, r->payloads, "payload", "payloads", "of NVTX ranges not counted");
    if (r->ties.n_kernels)
        nrg_layer_note(im, "%zu spans of GPUs, %llu tied to the range that launched them",
                       r->ties.n_kernels, (unsigned long long)r->ties.tied);
    if (!r->nsys.start_ns)
        nrg_layer_note(im, "the file has no date of its session's start");
}

int nrg_nsys_read(struct nrg_layer_import *im, sqlite3 *db, struct nrg_error *err)
{
    struct reader r = {.im = im, .nsys = {.db = db, .path = im->file->path}};
    int rc = nrg_nsys_load(&r.nsys, err);
    if (!rc)
        rc = read_tables(&r, err);
    if (!rc && (rc = nrg_chrome_tie(&r.ties, im->sink)))
        nrg_layer_out_of_memory(im, err);
    if (!rc)
        add_notes(&r);
    im->file->wall_clock = r.nsys.start_ns >= FIRST_DATE_NS && r.nsys.start_ns < NRG_MAX_TIME_NS;
    im->base_ns = im->file->wall_clock ? r.nsys.start_ns : 0;
    nrg_chrome_ties_release(&r.ties);
    nrg_nsys_release(&r.nsys);
    return rc;
}

static int not_nsys(struct nrg_nsys *n, struct nrg_error *err)
{
    static const char rocpd[] = "SELECT count(*) FROM sqlite_schema WHERE name >= 'rocpd_' AND "
                                "name < 'rocpd`'";
    int64_t id = nrg_database_number(n->db, "PRAGMA application_id");
    if (nrg_database_number(n->db, "SELECT count(*) FROM sqlite_schema") < 0)
        return nrg_fail(err, -EBADMSG, n->path, "is a database that is damaged or was cut off: %s",
                        sqlite3_errmsg(n->db));
    if (id == NRG_FORMAT_APPLICATION_ID)
        return nrg_fail(err, -EINVAL, n->path,
                        "is a recording of nrg, which nrg report and nrg attribute read");
    if (nrg_database_number(n->db, rocpd) > 0)
        return nrg_fail(err, -EINVAL, n->path,
                        "is rocprofv3's database (rocpd), which nrg does not read: run rocpd "
                        "convert -i FILE -f csv, or rocprofv3 --output-format csv, and import "
                        "*_kernel_trace.csv");
    if (nrg_nsys_has(n, "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"))
        return nrg_fail(err, -EINVAL, n->path,
                        "is a profile of nvprof, which nrg does not read: record with nsys "
                        "profile, and import what nsys export --type sqlite makes of it");
    return nrg_fail(err, -EINVAL, n->path,
                    "is an SQLite database, but neither a recording of nrg nor one that nsys "
                    "export --type sqlite made: it has no CUDA and no NVTX table");
}

static int read_file(struct nrg_layer_import *im, struct nrg_error *err)
{
    struct nrg_nsys n = {.path = im->file->path};
    int rc = im->input.gunzip ? nrg_fail(err, -ENOTSUP, n.path,
                                         "is a compressed SQLite database: unpack it first")
                              : nrg_database_open(n.path, &n.db, err);
    if (rc)
        return rc;
    bool nsys = nrg_nsys_has(&n, "CUPTI_ACTIVITY_KIND_KERNEL") ||
                nrg_nsys_has(&n, "CUPTI_ACTIVITY_KIND_MEMCPY") ||
                nrg_nsys_has(&n, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE") ||
                nrg_nsys_has(&n, "NVTX_EVENTS") || nrg_nsys_has(&n, "CUPTI_ACTIVITY_KIND_RUNTIME");
    rc = nsys ? nrg_nsys_read(im, n.db, err) : not_nsys(&n, err);
    sqlite3_close(n.db);
    return rc;
}

const struct nrg_layer_format nrg_layers_nsys = {
    .name = "nsight-systems",
    .form = NRG_LAYER_DATABASE,
    .read = read_file,
};
