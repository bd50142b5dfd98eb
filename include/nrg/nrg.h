/*
 * nrg: the energy profiler for machine learning. The one public header of libnrg.
 *
 * Opaque types; every unit is in a name; functions return 0 or a negative errno; nothing here
 * prints, exits or changes signal handling. All functions may be called from any thread.
 *
 * Spans. A program says what it is doing; `nrg run` (or a recorder in the same process) records
 * it beside the power, and `nrg attribute` says what each part cost:
 *
 *     nrg_span_begin("decode");
 *     ...
 *     nrg_count("tokens", 128);
 *     nrg_span_end();
 *
 * Spans nest per thread: an end closes what the same thread began last. Without a recorder a call
 * costs one branch. With one it costs reading a clock and writing 16 or 32 bytes to a ring of the
 * thread's own, without lock or system call; the recorder empties the rings. A ring that is full
 * drops events, whole spans at a time, and the reports say how many.
 *
 * After fork the child has rings of its own.
 */
#ifndef NRG_NRG_H
#define NRG_NRG_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0" */
const char *nrg_version(void);

/* 1 while a recorder listens to this process, 0 otherwise. */
int nrg_recording_active(void);

/*
 * A name, known by a number: cheaper to pass than a text, and it can have a kind ("step",
 * "epoch", "module", "backward", "operator", "layer", "phase", "counter", "mark"; NULL: "span")
 * and a detail (the class of a module; NULL: none). The same texts give the same number. 0 when
 * there is no recorder or no room: spans of that name are not recorded (an end still matches).
 * Numbers are valid in this process until the recorder ends; after fork the child may go on using
 * its parent's.
 */
uint32_t nrg_name(const char *text, const char *kind, const char *detail);

/* Begins a span of the calling thread. `name` is copied the first time. */
void nrg_span_begin(const char *name);
void nrg_span_begin_name(uint32_t name);
/* With a number of its own, such as that of the step. */
void nrg_span_begin_numbered(uint32_t name, int64_t number);
/* Ends what the calling thread began last. Without an open span it does nothing. */
void nrg_span_end(void);

/* How many spans the calling thread has open; for unwinding after an exception. */
unsigned nrg_span_depth(void);
/* Ends spans until `depth` are left. */
void nrg_span_unwind(unsigned depth);

/* A span that is already over, on the calling thread's track or on a track of its own for work
 * that another device did ("gpu-0"). Times are CLOCK_MONOTONIC ns. Spans given to one track must
 * not begin before the last one given has ended. `domain` NULL: the processors. */
void nrg_span_past(uint32_t name, const char *track, const char *domain, int64_t begin_ns,
                   int64_t end_ns);

/* Something that happened now. */
void nrg_mark(const char *name);
void nrg_mark_name(uint32_t name);
/* Work done: tokens, samples, requests. Adds up; reports give joules per unit. */
void nrg_count(const char *name, int64_t amount);
void nrg_count_name(uint32_t name, int64_t amount);

/*
 * A recorder inside this process, for programs and notebooks that `nrg run` did not start. Opens
 * the sensors, creates `path` and samples on threads of its own until nrg_recorder_stop, following
 * this process and its children. One at a time: -EBUSY when there is one, or when `nrg run` is
 * recording this process already. `options` may be NULL.
 *
 * An error's reason, for people, is in nrg_recorder_reason().
 */
struct nrg_recorder_settings {
    uint32_t size;       /* sizeof(struct nrg_recorder_settings) */
    int32_t overwrite;   /* an existing file is replaced */
    double rate_hz;      /* 0: 10 */
    const char *sensors; /* names as for `nrg run --sensor`, separated by commas; NULL: all */
    const char *root;    /* NULL: / */
};
int nrg_recorder_start(const char *path);
int nrg_recorder_start_with(const char *path, const struct nrg_recorder_settings *settings);
/* Metadata of the recording: note.KEY. Only while it runs. */
int nrg_recorder_note(const char *key, const char *value);
/* Keeps a model's file in the recording: `format` as in `nrg graph --format`. */
int nrg_recorder_model(const char *name, const char *format, const void *bytes, uint64_t size);
/*
 * Reads all sensors now and gives the energy since the recorder was started, the sum of domains
 * that a report's total would be. For deciding while measuring (how long, how often); results come
 * from the recording. -ENODATA when no sensor gives energy.
 */
struct nrg_recorder_reading {
    uint32_t size;      /* sizeof(struct nrg_recorder_reading), set by the caller */
    int32_t provenance; /* 0 measured, 1 derived, 2 estimated: the worst of what is in the sum */
    int64_t t_ns;       /* CLOCK_MONOTONIC, of the latest reading in the sum */
    double energy_j;
};
int nrg_recorder_read(struct nrg_recorder_reading *reading);
/* Says that the program did nothing in this time (CLOCK_MONOTONIC): the power then was idle power.
 */
int nrg_recorder_idle(int64_t begin_ns, int64_t end_ns);
/* Last readings; the file is complete when this returns. */
int nrg_recorder_stop(void);
/* Why the last of these calls failed in this thread, "" when it did not. */
const char *nrg_recorder_reason(void);

#ifdef __cplusplus
}
#endif

#endif
