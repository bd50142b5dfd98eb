/*
 * nrg: the energy profiler for machine learning. The one public header of libnrg.
 *
 * Spans. A program says what it is doing; `nrg run` (or a recorder in the same process) records
 * it beside the power, and `nrg attribute` says what each part cost:
 *
 *     nrg_span_begin("decode");
 *     ...
 *     nrg_count_add("tokens", 128);
 *     nrg_span_end();
 *
 * Spans nest per thread: an end closes what the same thread began last. Without a recorder a call
 * costs one branch. With one it costs reading a clock and writing 16 or 32 bytes to a ring of the
 * thread's own, without lock or system call; the recorder empties the rings. A ring that is full
 * drops events, whole spans at a time, and the reports say how many.
 *
 * What holds for every function:
 *
 * Threads: each may be called from any thread at any time, also before main, but not from a
 * signal handler. After fork the child has rings of its own and no open spans; what it marks goes
 * to its parent's recorder, but the child can't control that recorder.
 * Errors: functions that can fail return 0 or a negative errno. Marking functions return nothing:
 * whatever fails (no memory, a recorder that was killed) means that spans are missing, never that
 * the program stops. Nothing here prints, exits, changes signal handling or, in marking functions,
 * errno.
 * Texts: UTF-8, NUL-terminated, copied: the caller may change or free them when the call returns.
 * Texts longer than 16,384 bytes are cut; bytes that are not UTF-8 and control characters are
 * replaced.
 * Units: the unit is in each name; times are of CLOCK_MONOTONIC.
 *
 * The library needs libc alone. nrg_recorder_start loads the recorder, with the libraries that it
 * needs, from libnrg-recorder.so, which lies beside libnrg.so.
 */
#ifndef NRG_NRG_H
#define NRG_NRG_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this header. From 0.2.0 on, within one major version, programs built with an older one go on
 * working. */
#define NRG_VERSION       "0.2.0"
#define NRG_VERSION_MAJOR 0
#define NRG_VERSION_MINOR 2
#define NRG_VERSION_PATCH 0
#define NRG_VERSION_NUMBER                                                                         \
    (NRG_VERSION_MAJOR * 1000000 + NRG_VERSION_MINOR * 1000 + NRG_VERSION_PATCH)

/* The library's version, as NRG_VERSION was when it was built. Never NULL; static. */
const char *nrg_version(void);

/*
 * 1 while a recorder listens to this process, 0 otherwise. For leaving out work that only serves
 * marking; marks themselves need no such test.
 */
int nrg_recording_active(void);

/*
 * The number of a name, for the functions that end in _name: cheaper to pass than a text, and the
 * name can have a kind ("step", "epoch", "phase", "module", "backward", "operator", "layer",
 * "counter", "mark"; NULL: "span") and a detail (the class of a module; NULL: none). The same
 * three texts give the same number.
 *
 * Numbers are valid in this process until it ends, and in its children by fork: also when no
 * recorder listens yet, and with every recorder that comes later. They mean nothing to other
 * programs and in the next run.
 *
 * Takes a lock; meant to be called once per name. Returns 0 when text is NULL or there is no room
 * (all names of a process share 16 MB): spans, marks and counts of 0 are not recorded, and ends
 * still match.
 */
uint32_t nrg_name_intern(const char *text, const char *kind, const char *detail);

/*
 * Begins a span of the calling thread. A text is looked up by its address and then compared:
 * literals are fast, a buffer with another name each time is correct but slower. A span whose name
 * is NULL, or deeper than 1,024, is not recorded but must be ended like any other.
 */
void nrg_span_begin(const char *name);
/* The same with a number of nrg_name_intern. Other numbers are not recorded. */
void nrg_span_begin_name(uint32_t name);
/* The same, and the span has a number of its own, such as that of the step. */
void nrg_span_begin_numbered(uint32_t name, int64_t number);

/*
 * Ends what the calling thread began last; does nothing without an open span. A span that was
 * begun before the recorder started is not recorded, and its end does nothing.
 */
void nrg_span_end(void);

/*
 * How many spans the calling thread has open since the recorder started, 0 without one. With
 * nrg_span_unwind for leaving several spans at once, as after an exception.
 */
unsigned nrg_span_depth(void);
/* Ends spans of the calling thread until at most `depth` are open. */
void nrg_span_unwind(unsigned depth);

/*
 * A span that has already ended. `track` is a name for what did the work ("stream 7"), `domain` the
 * energy domain that it used ("gpu-0"). track NULL: the track is named after the domain. domain
 * NULL: the processors. Both NULL: the calling thread did the work. Spans of one track must be
 * given in order, and none may begin before the last one has ended; one that does is moved to that
 * end, and counted. Thread-safe like all others, but several threads that share a track must keep
 * the order themselves.
 */
void nrg_span_past(uint32_t name, const char *track, const char *domain, int64_t begin_ns,
                   int64_t end_ns);

/*
 * The same for work that a thread of this process launched earlier, such as a kernel of a GPU: the
 * span belongs below what that thread had open at launch_ns. `track` is a number of
 * nrg_track_intern, `tid` the thread's number as gettid() gives it. 0 as track: nothing is
 * recorded.
 */
