/*
 * A libnrg that writes down what it is called with, for tests of the Python package: one line per
 * call into the file NRG_SPAN_LOG, fields apart by tabs, with the thread's depth first. It records
 * from the start when NRG_SPAN_LOG_ACTIVE is set, as under `nrg run`; starting its recorder fails
 * for paths that contain "refuse". Numbers of names stay valid, as libnrg's do. Tests only: not for
 * several threads at once.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nrg/nrg.h"

#define MAX_NAMES 8192

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *names[MAX_NAMES];
static uint32_t n_names;
static int recording;
static char why[256];
static __thread unsigned open_spans;

static void put_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\n' || *text == '\t' || *text == '\\')
            fprintf(out, "\\x%02x", (unsigned char)*text);
        else
            fputc(*text, out);
    }
}

__attribute__((format(printf, 1, 2))) static void log_line(const char *format, ...)
{
    char line[65536];
    const char *path = getenv("NRG_SPAN_LOG");
    FILE *out = path ? fopen(path, "a") : NULL;
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (!out)
        return;
    fprintf(out, "%u\t%s\n", open_spans, line);
    fclose(out);
}

static const char *text_of(uint32_t name)
{
    return name && name <= n_names ? names[name - 1] : "?";
}

const char *nrg_version(void)
{
    const char *other = getenv("NRG_SPAN_LOG_VERSION");
    return other ? other : NRG_VERSION;
}

int nrg_recording_active(void)
{
    return recording || getenv("NRG_SPAN_LOG_ACTIVE");
}

/* "name kind detail", with tabs between. */
static char *describe(const char *text, const char *kind, const char *detail)
{
    char *line = NULL;
    size_t size;
    FILE *out = open_memstream(&line, &size);
    put_text(out, text);
    fputc('\t', out);
    put_text(out, kind ? kind : "span");
    fputc('\t', out);
    put_text(out, detail ? detail : "");
    fclose(out);
    return line;
}

uint32_t nrg_name_intern(const char *text, const char *kind, const char *detail)
{
    uint32_t found = 0;
    char *line = describe(text, kind, detail);
    pthread_mutex_lock(&lock);
    while (found < n_names && strcmp(names[found], line))
        found++;
    if (found == n_names && n_names < MAX_NAMES)
        names[n_names++] = line;
    else
        free(line);
    pthread_mutex_unlock(&lock);
    return 1 + found;
}

void nrg_span_begin_name(uint32_t name)
{
    if (nrg_recording_active())
        log_line("begin\t%s", text_of(name));
    open_spans++;
}

void nrg_span_begin_numbered(uint32_t name, int64_t number)
{
    if (nrg_recording_active())
        log_line("begin\t%s\t%lld", text_of(name), (long long)number);
    open_spans++;
}

void nrg_span_end(void)
{
    if (open_spans)
        open_spans--;
    if (nrg_recording_active())
        log_line("end");
}

unsigned nrg_span_depth(void)
{
    return open_spans;
}

void nrg_span_unwind(unsigned depth)
{
    while (open_spans > depth)
        nrg_span_end();
}

void nrg_span_past(uint32_t name, const char *track, const char *domain, int64_t begin_ns,
                   int64_t end_ns)
{
    log_line("past\t%s\t%s\t%s\t%lld\t%lld", text_of(name), track ? track : "",
             domain ? domain : "", (long long)begin_ns, (long long)end_ns);
}

void nrg_mark_name(uint32_t name)
{
    if (nrg_recording_active())
        log_line("mark\t%s", text_of(name));
}

void nrg_count_add_name(uint32_t name, int64_t amount)
{
    if (nrg_recording_active())
        log_line("count\t%s\t%lld", text_of(name), (long long)amount);
}

int nrg_recorder_start_with(const char *path, const struct nrg_recorder_settings *s)
{
    why[0] = '\0';
    if (strstr(path, "refuse")) {
        snprintf(why, sizeof why, "%.200s: refused", path);
        return -EACCES;
    }
    recording = 1;
    log_line("start\t%s\t%g\t%s\t%s\t%d", path, s->rate_hz, s->sensors ? s->sensors : "",
             s->root ? s->root : "", s->overwrite);
    return s->size == sizeof *s ? 0 : -EINVAL;
}

int nrg_recorder_note(const char *key, const char *value)
{
    log_line("note\t%s\t%s", key, value);
    return 0;
}

int nrg_recorder_model(const char *name, const char *format, const void *bytes, uint64_t size)
{
    log_line("model\t%s\t%s\t%.*s", name, format ? format : "", (int)size, (const char *)bytes);
    return 0;
}

/* 10 W, by a clock that goes on 1 s per reading. */
int nrg_recorder_read(struct nrg_recorder_reading *reading)
{
    static int64_t readings;
    log_line("read");
    reading->provenance = 0;
    reading->t_ns = ++readings * 1000000000;
    reading->energy_j = 10.0 * (double)readings;
    return recording ? 0 : -ENOENT;
}

int nrg_recorder_idle(int64_t begin_ns, int64_t end_ns)
{
    log_line("idle\t%d", end_ns > begin_ns);
    return 0;
}

int nrg_recorder_stop(void)
{
    log_line("stop");
    recording = 0;
    return 0;
}

const char *nrg_recorder_reason(void)
{
    return why;
}
