/* See foreign.h. Tables: what is recognised is a matter of what people have on their disks. */
#include "import/foreign.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/input.h"
#include "base/json/stream.h"
#include "base/parse.h"
#include "import/internal.h"

enum { SHOWN = 4, LOOKED_AT = 64 };

#define DMON                                                                                       \
    "is what nvidia-smi dmon prints, in whole watts: nrg reads nvidia-smi "                        \
    "--query-gpu=index,timestamp,power.draw --format=csv -l 1"
#define PLAIN_PERF "is perf stat's table for people: nrg reads what perf stat -I 1000 -x, writes"

#define NSYS_CSV                                                                                   \
    "is a summary of nsys stats, which has sums and no times: nrg reads nsys stats --report "      \
    "cuda_gpu_trace --format csv, and what nsys export --type sqlite makes"
#define NSYS_REPORT                                                                                \
    "is a report of Nsight Systems: import what nsys export --type sqlite -o report.sqlite makes " \
    "of it"
#define PERFETTO                                                                                   \
    "is a Perfetto trace, which nrg does not read: of rocprofv3 import the files of "              \
    "--output-format csv, of others JSON in the chrome format"

/* Formats of profilers that only the name tells. */
static const struct {
    const char *end, *what;
} names[] = {
    {".nsys-rep", NSYS_REPORT},
    {".qdrep", NSYS_REPORT},
    {".qdstrm", "is an unfinished report of Nsight Systems: open it with nsys once, then import "
                "what nsys export --type sqlite makes of it"},
    {".ncu-rep", "is a report of Nsight Compute, which runs each kernel several times: its times "
                 "are not those of the run. Use nsys profile"},
    {".pftrace", PERFETTO},
    {".perfetto-trace", PERFETTO},
    {".xplane.pb", "is XLA's profile: import the .trace.json.gz that lies beside it"},
    {".otf2", "is an OTF2 trace, which nrg does not read: rocprofv3 --output-format csv writes "
              "files that it does"},
};

static const struct {
    const char *start, *what;
} starts[] = {
    {"Time (%),", NSYS_CSV},
    {"\"Time (%)\"", NSYS_CSV},
    {"Time(%),", NSYS_CSV},
    {"Total (MB),Count", NSYS_CSV},
    {"==", "is what nvprof prints: record with nsys profile, and import what nsys export --type "
           "sqlite makes of it"},
    {NRG_LFS_MAGIC, NRG_LFS_ADVICE},
    {NRG_UTF16_MAGIC, NRG_UTF16_ADVICE},
    {"<!DOCTYPE", "is a web page, not the file that it may offer"},
    {"<html", "is a web page, not the file that it may offer"},
    {"# gpu ", DMON},
    {"#Date       Time        gpu ", DMON},
    {"#                 time             counts unit events", PLAIN_PERF},
    {"#           time             counts unit events", PLAIN_PERF},
    {"SQLite format 3", "is an SQLite database; a recording of nrg is read by nrg report"},
};

static const struct {
    const char *columns[3], *what;
} tables[] = {
    {{"run_id", "experiment_id", "artifact_uri"},
     "is MLflow's table of runs: sums per run, without the course of power over time"},
    {{"Name", "Calls", "TotalDurationNs"},
     "is a summary of rocprof, which has sums and no times: import *_kernel_trace.csv (rocprofv3 "
     "--kernel-trace --output-format csv)"},
    {{"Counter_Name", "Counter_Value", "Kernel_Name"},
     "has counters of kernels, one row each: import *_kernel_trace.csv of rocprofv3 "
     "--kernel-trace"},
    {{"Kind", "Operation", "Agent_Id"},
     "has allocations of memory, which are no work of a GPU: import *_kernel_trace.csv and "
     "*_memory_copy_trace.csv of rocprofv3 --kernel-trace --memory-copy-trace"},
    {{"Node_Id", "Agent_Type", "Logical_Node_Id"},
     "lists the devices of rocprofv3: nrg reads it by itself where it lies beside a trace. Import "
     "*_kernel_trace.csv"},
    {{"cpu_load", "rapl_power", "estimated_power"},
     "is CodeCarbon's table of load tests: mean powers per load, not a log"},
};

/* Two keys at the top that together are found in nothing else. */
static const struct {
    const char *keys[2], *what;
} documents[] = {
    {{"schema", "nodes"},
     "is an execution trace of PyTorch (operators and shapes, no power and no times that nrg "
     "reads): import the trace of torch.profiler"},
    {{"nbformat", "cells"}, "is a Jupyter notebook"},
    {{"Layers", "Bindings"}, "is a TensorRT engine's layer information: nrg graph reads it"},
    {{"architectures", "model_type"}, "is a model's configuration (Hugging Face)"},
    {{"global_step", "log_history"}, "is the state of a Hugging Face trainer: it has no power"},
    {{"run_id", "emissions"}, "is CodeCarbon's JSON: import its emissions.csv"},
    {{"counter-value", "unit"},
     "is perf stat's JSON (-j): nrg reads what perf stat -I 1000 -x, writes"},
    {{"swagger", "paths"}, "is the description of a web interface"},
};

