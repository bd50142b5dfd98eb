/*
 * See recorder.h: the recorder's life and what its caller asks of it. A sensor that may block is
 * read by a thread of its own, and waiting for it has a limit: a hanging bus must not hold back the
 * workload's exit code.
 */
#include "record/sampler/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/isolate.h"
#include "record/machine_info.h"
#include "record/sampler/internal.h"
#include "record/thread.h"
#include "sensors/files.h"

#define PROCESS_PERIOD_NS (100 * NRG_NS_PER_MS)
#define SYSTEM_PERIOD_NS  NRG_NS_PER_S

void nrg_recorder_event(struct nrg_recorder *r, const char *kind, const char *source,
                        const char *detail)
{
    nrg_queue_push_event(&r->queue, kind, source, detail);
}

static void on_process_sample(void *arg, int64_t t_ns, const int64_t *values)
{
    struct nrg_recorder *r = arg;
    nrg_rows_add(&r->process_rows, t_ns, 0, values);
}

static void on_process(void *arg, const struct nrg_process_info *info)
{
    struct nrg_recorder *r = arg;
    nrg_queue_push(&r->queue, &(struct nrg_message){.kind = NRG_MSG_PROCESS, .process = *info});
}

static void on_process_note(void *arg, const char *detail)
{
    nrg_recorder_event(arg, "processes", "process", detail);
}

/* The thread was started and not joined. */
static void add_own_thread(struct nrg_recorder *r, pthread_t thread)
{
    if (r->n_threads < NRG_OWN_THREADS &&
        !pthread_getcpuclockid(thread, &r->threads[r->n_threads].clock))
        r->n_threads++;
}

/* In the measured process, the CPU time of the recorder's threads is not the workload's. */
static int64_t own_cpu_ns(void *arg, int32_t pid)
{
    struct nrg_recorder *r = arg;
    int64_t sum_ns = 0;
    for (size_t i = 0; r->inside && pid == (int32_t)getpid() && i < r->n_threads; i++) {
        struct timespec ts;
        if (!clock_gettime(r->threads[i].clock, &ts))
            r->threads[i].cpu_ns = (int64_t)ts.tv_sec * NRG_NS_PER_S + ts.tv_nsec;
        sum_ns += r->threads[i].cpu_ns;
    }
    return sum_ns;
}

/* What could not be opened or probed becomes a line in the report, not a failure. */
static void note_missing(struct nrg_recorder *r, const char *what, const char *why)
{
    struct nrg_event event = nrg_event_now("unavailable", what, why);
    nrg_store_event(r->store, &event);
}

static int open_feed(struct nrg_recorder *r, const struct nrg_found *found, double rate_hz,
                     bool by_name, struct nrg_error *err)
{
    bool slow = found->driver->flags & NRG_MAY_BLOCK, any = false;
    for (size_t c = 0; c < found->n_channels; c++)
        any |= found->wanted[c];
    if (!any || !found->driver->open)
        return 0;
    struct nrg_feed *feed = slow ? &r->slow[r->n_slow].feed : &r->feeds[r->n_feeds];
    int gpu_series = slow ? nrg_store_series(r->store, NRG_GPU_PROCESSES) : 0;
    int rc = nrg_feed_init(feed, r->ctx, found, rate_hz, &r->queue, r->store, gpu_series, err);
    if (!rc) {
        if (slow)
            r->slow[r->n_slow].pace = &r->pace;
        *(slow ? &r->n_slow : &r->n_feeds) += 1;
        feed->live = r->is_live ? &r->live : NULL;
        return feed->live && nrg_live_add(feed->live, found, feed->period_ns)
                   ? nrg_fail(err, -ENOMEM, found->sensor, "out of memory")
                   : 0;
    }
    nrg_feed_release(feed);
    if (by_name || found->required)
        return rc;
    note_missing(r, found->sensor, err->what);
    return 0;
}

static bool measures_cpu(const struct nrg_found *found)
{
    for (size_t c = 0; c < found->n_channels; c++)
        if (found->wanted[c] && found->channels[c].covers_cpu &&
            found->channels[c].provenance != NRG_ESTIMATED)
            return true;
    return false;
}

/*
 * What was found measures the processors, so no estimate was offered, but none of that is sure to
 * have a reading: it could not be opened, or may be silent. One that is called as a channel of the
 * estimate leaves no room for it.
 */
