/*
 * See inprocess.h. The recorder of nrg.h inside the measured process, on top of the recorder that
 * `nrg run` uses. It follows this process and its children, without the CPU time of its own
 * threads.
 *
 * There is one per process, so its state is static, like that of the spans' client. The shared
 * memory is made once and kept for the next recorder, because a thread may be writing a span to it
 * at any moment. After fork the child has no recorder, but the spans that it marks go to its
 * parent's. A recorder that still runs when the program exits is stopped.
 *
 * The program may close descriptors that are not its own. The recording is held in a table that it
 * does not reach (record/isolate.h); sensors have high numbers, and end as sensors that are gone.
 */
#include "mark/inprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "record/isolate.h"
#include "record/read/replay.h"
#include "record/sampler/live.h"
#include "record/sampler/recorder.h"
#include "record/spans/segment.h"

#define MAX_SENSORS 64
#define MAX_RATE_HZ 1e5
#define MAX_MODEL   (UINT64_C(1) << 31)

static struct {
    pthread_mutex_t lock;
    struct nrg_recorder *recorder; /* NULL: not running */
    struct nrg_recorder *parents;  /* after fork: not ours to touch */
    struct nrg_context ctx;
    struct nrg_span_segment segment;
    struct nrg_run run;
    int64_t idle_runs;
    const struct nrg_inprocess_host *host;
    bool registered; /* the handlers of fork and exit */
} inside = {.lock = PTHREAD_MUTEX_INITIALIZER, .segment = {.fd = -1}};

static void after_fork_in_child(void)
{
    pthread_mutex_init(&inside.lock, NULL);
    if (inside.recorder)
        inside.parents = inside.recorder;
    inside.recorder = NULL;
    inside.segment = (struct nrg_span_segment){.fd = -1};
    nrg_isolate_forget();
}

static int stop_recorder(struct nrg_error *err);

static void stop_at_exit(void)
{
    stop_recorder(NULL);
}

/* Caller holds the lock. */
static int register_handlers(void)
{
    if (inside.registered)
        return 0;
    int rc = pthread_atfork(NULL, NULL, after_fork_in_child);
    if (!rc)
        rc = atexit(stop_at_exit) ? ENOMEM : 0;
    inside.registered = !rc;
    return -rc;
}

struct wanted_sensors {
    char text[1024];
    const char *names[MAX_SENSORS + 2];
    size_t n;
};

/* "rapl,replay:x.csv" as a list; with names given, the machine's load is read as well. */
static int split_sensors(struct wanted_sensors *w, const char *text, struct nrg_error *err)
{
    bool load = false;
    char *rest = w->text, *name;
    w->n = 0;
    if (!text || !*text)
        return 0;
    if (strlen(text) >= sizeof w->text)
        return nrg_fail(err, -EINVAL, NULL, "too many sensors are named");
    nrg_copy(w->text, sizeof w->text, text);
    while ((name = strsep(&rest, ","))) {
        name += strspn(name, " ");
        if (!*name)
            continue;
        if (w->n >= MAX_SENSORS)
            return nrg_fail(err, -EINVAL, NULL, "too many sensors are named");
        load |= !strncmp(name, "machine", 7) || !strncmp(name, "replay", 6);
        w->names[w->n++] = name;
    }
    if (!load)
        w->names[w->n++] = "machine";
    w->names[w->n] = NULL;
    return 0;
}

/* The settings of this version from those of the caller's, which may be older. */
static int take_settings(struct nrg_recorder_settings *s, const struct nrg_recorder_settings *given,
                         struct nrg_error *err)
{
    *s = (struct nrg_recorder_settings){0};
    if (given && given->size < sizeof given->size)
        return nrg_fail(err, -EINVAL, NULL, "the settings' size is not set");
    if (given)
        memcpy(s, given, given->size < sizeof *s ? given->size : sizeof *s);
    if (s->rate_hz != 0 && !(s->rate_hz > 0 && s->rate_hz <= MAX_RATE_HZ))
        return nrg_fail(err, -EINVAL, NULL, "a rate is more than 0 and at most 100000 Hz");
    return 0;
}

