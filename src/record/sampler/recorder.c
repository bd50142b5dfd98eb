/*
 * See recorder.h. The sampling thread sleeps until the next deadline of anybody, in ppoll where a
 * descriptor may have news before; all deadlines start at the same instant, so that equal periods
 * share a wake-up. Its lock is only contended at the edges of a run. A sensor that may block is
 * read by a thread of its own and asked, never waited for without limit: a hanging bus must not
 * keep the workload's exit code.
 */
#include "record/sampler/recorder.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/sampler/feed.h"
#include "record/machine_info.h"
#include "record/sampler/memory_watch.h"
#include "record/own_cpu.h"
#include "record/sampler/proctree.h"
#include "record/recorder_spans.h"
#include "record/series.h"
#include "record/sampler/slow_reader.h"
#include "record/store/writer.h"
#include "record/thread.h"

#define COMMIT_NS         NRG_NS_PER_S
#define PROCESS_PERIOD_NS (100 * NRG_NS_PER_MS)
#define SYSTEM_PERIOD_NS  NRG_NS_PER_S
#define CLOCK_STEP_NS     (100 * NRG_NS_PER_MS)

struct nrg_recorder {
    const struct nrg_context *ctx;
    struct nrg_context process_ctx; /* the root that processes are looked up in */
    struct nrg_probe probe;
    struct nrg_store *store;
    struct nrg_queue queue;
    struct nrg_feed *feeds; /* read by the sampling thread */
    size_t n_feeds;
    struct nrg_slow_reader *slow; /* each on a thread of its own */
    size_t n_slow;
    struct nrg_proctree *tree;
    struct nrg_memory_watch *memory;
    struct nrg_recorder_spans spans;
    bool inside;
    struct nrg_live live; /* of a recorder inside only */
    struct nrg_own_cpu own_cpu;
    struct nrg_rows process_rows;
    int process_series, memory_series;
    int64_t process_period_ns, process_next_ns, commit_next_ns, clock_offset_ns;
    int with_tsc, wake_fd;
    pthread_mutex_t lock; /* feeds, tree, process_rows, own_cpu */
    pthread_cond_t stopping;
    pthread_t sampler, writer;
    bool sampling, writing, sampler_stop; /* which threads run */
    struct nrg_recorder_status status;
};

static struct nrg_event make_event(const char *kind, const char *source, const char *detail)
{
    struct nrg_event event = {.t_ns = nrg_now_ns()};
    nrg_copy(event.kind, sizeof event.kind, kind);
    nrg_copy(event.source, sizeof event.source, source);
    nrg_copy(event.detail, sizeof event.detail, detail);
    return event;
}

void nrg_recorder_event(struct nrg_recorder *r, const char *kind, const char *source,
                        const char *detail)
{
    struct nrg_message *m = nrg_message_new(&r->queue, NRG_MSG_EVENT);
    if (m)
        m->event = make_event(kind, source, detail);
    nrg_queue_push(&r->queue, m);
}

static void on_process_sample(void *arg, int64_t t_ns, const int64_t *values)
{
    struct nrg_recorder *r = arg;
    nrg_rows_add(&r->process_rows, t_ns, 0, values);
}

static void on_process(void *arg, const struct nrg_process_info *info)
{
    struct nrg_recorder *r = arg;
    struct nrg_message *m = nrg_message_new(&r->queue, NRG_MSG_PROCESS);
    if (m)
        m->process = *info;
    nrg_queue_push(&r->queue, m);
}

static void on_process_note(void *arg, const char *detail)
{
    nrg_recorder_event(arg, "processes", "process", detail);
}

static int64_t own_cpu_ns(void *arg, int32_t pid)
{
    struct nrg_recorder *r = arg;
    return r->inside && pid == (int32_t)getpid() ? nrg_own_cpu_ns(&r->own_cpu) : 0;
}