static bool needs_reserve(const struct nrg_recorder *r)
{
    bool found = false, sure = false;
    for (size_t f = 0; f < r->probe.n_found; f++)
        found |= measures_cpu(&r->probe.found[f]);
    for (size_t i = 0; i < r->n_feeds; i++)
        sure |= measures_cpu(r->feeds[i].found);
    for (size_t i = 0; i < r->n_slow; i++)
        sure |= measures_cpu(r->slow[i].feed.found) &&
                !(r->slow[i].feed.found->driver->flags & NRG_MAY_BE_SILENT);
    return found && !sure && !nrg_find_channel(&r->probe, "machine", NRG_QUANTITIES);
}

static int open_reserve(struct nrg_recorder *r, const struct nrg_recorder_options *options,
                        double rate_hz, struct nrg_error *err)
{
    static const char *const only[] = {"estimate", NULL};
    const struct nrg_sensor_options estimate = {.only = only,
                                                .cpu_idle_w = options->sensors.cpu_idle_w,
                                                .cpu_full_w = options->sensors.cpu_full_w};
    int rc = nrg_probe_all(&r->reserve, r->ctx, &estimate, err);
    r->reserve.options = NULL; /* they end with this function */
    if (rc || !r->reserve.n_found)
        return rc;
    nrg_store_text(r->store, NRG_META_RESERVE, only[0]);
    return open_feed(r, &r->reserve.found[0], rate_hz, false, err);
}

static int open_sensors(struct nrg_recorder *r, const struct nrg_recorder_options *options,
                        struct nrg_error *err)
{
    double rate_hz = options->rate_hz > 0 ? options->rate_hz : NRG_DEFAULT_RATE_HZ;
    int rc = nrg_probe_all(&r->probe, r->ctx, &options->sensors, err);
    if (rc)
        return rc;
    r->feeds = calloc(r->probe.n_found + 2, sizeof *r->feeds); /* and the reserve */
    r->slow = calloc(r->probe.n_found + 1, sizeof *r->slow);
    if (!r->feeds || !r->slow)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    for (size_t f = 0; !rc && f < r->probe.n_found; f++)
        rc = open_feed(r, &r->probe.found[f], rate_hz, options->sensors.only != NULL, err);
    if (!rc && !options->sensors.only && needs_reserve(r))
        rc = open_reserve(r, options, rate_hz, err);
    for (size_t u = 0; u < r->probe.n_unavailable; u++)
        note_missing(r, r->probe.unavailable[u].what, r->probe.unavailable[u].why);
    int64_t asked_ns = (int64_t)(1e9 / rate_hz);
    int64_t floor_ns = options->whole_system ? SYSTEM_PERIOD_NS : PROCESS_PERIOD_NS;
    r->process_period_ns = asked_ns > floor_ns ? asked_ns : floor_ns;
    return rc;
}

static int open_processes(struct nrg_recorder *r, const struct nrg_recorder_options *options)
{
    const struct nrg_proctree_events events = {on_process_sample, on_process, on_process_note, r,
                                               own_cpu_ns};
    r->process_ctx = *r->ctx;
    if (options->live_processes) {
        nrg_root_init(&r->process_ctx.root, NULL, NULL);
        r->process_ctx.root.lowest_fd = r->ctx->root.lowest_fd;
        if (!nrg_root_part_is_live(&r->ctx->root, NRG_PART_PROC))
            nrg_store_text(r->store, NRG_META_PROCESS_MACHINE, "another than the sensors'");
    }
    nrg_rows_init(&r->process_rows, NRG_P_COLUMNS);
    r->process_series = nrg_store_series(r->store, NRG_PROCESSES);
    int memory_series = nrg_store_series(r->store, NRG_PROCESS_MEMORY);
    r->tree = nrg_proctree_new(&r->process_ctx, options->whole_system, &events);
    if (!r->tree)
        return -ENOMEM;
    r->memory = nrg_memory_watch_new(&r->process_ctx, r->tree, &r->lock, &r->queue, memory_series);
    if (!r->memory)
        return -ENOMEM;
    nrg_store_text(r->store, "process_method", nrg_proctree_method(r->tree));
    return r->process_series < 0 ? r->process_series : memory_series < 0 ? memory_series : 0;
}