static void note_command_line(struct nrg_recorder *recorder)
{
    char raw[4096], clean[1024];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, raw, sizeof raw);
    if (fd >= 0)
        close(fd);
    while (n > 0 && !raw[n - 1])
        n--;
    for (ssize_t i = 0; i < n; i++)
        if (!raw[i])
            raw[i] = ' ';
    nrg_copy_clean(clean, sizeof clean, raw, n > 0 ? (size_t)n : 0);
    nrg_recorder_text(recorder, "command_line", clean);
}

/* The run begins: from now on readings, processes and marks count. */
static void begin_run(struct nrg_recorder *recorder, const struct nrg_error *no_spans)
{
    inside.run = (struct nrg_run){.id = 1, .kind = "run", .exit_code = -1};
    inside.idle_runs = 0;
    nrg_recorder_follow(recorder, (int32_t)getpid(), false);
    inside.run.begin_ns = nrg_recorder_read_begin(recorder);
    nrg_recorder_run(recorder, &inside.run);
    if (no_spans->code)
        nrg_recorder_event(recorder, "unavailable", "spans", no_spans->what);
    else
        inside.host->attach(inside.segment.header);
    inside.recorder = recorder;
}

static int open_recorder(const char *path, const struct nrg_recorder_settings *s,
                         struct nrg_error *no_spans, struct nrg_recorder **recorder,
                         struct nrg_error *err)
{
    struct wanted_sensors sensors = {0};
    int rc = split_sensors(&sensors, s->sensors, err);
    if (rc)
        return rc;
    if (!inside.segment.header)
        nrg_span_segment_init(&inside.segment, true, no_spans);
    struct nrg_recorder_options o = {
        .path = path,
        .overwrite = s->overwrite,
        .rate_hz = s->rate_hz,
        .quick = s->rate_hz > 0 ? NRG_QUICK_NEVER : NRG_QUICK_WITH_SPANS,
        .live_processes = true,
        .inside = true,
        .sensors = {.only = sensors.n ? sensors.names : NULL},
        .spans = inside.segment.header ? &inside.segment : NULL,
    };
    rc = nrg_recorder_new(&inside.ctx, &o, recorder, err);
    if (rc == -EEXIST) /* the store speaks of the program's options */
        return nrg_fail(err, rc, path, "exists already");
    if (rc)
        return rc;
    note_command_line(*recorder);
    rc = nrg_recorder_begin(*recorder, err);
    if (rc)
        nrg_recorder_free(*recorder);
    return rc;
}

/* Caller holds the lock. */
static int start_locked(const char *path, const struct nrg_recorder_settings *given,
                        struct nrg_error *err)
{
    struct nrg_recorder_settings s;
    struct nrg_recorder *recorder = NULL;
    struct nrg_error no_spans = {0};
    int rc = register_handlers();
    if (rc)
        return nrg_fail(err, rc, NULL, "%s", strerror(-rc));
    if (inside.recorder)
        return nrg_fail(err, -EBUSY, NULL, "there is a recorder in this process already");
    if (inside.host->recording_active())
        return nrg_fail(err, -EBUSY, NULL, "this process is being recorded already");
    if (!path || !*path)
        return nrg_fail(err, -EINVAL, NULL, "a recording needs a file name");
    if ((rc = take_settings(&s, given, err)))
        return rc;
    inside.ctx = (struct nrg_context){.open_recording = nrg_replay_recording_open};
    if ((rc = nrg_root_init(&inside.ctx.root, s.root, err)))
        return rc;
    nrg_root_complete(&inside.ctx.root, NRG_PART_PROC);
    nrg_root_stay_high(&inside.ctx.root);
    nrg_isolate_begin();
    rc = open_recorder(path, &s, &no_spans, &recorder, err);
    if (rc)
        nrg_root_release(&inside.ctx.root);
    else
        begin_run(recorder, &no_spans);
    return rc;
}

/* Takes the lock. When no recorder runs it fails, without the lock. */
static int lock_running(struct nrg_error *err)
{
    pthread_mutex_lock(&inside.lock);
    if (inside.recorder)
        return 0;
    pthread_mutex_unlock(&inside.lock);
    return nrg_fail(err, -ENOENT, NULL, NRG_INPROCESS_NONE);
}

static int unlock_with(int rc)
{
    pthread_mutex_unlock(&inside.lock);
    return rc;
}