static void apply(struct nrg_recorder *r, const struct nrg_message *m)
{
    switch (m->kind) {
    case NRG_MSG_ROWS:
        nrg_store_rows(r->store, m->series, &m->rows);
        break;
    case NRG_MSG_PROCESS:
        nrg_store_process(r->store, &m->process);
        break;
    case NRG_MSG_EVENT:
        nrg_store_event(r->store, &m->event);
        break;
    case NRG_MSG_CLOCK:
        nrg_store_clock(r->store, &m->clock);
        break;
    case NRG_MSG_RUN:
        nrg_store_run(r->store, &m->run);
        break;
    case NRG_MSG_TEXT:
        nrg_store_text(r->store, m->text.key, m->text.value);
        break;
    case NRG_MSG_INTEGER:
        nrg_store_integer(r->store, m->integer.key, m->integer.value);
        break;
    case NRG_MSG_GRAPH:
        nrg_store_graph(r->store, m->graph.name, m->graph.format, m->graph.bytes, m->graph.size);
        break;
    case NRG_MSG_SPAN_NAME:
    case NRG_MSG_SPAN_TRACK:
    case NRG_MSG_PAST_ROWS:
        nrg_recorder_spans_apply(&r->spans, m);
        break;
    }
}

static void store_batch(struct nrg_recorder *r, struct nrg_message *list)
{
    bool spilled = nrg_store_spilled(r->store) != NULL;
    while (list) {
        struct nrg_message *next = list->next;
        apply(r, list);
        /* A burst of spans is written as it comes: all of it at once would be much memory. */
        if (list->kind == NRG_MSG_ROWS && list->rows.n >= NRG_MERGE_ROWS)
            nrg_store_commit(r->store);
        nrg_queue_done(&r->queue, list);
        list = next;
    }
    nrg_store_commit(r->store);
    const char *why = nrg_store_spilled(r->store);
    if (why && !spilled) {
        struct nrg_event event = make_event("disk", "recording", why);
        nrg_store_event(r->store, &event);
        nrg_log(
            r->ctx, NRG_WARNING,
            "the recording can't be written (%s): going on in memory, the command is not affected",
            why);
    }
}

static void *write_loop(void *arg)
{
    struct nrg_recorder *r = arg;
    bool stop = false;
    while (!stop)
        store_batch(r, nrg_queue_take(&r->queue, &stop));
    return NULL;
}

static void hand_over_processes(struct nrg_recorder *r)
{
    struct nrg_message *m = r->process_rows.n ? nrg_message_new(&r->queue, NRG_MSG_ROWS) : NULL;
    if (!m)
        return;
    m->series = r->process_series;
    nrg_rows_init(&m->rows, NRG_P_COLUMNS);
    if (nrg_rows_append(&m->rows, &r->process_rows)) {
        nrg_message_free(m);
        return;
    }
    r->process_rows.n = 0;
    nrg_queue_push(&r->queue, m);
}

static void check_clock(struct nrg_recorder *r)
{
    struct nrg_message *m = nrg_message_new(&r->queue, NRG_MSG_CLOCK);
    struct nrg_clock_pair pair = nrg_clock_pair_now(r->with_tsc);
    int64_t offset = pair.real_ns - pair.mono_ns, step = offset - r->clock_offset_ns;
    if (m)
        m->clock = pair;
    nrg_queue_push(&r->queue, m);
    if (r->clock_offset_ns && (step > CLOCK_STEP_NS || step < -CLOCK_STEP_NS)) {
        char detail[120];
        snprintf(detail, sizeof detail,
                 "the wall clock was set by %+.3f s; durations and energies are not affected",
                 (double)step / 1e9);
        nrg_recorder_event(r, "clock-step", "clock", detail);
    }
    r->clock_offset_ns = offset;
}

/* Everything collected so far goes to the writer. Caller holds the lock. */
static void hand_over(struct nrg_recorder *r)
{
    for (size_t i = 0; i < r->n_feeds; i++)
        nrg_feed_hand_over(&r->feeds[i]);
    hand_over_processes(r);
    check_clock(r);
    nrg_queue_wake(&r->queue);
}

