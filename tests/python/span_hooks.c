/*
 * A libnrg whose functions are set from Python by ctypes, for tests of nrg.torch
 * (recorder_standin.py): every event is there to be looked at, in the process that made it. Tests
 * only.
 */
#include <stddef.h>

#include "nrg/nrg.h"

struct span_hooks {
    int (*active)(void);
    uint32_t (*name)(const char *text, const char *kind, const char *detail);
    void (*begin)(uint32_t name);
    void (*begin_numbered)(uint32_t name, int64_t number);
    void (*end)(void);
    unsigned (*depth)(void);
    void (*unwind)(unsigned depth);
    void (*past)(uint32_t name, const char *track, const char *domain, int64_t begin_ns,
                 int64_t end_ns);
    void (*mark)(uint32_t name);
    void (*count)(uint32_t name, int64_t amount);
    int (*model)(const char *name, const char *format, const void *bytes, uint64_t size);
};

struct span_hooks span_hooks;

const char *nrg_version(void)
{
    return NRG_VERSION;
}

int nrg_recording_active(void)
{
    return span_hooks.active ? span_hooks.active() : 0;
}

uint32_t nrg_name_intern(const char *text, const char *kind, const char *detail)
{
    return span_hooks.name(text, kind, detail);
}

void nrg_span_begin_name(uint32_t name)
{
    span_hooks.begin(name);
}

void nrg_span_begin_numbered(uint32_t name, int64_t number)
{
    span_hooks.begin_numbered(name, number);
}

void nrg_span_end(void)
{
    span_hooks.end();
}

unsigned nrg_span_depth(void)
{
    return span_hooks.depth();
}

void nrg_span_unwind(unsigned depth)
{
    span_hooks.unwind(depth);
}

void nrg_span_past(uint32_t name, const char *track, const char *domain, int64_t begin_ns,
                   int64_t end_ns)
{
    span_hooks.past(name, track, domain, begin_ns, end_ns);
}

void nrg_mark_name(uint32_t name)
{
    span_hooks.mark(name);
}

void nrg_count_add_name(uint32_t name, int64_t amount)
{
    span_hooks.count(name, amount);
}

int nrg_recorder_model(const char *name, const char *format, const void *bytes, uint64_t size)
{
    return span_hooks.model(name, format, bytes, size);
}

int nrg_recorder_start_with(const char *path, const struct nrg_recorder_settings *settings)
{
    return 0;
}

int nrg_recorder_note(const char *key, const char *value)
{
    return 0;
}

int nrg_recorder_read(struct nrg_recorder_reading *reading)
{
    return 0;
}

int nrg_recorder_idle(int64_t begin_ns, int64_t end_ns)
{
    return 0;
}

int nrg_recorder_stop(void)
{
    return 0;
}

const char *nrg_recorder_reason(void)
{
    return "";
}