void nrg_span_past_launched(uint32_t name, uint32_t track, int64_t begin_ns, int64_t end_ns,
                            int32_t tid, int64_t launch_ns);

/*
 * How many spans of this kind the calling thread can give now without any being left out: for a
 * thread that has many at once and can wait until the recorder has taken some. UINT_MAX without a
 * recorder, where nothing is recorded.
 */
unsigned nrg_span_room(void);

/*
 * The number of a track, by its name and domain as for nrg_span_past. 0 when both are NULL or there
 * is no room. Takes a lock; valid as long as numbers of nrg_name_intern.
 */
uint32_t nrg_track_intern(const char *track, const char *domain);

/* Something that happened now. NULL or 0: nothing is recorded. */
void nrg_mark(const char *name);
void nrg_mark_name(uint32_t name);

/*
 * Work done: tokens, samples, requests. Amounts of one name add up and belong to the span that the
 * thread has open; reports give joules for each. NULL or 0 as name: nothing is recorded.
 */
void nrg_count_add(const char *name, int64_t amount);
void nrg_count_add_name(uint32_t name, int64_t amount);

/*
 * A recorder inside this process, for programs and notebooks that `nrg run` did not start. One at
 * a time. Its functions take a lock and may wait for sensors and the disk: they are not for tight
 * loops. When one fails, nrg_recorder_reason() says why, for people.
 */
struct nrg_recorder_settings {
    uint32_t size;       /* sizeof(struct nrg_recorder_settings): the rest may grow */
    int32_t overwrite;   /* 1: an existing file is replaced */
    double rate_hz;      /* readings per second, at most 100000; 0: 10, with spans 100 */
    const char *sensors; /* names as for `nrg run --sensor`, separated by commas; NULL: all */
    const char *root;    /* where /sys, /proc and /dev are looked for; NULL: / */
};

/*
 * Opens the sensors, creates the recording `path` and samples on threads of its own until
 * nrg_recorder_stop, following this process and its children. The threads block all signals. A
 * program that ends through exit or return from main is stopped then. settings NULL: all 0.
 *
 * -EBUSY: there is a recorder in this process, or `nrg run` records it. -EINVAL: path is NULL or
 * empty, a setting is out of range, or size is not set. -EEXIST: the file is there and overwrite
 * is 0. -ELIBACC: libnrg-recorder.so, or a library that it needs, can't be loaded; -ELIBBAD: it is
 * of another version than libnrg. Other codes: why a sensor or the file could not be opened. After
 * a failure nothing runs.
 */
int nrg_recorder_start(const char *path);
int nrg_recorder_start_with(const char *path, const struct nrg_recorder_settings *settings);

/*
 * Keeps a text in the recording, as note.KEY. A later one of the same key replaces it. -ENOENT: no
 * recorder runs in this process. -EINVAL: key is NULL, empty or longer than 58 bytes, or value is
 * NULL.
 */
int nrg_recorder_note(const char *key, const char *value);

/*
 * Keeps a model's file in the recording, for reports that know its operators. `format` is as for
 * `nrg graph --format`; the bytes are copied. -ENOENT: no recorder runs. -EINVAL: something is
 * NULL, format is empty, or size is 0 or above 2 GiB. -ENOMEM.
 */
int nrg_recorder_model(const char *name, const char *format, const void *bytes, uint64_t size);

/* How a number was obtained, from best to worst: a sum has the worst of its parts. */
enum nrg_provenance {
    NRG_MEASURED = 0, /* by a sensor or meter */
    NRG_DERIVED = 1,  /* computed from what was measured */
    NRG_ESTIMATED = 2 /* by a model of the hardware */
};

struct nrg_recorder_reading {
    uint32_t size; /* sizeof(struct nrg_recorder_reading), set by the caller */
    enum nrg_provenance provenance;
    int64_t t_ns; /* of the latest reading in the sum */
    double energy_j;
};

/*
 * Reads all sensors now and gives the energy since the recorder was started: what the total of a
 * report would be. For deciding while measuring (how long, how often); results come from the
 * recording. -EINVAL: reading is NULL or its size is not set. -ENOENT: no recorder runs. -ENODATA:
 * no sensor gives energy. Fills *reading only when it returns 0.
 */
int nrg_recorder_read(struct nrg_recorder_reading *reading);

/*
 * Says that the program did nothing between these times: the power then was idle power. Several
 * are averaged. -ENOENT: no recorder runs. -EINVAL: the times are not in order, or not between the
 * recorder's start and now.
 */
int nrg_recorder_idle(int64_t begin_ns, int64_t end_ns);

/*
 * Takes last readings and closes the file, which is complete when this returns. Spans still open
 * have no end in the recording. -ENOENT: no recorder runs. Other codes: the file is damaged or
 * short; the recorder has ended all the same.
 */
int nrg_recorder_stop(void);

/*
 * Why the calling thread's last call of another nrg_recorder_ function failed, "" when it did not.
 * Never NULL; valid until that thread's next such call.
 */
const char *nrg_recorder_reason(void);

#ifdef __cplusplus
}
#endif

#endif