/* "2026/09/24 18:00:00.000, 200.00": what the numbers are is not in the file. */
static bool is_bare_nvidia_smi(const char *line, size_t len)
{
    static const char form[] = "dddd/dd/dd dd:dd:dd";
    size_t at = 0;
    if (len < sizeof form)
        return false;
    for (; at < sizeof form - 1; at++)
        if (form[at] == 'd' ? !isdigit((unsigned char)line[at]) : line[at] != form[at])
            return false;
    return memchr(line + at, ',', len - at) != NULL;
}

const char *nrg_import_foreign(const char *line, size_t len)
{
    while (len && isspace((unsigned char)*line))
        line++, len--;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        size_t n = strlen(starts[i].start);
        if (len >= n && !strncasecmp(line, starts[i].start, n))
            return starts[i].what;
    }
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (nrg_import_has_column(line, len, tables[i].columns[0]) &&
            nrg_import_has_column(line, len, tables[i].columns[1]) &&
            nrg_import_has_column(line, len, tables[i].columns[2]))
            return tables[i].what;
    if (is_bare_nvidia_smi(line, len))
        return "looks like nvidia-smi's CSV without names and units: leave noheader or nounits out "
               "of its --format, so that the file tells what its numbers are";
    return NULL;
}

const char *nrg_import_foreign_file(const char *path, const char *line, size_t len)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (nrg_ends_with(path, names[i].end))
            return names[i].what;
    return nrg_import_foreign(line, len);
}

/* What the keys at the top of a document tell. */
struct top {
    bool is_object, is_empty;
    char keys[LOOKED_AT][48];
    char schema[48]; /* of nrg's own documents */
    size_t n;
};

static int read_key(struct nrg_json_stream *s, struct top *top)
{
    struct nrg_error ignored;
    nrg_copy_clean(top->keys[top->n++], sizeof *top->keys, s->text, s->len);
    if (strcmp(top->keys[top->n - 1], "schema") != 0)
        return nrg_json_skip_value(s, &ignored);
    int token = nrg_json_next(s, &ignored);
    if (token == NRG_JSON_STRING)
        nrg_copy_clean(top->schema, sizeof top->schema, s->text, s->len);
    return token < 0 ? token : token == NRG_JSON_STRING ? 0 : -EINVAL;
}

static void read_top(FILE *in, struct top *top)
{
    struct nrg_json_stream s;
    struct nrg_error ignored;
    *top = (struct top){0};
    if (nrg_json_init(&s, in, "", NRG_JSON_MAY_BE_CUT))
        return;
    int token = nrg_json_next(&s, &ignored);
    top->is_object = token == NRG_JSON_OBJECT;
    while (top->is_object && top->n < LOOKED_AT &&
           (token = nrg_json_next(&s, &ignored)) == NRG_JSON_KEY)
        if (read_key(&s, top))
            break;
    top->is_empty = top->is_object && !top->n && token == NRG_JSON_OBJECT_END;
    nrg_json_release(&s);
}

static bool has_key(const struct top *top, const char *key)
{
    for (size_t i = 0; i < top->n; i++)
        if (!strcmp(top->keys[i], key))
            return true;
    return false;
}

static void list_keys(const struct top *top, char *buf, size_t size)
{
    size_t at = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < top->n && i < SHOWN && at + 60 < size; i++)
        at += (size_t)snprintf(buf + at, size - at, "%s\"%s\"", i ? ", " : "", top->keys[i]);
    if (top->n > SHOWN)
        snprintf(buf + at, size - at, ", …");
}

int nrg_import_foreign_json(FILE *in, const char *path, struct nrg_error *err)
{
    struct top top;
    char keys[260];
    clearerr(in);
    if (fseek(in, 0, SEEK_SET))
        return 0;
    read_top(in, &top);
    clearerr(in);
    if (fseek(in, 0, SEEK_SET) || (!top.n && !top.is_empty))
        return 0;
    if (top.is_empty)
        return nrg_fail(err, -EINVAL, path, "holds no record: an empty object");
    if (!strncmp(top.schema, "nrg.", 4))
        return nrg_fail(err, -EINVAL, path,
                        "is what nrg itself wrote (%s): give the recording, the .nrg file",
                        top.schema);
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++)
        if (has_key(&top, documents[i].keys[0]) && has_key(&top, documents[i].keys[1]))
            return nrg_fail(err, -EINVAL, path, "%s", documents[i].what);
    list_keys(&top, keys, sizeof keys);
    return nrg_fail(err, -EINVAL, path,
                    "is JSON (%s) of no kind that nrg import reads (see its --help)", keys);
}