static void read_due(struct nrg_recorder *r, int64_t now)
{
    for (size_t i = 0; i < r->n_feeds; i++) {
        struct nrg_feed *feed = &r->feeds[i];
        if (!feed->state || feed->next_ns > now || feed->found->driver->fd)
            continue;
        nrg_feed_read(feed);
        r->status.ticks++;
        r->status.late_ticks += nrg_feed_schedule(feed, now);
    }
    if (r->process_next_ns <= now) {
        nrg_proctree_poll(r->tree);
        r->process_next_ns +=
            r->process_period_ns * (1 + (now - r->process_next_ns) / r->process_period_ns);
    }
    if (r->commit_next_ns <= now) {
        hand_over(r);
        r->commit_next_ns += COMMIT_NS * (1 + (now - r->commit_next_ns) / COMMIT_NS);
    }
}

static int64_t next_deadline(const struct nrg_recorder *r)
{
    int64_t next = r->commit_next_ns < r->process_next_ns ? r->commit_next_ns : r->process_next_ns;
    for (size_t i = 0; i < r->n_feeds; i++)
        if (r->feeds[i].state && !r->feeds[i].found->driver->fd && r->feeds[i].next_ns < next)
            next = r->feeds[i].next_ns;
    return next;
}

#define MAX_POLLED 34

/* fds[0] wakes us, fds[1] is the connector, the rest are sensors that push. */
static nfds_t fill_polled(const struct nrg_recorder *r, struct pollfd *fds, size_t *feed_of)
{
    nfds_t n = 2;
    fds[0] = (struct pollfd){.fd = r->wake_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = nrg_proctree_fd(r->tree), .events = POLLIN};
    for (size_t i = 0; i < r->n_feeds && n < MAX_POLLED; i++) {
        if (r->feeds[i].state && r->feeds[i].found->driver->fd) {
            feed_of[n] = i;
            fds[n++] = (struct pollfd){.fd = r->feeds[i].found->driver->fd(r->feeds[i].state),
                                       .events = POLLIN};
        }
    }
    return n;
}

static void poll_until(struct nrg_recorder *r, int64_t deadline_ns)
{
    struct pollfd fds[MAX_POLLED];
    size_t feed_of[MAX_POLLED];
    nfds_t n = fill_polled(r, fds, feed_of);
    int64_t wait = deadline_ns - nrg_now_ns();
    struct timespec ts = {wait / NRG_NS_PER_S, wait % NRG_NS_PER_S};
    if (wait <= 0)
        return;
    pthread_mutex_unlock(&r->lock);
    int ready = ppoll(fds, n, &ts, NULL);
    pthread_mutex_lock(&r->lock);
    if (ready <= 0)
        return;
    if (fds[1].revents)
        nrg_proctree_drain(r->tree);
    for (nfds_t i = 2; i < n; i++)
        if (fds[i].revents)
            nrg_feed_read(&r->feeds[feed_of[i]]);
}

/* Nobody but the clock and stop_threads can wake us. */
static bool only_deadlines(const struct nrg_recorder *r)
{
    bool pushed = nrg_proctree_fd(r->tree) >= 0;
    for (size_t i = 0; i < r->n_feeds; i++)
        pushed |= r->feeds[i].found->driver->fd != NULL;
    return !pushed;
}

