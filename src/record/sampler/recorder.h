/*
 * The recorder: reads sensors on absolute deadlines and writes a recording.
 *
 *   sampling thread   reads all sensors that do not block, the process tree, the clocks
 *   spans thread      empties the rings of programs that mark spans, asleep until there are any
 *   reading threads   one for each sensor that may block
 *   writing thread    encodes and commits: in the first second every 100 ms, then once a second,
 *                     or every three where it was asked to read twice a second or less
 *
 * Life: new (opens sensors and creates the file: whatever can fail fails here, before the workload
 * starts), begin, follow and run while the workload runs, end, free. The calling thread does no
 * work in between. After end the recording is closed and complete.
 *
 * Errors: a negative errno, with the reason in err. Threads: one caller at a time.
 */
#ifndef NRG_RECORD_SAMPLER_RECORDER_H
#define NRG_RECORD_SAMPLER_RECORDER_H

#include "base/context.h"
#include "record/format.h"
#include "sensors/registry.h"

struct sqlite3;
struct nrg_recorder;
struct nrg_span_segment;

/* When sensors that measure energy or power are read at NRG_QUICK_RATE_HZ, where they update so
 * fast: spans are short. */
enum nrg_quick { NRG_QUICK_NEVER, NRG_QUICK_WITH_SPANS, NRG_QUICK_ALWAYS };

struct nrg_recorder_options {
    const char *path;
    bool overwrite;
    bool durable;   /* a power cut may take a second, instead of five */
    double rate_hz; /* 0: NRG_DEFAULT_RATE_HZ */
    enum nrg_quick quick;
    bool whole_system;   /* follow all processes */
    bool live_processes; /* processes of this machine, whatever the sensors' root is */
    bool inside;         /* this process is measured, without the recorder's threads */
    struct nrg_sensor_options sensors;
    /* Where programs mark spans; outlives the recorder. NULL: nowhere. */
    const struct nrg_span_segment *spans;
    bool own_spans; /* the caller itself has spans to record; not together with `spans` */
    bool live;      /* energy is asked for while it records (nrg_recorder_energy) */
};

#define NRG_DEFAULT_RATE_HZ 10.0

/* What happened besides the values; valid after end. */
struct nrg_recorder_status {
    uint64_t ticks, late_ticks;
    char spilled[200]; /* why the recording could not be written to disk, "" when it could */
};

int nrg_recorder_new(const struct nrg_context *ctx, const struct nrg_recorder_options *options,
                     struct nrg_recorder **recorder, struct nrg_error *err);

/* Metadata, from new on until begin. -EBUSY later. */
int nrg_recorder_integer(struct nrg_recorder *recorder, const char *key, int64_t value);
/* Metadata and a model's file, from new on until end. */
int nrg_recorder_text(struct nrg_recorder *recorder, const char *key, const char *value);
int nrg_recorder_graph(struct nrg_recorder *recorder, const char *name, const char *format,
                       const void *bytes, size_t size);

/* What was found and chosen; valid until free. */
const struct nrg_probe *nrg_recorder_sensors(const struct nrg_recorder *recorder);

/* First reading of every sensor, then the threads. */
int nrg_recorder_begin(struct nrg_recorder *recorder, struct nrg_error *err);

/*
 * Waits until every sensor that pushes its readings (a meter) has given one of that time or later;
 * 0: any one. Such a sensor can't be asked for a reading at the edge of a run, so the run waits for
 * one. No longer than NRG_AWAIT_MOST_NS, and not at all without such sensors.
 */
#define NRG_AWAIT_MOST_NS NRG_NS_PER_S
void nrg_recorder_await_pushed(struct nrg_recorder *recorder, int64_t t_ns);

/* Reads everything, and gives the time at which a run begins with that. */
int64_t nrg_recorder_read_begin(struct nrg_recorder *recorder);
/* Reads everything now, what measures energy first; gives the time before: a run ends then. */
int64_t nrg_recorder_read_now(struct nrg_recorder *recorder);
/* The total that a report of the run would have by now (live.h). For recorders inside a process,
 * and those that were made for it (options->live). */
struct nrg_live_sum;
int nrg_recorder_energy(struct nrg_recorder *recorder, struct nrg_live_sum *sum);

/* is_new: it was just started, and all of its CPU time counts. -errno when it is not there. */
int nrg_recorder_follow(struct nrg_recorder *recorder, int32_t pid, bool is_new);
/* A child of nrg itself that is no part of the workload. Before anything is followed. */
void nrg_recorder_leave_out(struct nrg_recorder *recorder, int32_t pid);
void nrg_recorder_exiting(struct nrg_recorder *recorder, int32_t pid);
void nrg_recorder_waited(struct nrg_recorder *recorder, int64_t cpu_ns);
/* A run begins (end_ns 0), or is over. */
void nrg_recorder_run(struct nrg_recorder *recorder, const struct nrg_run *run);
void nrg_recorder_event(struct nrg_recorder *recorder, const char *kind, const char *source,
                        const char *detail);

/*
 * Spans of the caller's own (options->own_spans), between begin and end: names and tracks, with ids
 * of the caller's, then rows of NRG_S_COLUMNS that refer to them, in order of time over all calls.
 * Rows are taken over and left empty. 0 or -ENOMEM.
 */
struct nrg_rows;
int nrg_recorder_span_name(struct nrg_recorder *recorder, int64_t id, const char *kind,
                           const char *text);
int nrg_recorder_span_track(struct nrg_recorder *recorder, int64_t id, const char *name);
void nrg_recorder_span_rows(struct nrg_recorder *recorder, struct nrg_rows *rows, uint64_t begins);

/*
 * Last readings, threads joined, file closed. -errno when the file is not complete. `keep`, if
 * given, is called with the complete database before it is closed: a report is made from what was
 * written, whatever lies at its path by then, or could not be written there.
 */
int nrg_recorder_end(struct nrg_recorder *recorder,
                     void (*keep)(void *arg, struct sqlite3 *database), void *arg,
                     struct nrg_error *err);
const struct nrg_recorder_status *nrg_recorder_status(const struct nrg_recorder *recorder);
void nrg_recorder_free(struct nrg_recorder *recorder);

#endif