static int open_spans(struct nrg_recorder *r, const struct nrg_recorder_options *options)
{
    const struct nrg_span_segment *segment = options->spans;
    if (options->own_spans)
        r->own_series = nrg_store_series(r->store, NRG_SPANS);
    if (!segment || r->own_series < 0)
        return r->own_series < 0 ? r->own_series : 0;
    struct nrg_span_drain_options o = {.segment = segment,
                                       .queue = &r->queue,
                                       .pace = &r->pace,
                                       .cpu_period_ns = r->process_period_ns,
                                       .spans_series = nrg_store_series(r->store, NRG_SPANS),
                                       .threads_series = nrg_store_series(r->store, NRG_THREADS)};
    if (o.spans_series < 0 || o.threads_series < 0)
        return o.spans_series < 0 ? o.spans_series : o.threads_series;
    r->drain = nrg_span_drain_new(&o);
    return r->drain ? 0 : -ENOMEM;
}

int nrg_recorder_new(const struct nrg_context *ctx, const struct nrg_recorder_options *options,
                     struct nrg_recorder **out, struct nrg_error *err)
{
    struct nrg_recorder *r = calloc(1, sizeof *r);
    if (!r)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    r->ctx = ctx;
    r->inside = options->inside;
    r->is_live = options->inside || options->live;
    r->quick = options->quick;
    r->wake_fd = -1;
    nrg_queue_init(&r->queue);
    pthread_mutex_init(&r->lock, NULL);
    nrg_cond_init_monotonic(&r->stopping);
    nrg_live_init(&r->live);
    r->pace.period_ns = options->durable ? NRG_PACE_DURABLE_NS : NRG_PACE_STEADY_NS;
    r->slow_pace = options->rate_hz > 0 && options->rate_hz <= NRG_PACE_SLOW_HZ;
    int rc = nrg_store_create(options->path, options->overwrite, &r->store, err);
    if (!rc) {
        nrg_store_sync_every(r->store, options->durable ? NRG_PACE_DURABLE_SYNC_NS
                                       : r->slow_pace   ? NRG_PACE_SLOW_SYNC_NS
                                                        : NRG_PACE_SYNC_NS);
        rc = open_sensors(r, options, err);
    }
    if (!rc && ((rc = open_processes(r, options)) || (rc = open_spans(r, options))))
        nrg_fail(err, rc, options->path, "cannot prepare the recording: %s", strerror(-rc));
    if (!rc) {
        /* Not inside a program: by the time that it is written to, the number may be its file's. */
        r->wake_fd = r->inside ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        r->with_tsc = nrg_machine_info_write(ctx, r->store);
        rc = r->wake_fd < 0 && !r->inside ? nrg_fail(err, -errno, NULL, "no descriptor left") : 0;
    }
    if (rc) {
        nrg_store_discard(r->store);
        r->store = NULL;
        nrg_recorder_free(r);
        return rc;
    }
    *out = r;
    return 0;
}

const struct nrg_probe *nrg_recorder_sensors(const struct nrg_recorder *r)
{
    return &r->probe;
}

/* While the writing thread runs, the store belongs to it. */
int nrg_recorder_text(struct nrg_recorder *r, const char *key, const char *value)
{
    struct nrg_message m = {.kind = NRG_MSG_TEXT};
    if (!r->writing)
        return nrg_store_text(r->store, key, value);
    nrg_copy(m.text.key, sizeof m.text.key, key);
    m.text.value = strdup(value);
    return m.text.value ? nrg_queue_push(&r->queue, &m) : -ENOMEM;
}

int nrg_recorder_integer(struct nrg_recorder *r, const char *key, int64_t value)
{
    return r->writing ? -EBUSY : nrg_store_integer(r->store, key, value);
}

int nrg_recorder_graph(struct nrg_recorder *r, const char *name, const char *format,
                       const void *bytes, size_t size)
{
    struct nrg_message m = {.kind = NRG_MSG_GRAPH, .graph.size = size};
    if (!r->writing)
        return nrg_store_graph(r->store, name, format, bytes, size);
    m.graph.bytes = malloc(size + 1);
    if (!m.graph.bytes)
        return -ENOMEM;
    memcpy(m.graph.bytes, bytes, size);
    nrg_copy(m.graph.name, sizeof m.graph.name, name);
    nrg_copy(m.graph.format, sizeof m.graph.format, format);
    return nrg_queue_push(&r->queue, &m);
}