static void *sample_loop(void *arg)
{
    struct nrg_recorder *r = arg;
    pthread_mutex_lock(&r->lock);
    bool sleep_only = only_deadlines(r);
    while (!r->sampler_stop) {
        int64_t deadline_ns = next_deadline(r);
        if (!sleep_only)
            poll_until(r, deadline_ns);
        else if (deadline_ns > nrg_now_ns()) /* a tenth cheaper than ppoll */
            nrg_cond_wait_until(&r->stopping, &r->lock, deadline_ns);
        read_due(r, nrg_now_ns());
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* What could not be opened or probed becomes a line in the report, not a failure. */
static void note_missing(struct nrg_recorder *r, const char *what, const char *why)
{
    struct nrg_event event = make_event("unavailable", what, why);
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
        *(slow ? &r->n_slow : &r->n_feeds) += 1;
        feed->live = r->inside ? &r->live : NULL;
        return feed->live && nrg_live_add(feed->live, found)
                   ? nrg_fail(err, -ENOMEM, found->sensor, "out of memory")
                   : 0;
    }
    nrg_feed_release(feed);
    if (by_name || found->required)
        return rc;
    note_missing(r, found->sensor, err->what);
    return 0;
}

static int open_sensors(struct nrg_recorder *r, const struct nrg_recorder_options *options,
                        struct nrg_error *err)
{
    double rate_hz = options->rate_hz > 0 ? options->rate_hz : NRG_DEFAULT_RATE_HZ;
    int rc = nrg_probe_all(&r->probe, r->ctx, &options->sensors, err);
    if (rc)
        return rc;
    r->feeds = calloc(r->probe.n_found + 1, sizeof *r->feeds);
    r->slow = calloc(r->probe.n_found + 1, sizeof *r->slow);
    if (!r->feeds || !r->slow)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    for (size_t f = 0; !rc && f < r->probe.n_found; f++)
        rc = open_feed(r, &r->probe.found[f], rate_hz, options->sensors.only != NULL, err);
    nrg_live_choose(&r->live);
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
    if (options->live_processes)
        nrg_root_init(&r->process_ctx.root, NULL, NULL);
    nrg_rows_init(&r->process_rows, NRG_P_COLUMNS);
    r->process_series = nrg_store_series(r->store, NRG_PROCESSES);
    r->memory_series = nrg_store_series(r->store, NRG_PROCESS_MEMORY);
    r->tree = nrg_proctree_new(&r->process_ctx, options->whole_system, &events);
    if (!r->tree)
        return -ENOMEM;
    r->memory =
        nrg_memory_watch_new(&r->process_ctx, r->tree, &r->lock, &r->queue, r->memory_series);
    if (!r->memory)
        return -ENOMEM;
    nrg_store_text(r->store, "process_method", nrg_proctree_method(r->tree));
    return r->process_series < 0 ? r->process_series : r->memory_series < 0 ? r->memory_series : 0;
}

int nrg_recorder_new(const struct nrg_context *ctx, const struct nrg_recorder_options *options,
                     struct nrg_recorder **out, struct nrg_error *err)
{
    struct nrg_recorder *r = calloc(1, sizeof *r);
    if (!r)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    r->ctx = ctx;
    r->inside = options->inside;
    r->wake_fd = -1;
    nrg_queue_init(&r->queue);
    pthread_mutex_init(&r->lock, NULL);
    nrg_cond_init_monotonic(&r->stopping);
    nrg_live_init(&r->live);
    int rc = nrg_store_create(options->path, options->overwrite, &r->store, err);
    if (!rc)
        rc = open_sensors(r, options, err);
    if (!rc && ((rc = open_processes(r, options)) ||
                (rc = nrg_recorder_spans_init(&r->spans, options->spans, r->store, &r->queue,
                                              r->process_period_ns))))
        nrg_fail(err, rc, options->path, "cannot prepare the recording: %s", strerror(-rc));
    if (!rc) {
        r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        r->with_tsc = nrg_machine_info_write(ctx, r->store);
        rc = r->wake_fd < 0 ? nrg_fail(err, -errno, NULL, "no descriptor left") : 0;
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

/* While the writer runs, the store is its own. */
static int queue_text(struct nrg_recorder *r, const char *key, const char *value)
{
    char *copy = strdup(value);
    struct nrg_message *m = copy ? nrg_message_new(&r->queue, NRG_MSG_TEXT) : NULL;
    if (!m) {
        free(copy);
        return -ENOMEM;
    }
    nrg_copy(m->text.key, sizeof m->text.key, key);
    m->text.value = copy;
    nrg_queue_push(&r->queue, m);
    return 0;
}

int nrg_recorder_text(struct nrg_recorder *r, const char *key, const char *value)
{
    return r->writing ? queue_text(r, key, value) : nrg_store_text(r->store, key, value);
}

int nrg_recorder_integer(struct nrg_recorder *r, const char *key, int64_t value)
{
    if (!r->writing)
        return nrg_store_integer(r->store, key, value);
    struct nrg_message *m = nrg_message_new(&r->queue, NRG_MSG_INTEGER);
    if (!m)
        return -ENOMEM;
    nrg_copy(m->integer.key, sizeof m->integer.key, key);
    m->integer.value = value;
    nrg_queue_push(&r->queue, m);
    return 0;
}

static int queue_graph(struct nrg_recorder *r, const char *name, const char *format,
                       const void *bytes, size_t size)
{
    void *copy = malloc(size + 1);
    struct nrg_message *m = copy ? nrg_message_new(&r->queue, NRG_MSG_GRAPH) : NULL;
    if (!m) {
        free(copy);
        return -ENOMEM;
    }
    memcpy(copy, bytes, size);
    nrg_copy(m->graph.name, sizeof m->graph.name, name);
    nrg_copy(m->graph.format, sizeof m->graph.format, format);
    m->graph.bytes = copy;
    m->graph.size = size;
    nrg_queue_push(&r->queue, m);
    return 0;
}

int nrg_recorder_graph(struct nrg_recorder *r, const char *name, const char *format,
                       const void *bytes, size_t size)
{
    return r->writing ? queue_graph(r, name, format, bytes, size)
                      : nrg_store_graph(r->store, name, format, bytes, size);
}

/* All threads but the sampler are there already. */
static int start_rest(struct nrg_recorder *r)
{
    pthread_t thread;
    int rc = nrg_thread_start(&r->sampler, "nrg-sample", sample_loop, r);
    r->sampling = !rc;
    if (!rc && !(rc = nrg_memory_watch_start(r->memory, &thread))) {
        pthread_mutex_lock(&r->lock);
        nrg_own_cpu_add(&r->own_cpu, thread);
        nrg_own_cpu_add(&r->own_cpu, r->sampler);
        pthread_mutex_unlock(&r->lock);
    }
    return rc;
}

static int start_readers(struct nrg_recorder *r)
{
    pthread_t thread;
    int rc = nrg_thread_start(&r->writer, "nrg-write", write_loop, r);
    r->writing = !rc;
    if (!rc)
        nrg_own_cpu_add(&r->own_cpu, r->writer);
    for (size_t i = 0; !rc && i < r->n_slow; i++) {
        rc = nrg_slow_reader_start(&r->slow[i]);
        if (!rc)
            nrg_own_cpu_add(&r->own_cpu, r->slow[i].thread);
    }
    if (!rc && r->spans.drain && !(rc = nrg_span_drain_start(r->spans.drain, &thread)))
        nrg_own_cpu_add(&r->own_cpu, thread);
    return rc;
}

int nrg_recorder_begin(struct nrg_recorder *r, struct nrg_error *err)
{
    int64_t now = nrg_now_ns();
    nrg_store_integer(r->store, "begin_ns", now);
    int rc = nrg_store_ready(r->store, err);
    if (rc) {
        nrg_store_discard(r->store);
        r->store = NULL;
        return rc;
    }
    rc = start_readers(r);
    pthread_mutex_lock(&r->lock);
    check_clock(r);
    for (size_t i = 0; i < r->n_feeds; i++) {
        r->feeds[i].next_ns = now + r->feeds[i].period_ns;
        if (!r->feeds[i].found->driver->fd)
            nrg_feed_read(&r->feeds[i]);
    }
    r->process_next_ns = now + r->process_period_ns;
    r->commit_next_ns = now + COMMIT_NS;
    pthread_mutex_unlock(&r->lock);
    if (!rc)
        rc = start_rest(r);
    return rc ? nrg_fail(err, rc, NULL, "cannot start a thread: %s", strerror(-rc)) : 0;
}

static bool awaits(const struct nrg_recorder *r, int64_t t_ns)
{
    for (size_t i = 0; i < r->n_feeds; i++) {
        const struct nrg_feed *feed = &r->feeds[i];
        if (feed->state && feed->found->driver->fd && (!feed->last_t_ns || feed->last_t_ns < t_ns))
            return true;
    }
    return false;
}

void nrg_recorder_await_pushed(struct nrg_recorder *r, int64_t t_ns)
{
    const struct timespec moment = {.tv_nsec = 5 * NRG_NS_PER_MS};
    int64_t until_ns = nrg_now_ns() + NRG_AWAIT_MOST_NS;
    bool more = true;
    while (more && nrg_now_ns() < until_ns) {
        pthread_mutex_lock(&r->lock);
        more = awaits(r, t_ns);
        pthread_mutex_unlock(&r->lock);
        if (more)
            nanosleep(&moment, NULL);
    }
}

void nrg_recorder_read_now(struct nrg_recorder *r)
{
    for (size_t i = 0; i < r->n_slow; i++)
        nrg_slow_reader_ask(&r->slow[i]);
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->n_feeds; i++)
        nrg_feed_read(&r->feeds[i]);
    nrg_proctree_poll(r->tree);
    pthread_mutex_unlock(&r->lock);
    for (size_t i = 0; i < r->n_slow; i++)
        if (nrg_slow_reader_wait(&r->slow[i]))
            nrg_recorder_event(r, "fault", r->slow[i].feed.found->sensor,
                               "did not answer at the edge of the run");
}

int nrg_recorder_energy(struct nrg_recorder *r, struct nrg_live_sum *sum)
{
    return nrg_live_energy(&r->live, sum);
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
    if (nrg_proctree_fd(r->tree) >= 0)
        nrg_proctree_drain(r->tree);
    nrg_proctree_exiting(r->tree, pid);
    pthread_mutex_unlock(&r->lock);
    if (r->spans.drain)
        nrg_span_drain_exiting(r->spans.drain, pid);
}

void nrg_recorder_waited(struct nrg_recorder *r, int32_t pid, int64_t cpu_ns)
{
    pthread_mutex_lock(&r->lock);
    nrg_proctree_waited(r->tree, pid, cpu_ns);
    pthread_mutex_unlock(&r->lock);
}

void nrg_recorder_run(struct nrg_recorder *r, const struct nrg_run *run)
{
    struct nrg_message *m = nrg_message_new(&r->queue, NRG_MSG_RUN);
    if (m)
        m->run = *run;
    nrg_queue_push(&r->queue, m);
    /* Written at once: a recorder that is killed in its first second leaves what it ran. */
    nrg_queue_wake(&r->queue);
}

static void stop_sampling(struct nrg_recorder *r)
{
    uint64_t one = 1;
    if (!r->sampling)
        return;
    pthread_mutex_lock(&r->lock);
    r->sampler_stop = true;
    pthread_cond_signal(&r->stopping);
    pthread_mutex_unlock(&r->lock);
    if (write(r->wake_fd, &one, sizeof one) < 0)
        nrg_log(r->ctx, NRG_DEBUG, "waking the sampler: %s", strerror(errno));
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
    if (r->spans.drain)
        nrg_span_drain_stop(r->spans.drain);
    if (!r->writing)
        return;
    nrg_proctree_finish(r->tree);
    hand_over(r);
    nrg_queue_stop(&r->queue);
    pthread_join(r->writer, NULL);
    r->writing = false;
}

int nrg_recorder_end(struct nrg_recorder *r, void (*keep)(void *, struct sqlite3 *), void *arg,
                     struct nrg_error *err)
{
    bool stopped;
    stop_threads(r);
    nrg_queue_wake(&r->queue);
    store_batch(r, nrg_queue_take(&r->queue, &stopped));
    nrg_store_integer(r->store, "end_ns", nrg_now_ns());
    nrg_store_integer(r->store, "ticks", (int64_t)r->status.ticks);
    nrg_store_integer(r->store, "late_ticks", (int64_t)r->status.late_ticks);
    nrg_recorder_spans_finish(&r->spans);
    nrg_store_finish(r->store);
    const char *why = nrg_store_spilled(r->store);
    nrg_copy(r->status.spilled, sizeof r->status.spilled, why ? why : "");
    if (why && keep)
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
    if (r->store)
        nrg_recorder_end(r, NULL, NULL, NULL);
    for (size_t i = 0; i < r->n_feeds; i++)
        nrg_feed_release(&r->feeds[i]);
    for (size_t i = 0; i < r->n_slow; i++)
        nrg_slow_reader_release(&r->slow[i]);
    nrg_memory_watch_free(r->memory);
    nrg_proctree_free(r->tree);
    nrg_recorder_spans_release(&r->spans);
    nrg_rows_release(&r->process_rows);
    nrg_queue_release(&r->queue);
    nrg_live_release(&r->live);
    nrg_probe_release(&r->probe);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->stopping);
    if (r->wake_fd >= 0)
        close(r->wake_fd);
    free(r->feeds);
    free(r->slow);
    free(r);
}
