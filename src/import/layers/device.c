/*
 * What kind of device a track of a trace is (internal.h): the one place that decides it. Where an
 * event's category does not tell, the name of its process does, as trace writers form it:
 *
 *     /device:GPU:0   host3 /device:TPU:1   /job:a/task:0/device:GPU:0/stream:13 Compute   XLA
 *     /gpu:0 Compute                                                    TensorFlow's timeline
 *     GPU 0   GPU0   cuda:0                                             rocprof, others
 *     CUDA functions                                                    PyTorch's autograd profiler
 *
 * A word that merely stands somewhere in a name ("worker of GPU 0") is not enough: it begins the
 * name, or follows a slash or a colon.
 *
 * XLA and TensorFlow also write lines that repeat the work of the streams in other words (by
 * operator, by module, by step). Energy that was given to both would be given twice.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "import/layers/internal.h"

/* Energy domains by what a writer calls the device; another name is its own. */
static const struct {
    const char *word, *family;
} families[] = {
    {"GPU", "gpu"}, {"XLA_GPU", "gpu"}, {"CUDA", "gpu"}, {"HIP", "gpu"},   {"ROCM", "gpu"},
    {"XPU", "gpu"}, {"TPU", "tpu"},     {"HPU", "hpu"},  {"MTIA", "mtia"}, {"NPU", "npu"},
};

static const struct {
    const char *start;
    enum nrg_trace_line line;
} lines[] = {
    {"XLA Ops", NRG_LINE_OPERATORS},     {"stream:all", NRG_LINE_OPERATORS},
    {"XLA Modules", NRG_LINE_MODULES},   {"Steps", NRG_LINE_STEPS},
    {"Async XLA Ops", NRG_LINE_DERIVED}, {"XLA TraceMe", NRG_LINE_DERIVED},
    {"Framework ", NRG_LINE_DERIVED},    {"TensorFlow ", NRG_LINE_DERIVED},
    {"Source code", NRG_LINE_DERIVED},   {"Launch Stats", NRG_LINE_DERIVED},
    {"Sparse Core ", NRG_LINE_DERIVED},  {"Host Offload Ops", NRG_LINE_DERIVED},
    {"_counters_", NRG_LINE_DERIVED},    {"Tensor Core Sync Flag", NRG_LINE_DERIVED},
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* "GPU:0", "GPU 0", "GPU0" at the start of a text; `any`: of a family that is not in the table. */
static bool read_device(const char *text, bool any, struct nrg_trace_device *d)
{
    size_t len = 0, i = 0;
    while (is_word(text[len]) && !isdigit((unsigned char)text[len]))
        len++;
    const char *number = text + len + (text[len] && strchr(" :#", text[len]) ? 1 : 0);
    if (!len || !isdigit((unsigned char)*number))
        return false;
    while (i < sizeof families / sizeof *families &&
           (strlen(families[i].word) != len || strncasecmp(text, families[i].word, len) != 0))
        i++;
    bool known = i < sizeof families / sizeof *families;
    if (!known && (!any || !strncasecmp(text, "CPU", len)))
        return false;
    nrg_copy_clean(d->family, sizeof d->family, known ? families[i].family : text,
                   known ? strlen(families[i].family) : len);
    for (char *c = d->family; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    char *end;
    long value = strtol(number, &end, 10);
    d->number = value <= 4095 ? (int)value : 0;
    return value <= 4095 && !is_word(*end);
}

bool nrg_trace_device(const char *label, struct nrg_trace_device *d)
{
    static const char named[] = "device:";
    *d = (struct nrg_trace_device){.number = 0};
    for (const char *at = label; *at; at++) {
        if (at != label && at[-1] != '/' && at[-1] != ':')
            continue;
        size_t before = (size_t)(at - label), n = sizeof named - 1;
        if (read_device(at, before >= n && !strncasecmp(at - n, named, n), d))
            return true;
    }
    d->family[0] = '\0';
    return false;
}

enum nrg_trace_line nrg_trace_line(const char *process, const char *thread)
{
    if (strstr(process, "/stream:all"))
        return NRG_LINE_OPERATORS;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strncmp(thread, lines[i].start, strlen(lines[i].start)))
            return lines[i].line;
    return NRG_LINE_WORK;
}