static int start_recorder(const struct nrg_inprocess_host *host, const char *path,
                          const struct nrg_recorder_settings *settings, struct nrg_error *err)
{
    const struct timespec now = {0};
    sigset_t limit, before;
    sigemptyset(&limit);
    sigaddset(&limit,
              SIGXFSZ); /* a recording beyond the program's limit is an error, not its end */
    pthread_sigmask(SIG_BLOCK, &limit, &before);
    pthread_mutex_lock(&inside.lock);
    inside.host = host;
    int rc = unlock_with(start_locked(path, settings, err));
    if (!sigismember(&before, SIGXFSZ))
        sigtimedwait(&limit, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static int add_note(const char *key, const char *value, struct nrg_error *err)
{
    char full[64];
    int rc = lock_running(err);
    if (rc)
        return rc;
    if (!key || !*key || !value || strlen(key) + sizeof "note." > sizeof full)
        return unlock_with(
            nrg_fail(err, -EINVAL, NULL, "a note has a key of 1 to 58 bytes, and a value"));
    snprintf(full, sizeof full, "note.%s", key);
    if ((rc = nrg_recorder_text(inside.recorder, full, value)))
        nrg_fail(err, rc, NULL, "out of memory");
    return unlock_with(rc);
}

static int keep_model(const char *name, const char *format, const void *bytes, uint64_t size,
                      struct nrg_error *err)
{
    int rc = lock_running(err);
    if (rc)
        return rc;
    if (!name || !format || !*format || !bytes || !size || size > MAX_MODEL)
        rc = nrg_fail(err, -EINVAL, NULL, "a model has a name, a format, and 1 byte to 2 GB");
    else if ((rc = nrg_recorder_graph(inside.recorder, name, format, bytes, (size_t)size)))
        nrg_fail(err, rc, NULL, "out of memory");
    return unlock_with(rc);
}

static int read_energy(struct nrg_recorder_reading *reading, struct nrg_error *err)
{
    struct nrg_live_sum sum;
    if (!reading || reading->size < sizeof *reading)
        return nrg_fail(err, -EINVAL, NULL, "the reading's size is not set");
    int rc = lock_running(err);
    if (rc)
        return rc;
    nrg_recorder_read_now(inside.recorder);
    rc = unlock_with(nrg_recorder_energy(inside.recorder, &sum));
    if (rc == -ENOMEM)
        return nrg_fail(err, rc, NULL, "out of memory");
    if (rc)
        return nrg_fail(err, rc, NULL, "no sensor gives energy here: see nrg sensors");
    *reading = (struct nrg_recorder_reading){.size = sizeof *reading,
                                             .provenance = sum.provenance,
                                             .t_ns = sum.t_ns,
                                             .energy_j = sum.energy_j};
    return 0;
}

static int note_idle(int64_t begin_ns, int64_t end_ns, struct nrg_error *err)
{
    int rc = lock_running(err);
    if (rc)
        return rc;
    if (begin_ns < inside.run.begin_ns || end_ns <= begin_ns || end_ns > nrg_now_ns())
        return unlock_with(
            nrg_fail(err, -EINVAL, NULL, "idle time lies between the recorder's start and now"));
    struct nrg_run idle = {.id = 2 + inside.idle_runs++,
                           .kind = "baseline",
                           .exit_code = -1,
                           .begin_ns = begin_ns,
                           .end_ns = end_ns};
    nrg_recorder_run(inside.recorder, &idle);
    return unlock_with(0);
}

static int stop_recorder(struct nrg_error *err)
{
    int rc = lock_running(err);
    if (rc)
        return rc;
    struct nrg_recorder *recorder = inside.recorder;
    inside.recorder = NULL;
    inside.host->detach();
    inside.run.end_ns = nrg_recorder_read_now(recorder);
    nrg_recorder_run(recorder, &inside.run);
    rc = nrg_recorder_end(recorder, NULL, NULL, err);
    nrg_recorder_free(recorder);
    nrg_root_release(&inside.ctx.root);
    return unlock_with(rc);
}

__attribute__((visibility("default"))) const struct nrg_inprocess nrg_inprocess = {
    .version = NRG_VERSION,
    .start = start_recorder,
    .note = add_note,
    .model = keep_model,
    .read = read_energy,
    .idle = note_idle,
    .stop = stop_recorder,
};