/* The threads that need the first readings. */
static int start_sampling(struct nrg_recorder *r)
{
    pthread_t thread;
    int rc = nrg_thread_start(&r->sampler, "nrg-sample", nrg_recorder_sample_loop, r);
    r->sampling = !rc;
    if (!rc && !(rc = nrg_memory_watch_start(r->memory, &thread))) {
        pthread_mutex_lock(&r->lock);
        add_own_thread(r, thread);
        add_own_thread(r, r->sampler);
        pthread_mutex_unlock(&r->lock);
    }
    return rc;
}

static int start_readers(struct nrg_recorder *r)
{
    pthread_t thread;
    int rc = nrg_isolate_thread(&r->writer, "nrg-write", nrg_recorder_write_loop, r);
    r->writing = !rc;
    if (!rc)
        add_own_thread(r, r->writer);
    for (size_t i = 0; !rc && i < r->n_slow; i++) {
        rc = nrg_slow_reader_start(&r->slow[i]);
        if (!rc)
            add_own_thread(r, r->slow[i].thread);
    }
    if (!rc && r->drain && !(rc = nrg_span_drain_start(r->drain, &thread)))
        add_own_thread(r, thread);
    return rc;
}

static void stop_sampling(struct nrg_recorder *r)
{
    if (!r->sampling)
        return;
    pthread_mutex_lock(&r->lock);
    r->sampler_stop = true;
    nrg_recorder_wake_sampler(r);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->sampler, NULL);
    r->sampling = false;
}

static void stop_threads(struct nrg_recorder *r)
{
    stop_sampling(r);
    if (r->memory)
        nrg_memory_watch_stop(r->memory);
    for (size_t i = 0; i < r->n_slow; i++)
        nrg_slow_reader_stop(&r->slow[i]);
    if (r->drain)
        nrg_span_drain_stop(r->drain);
    if (!r->writing)
        return;
    nrg_proctree_finish(r->tree);
    nrg_recorder_hand_over(r);
    nrg_queue_stop(&r->queue);
    pthread_join(r->writer, NULL);
    r->writing = false;
}

/* Leaves no file. */
static int give_up(struct nrg_recorder *r, int rc)
{
    stop_threads(r);
    nrg_store_discard(r->store);
    r->store = NULL;
    return rc;
}

int nrg_recorder_begin(struct nrg_recorder *r, struct nrg_error *err)
{
    int64_t now = nrg_now_ns();
    nrg_store_integer(r->store, "begin_ns", now);
    int rc = nrg_store_ready(r->store, err);
    if (rc)
        return give_up(r, rc);
    r->pace.begin_ns = now;
    rc = start_readers(r);
    nrg_recorder_first_readings(r, now);
    if (!rc)
        rc = start_sampling(r);
    if (!rc)
        return 0;
    return give_up(r, nrg_fail(err, rc, NULL, "cannot start a thread: %s%s", strerror(-rc),
                               rc == -EAGAIN ? ": nrg takes six or more of a limit of processes "
                                               "(pids.max of a cgroup, ulimit -u)"
                                             : ""));
}

int nrg_recorder_energy(struct nrg_recorder *r, struct nrg_live_sum *sum)
{
    return nrg_live_energy(&r->live, sum);
}

void nrg_recorder_leave_out(struct nrg_recorder *r, int32_t pid)
{
    pthread_mutex_lock(&r->lock);
    nrg_proctree_leave_out(r->tree, pid);
    pthread_mutex_unlock(&r->lock);
}

int nrg_recorder_follow(struct nrg_recorder *r, int32_t pid, bool is_new)
{
    pthread_mutex_lock(&r->lock);
    int rc = nrg_proctree_add_root(r->tree, pid, is_new);
    pthread_mutex_unlock(&r->lock);
    return rc;
}

void nrg_recorder_exiting(struct nrg_recorder *r, int32_t pid)
{
    pthread_mutex_lock(&r->lock);
    nrg_proctree_drain(r->tree);
    nrg_proctree_exiting(r->tree, pid);
    pthread_mutex_unlock(&r->lock);
    if (r->drain)
        nrg_span_drain_exiting(r->drain, pid);
}

void nrg_recorder_waited(struct nrg_recorder *r, int64_t cpu_ns)
{
    pthread_mutex_lock(&r->lock);
    nrg_proctree_waited(r->tree, cpu_ns);
    pthread_mutex_unlock(&r->lock);
}

void nrg_recorder_run(struct nrg_recorder *r, const struct nrg_run *run)
{
    if (!run->end_ns)
        nrg_live_begin(&r->live, run->begin_ns);
    nrg_queue_push(&r->queue, &(struct nrg_message){.kind = NRG_MSG_RUN, .run = *run});
    /* Written at once: a recorder that is killed now still leaves its run, with its first reading.
     */
    pthread_mutex_lock(&r->lock);
    nrg_recorder_hand_over_rows(r);
    if (!run->end_ns)
        nrg_recorder_read_soon(r);
    pthread_mutex_unlock(&r->lock);
    nrg_queue_wake(&r->queue);
}

/* How many spans there are, and how many are missing. The drain has stopped. */
static void store_span_totals(struct nrg_recorder *r)
{
    struct nrg_span_totals t =
        r->drain ? nrg_span_drain_totals(r->drain) : (struct nrg_span_totals){0};
    if (r->own_spans)
        t = (struct nrg_span_totals){.spans = r->own_spans};
    else if (!t.threads && !t.dropped && !t.refused)
        return;
    if (t.refused)
        nrg_store_integer(r->store, "spans_refused", (int64_t)t.refused);
    nrg_store_integer(r->store, "spans", (int64_t)t.spans);
    nrg_store_integer(r->store, "spans_dropped", (int64_t)t.dropped);
    for (size_t i = 0; i < NRG_SPAN_DROPS; i++)
        if (t.dropped_by[i])
            nrg_store_integer(r->store, nrg_span_drop_names[i].meta, (int64_t)t.dropped_by[i]);
    nrg_store_integer(r->store, "spans_late", (int64_t)t.late);
    nrg_store_integer(r->store, "spans_damaged", (int64_t)t.damaged);
}

int nrg_recorder_end(struct nrg_recorder *r, void (*keep)(void *, struct sqlite3 *), void *arg,
                     struct nrg_error *err)
{
    bool stopped;
    stop_threads(r);
    nrg_queue_wake(&r->queue);
    nrg_recorder_store_batch(r, nrg_queue_take(&r->queue, &stopped));
    nrg_store_integer(r->store, "end_ns", nrg_now_ns());
    nrg_store_integer(r->store, "ticks", (int64_t)r->status.ticks);
    nrg_store_integer(r->store, "late_ticks", (int64_t)r->status.late_ticks);
    store_span_totals(r);
    nrg_store_finish(r->store);
    const char *why = nrg_store_spilled(r->store);
    nrg_copy(r->status.spilled, sizeof r->status.spilled, why ? why : "");
    if (keep)
        keep(arg, nrg_store_database(r->store));
    int rc = nrg_store_close(r->store, err);
    r->store = NULL;
    return rc;
}

const struct nrg_recorder_status *nrg_recorder_status(const struct nrg_recorder *r)
{
    return &r->status;
}

void nrg_recorder_free(struct nrg_recorder *r)
{
    if (!r)
        return;
    if (r->store && r->pace.begin_ns)
        nrg_recorder_end(r, NULL, NULL, NULL);
    else
        nrg_store_discard(r->store); /* it never began */
    for (size_t i = 0; i < r->n_feeds; i++)
        nrg_feed_release(&r->feeds[i]);
    for (size_t i = 0; i < r->n_slow; i++)
        nrg_slow_reader_release(&r->slow[i]);
    nrg_memory_watch_free(r->memory);
    nrg_proctree_free(r->tree);
    nrg_span_drain_free(r->drain);
    nrg_rows_release(&r->process_rows);
    nrg_queue_release(&r->queue);
    nrg_live_release(&r->live);
    nrg_probe_release(&r->probe);
    nrg_probe_release(&r->reserve);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->stopping);
    if (r->wake_fd >= 0)
        close(r->wake_fd);
    free(r->feeds);
    free(r->slow);
    free(r);
}
