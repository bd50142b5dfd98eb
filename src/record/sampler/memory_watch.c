/*
 * See memory_watch.h. Only processes that used CPU time since the last look are read: the memory of
 * the others has hardly changed.
 */
#include "record/sampler/memory_watch.h"

#include <stdlib.h>

#include "record/sampler/procfs.h"
#include "record/thread.h"
#include "sensors/channel.h"

#define FIRST_NS  (500 * NRG_NS_PER_MS)
#define PERIOD_NS (10 * NRG_NS_PER_S)

struct nrg_memory_watch {
    const struct nrg_context *ctx;
    struct nrg_proctree *tree;
    pthread_mutex_t *tree_lock;
    struct nrg_queue *queue;
    int series;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool started, stop;
};

static bool is_stopping(struct nrg_memory_watch *w)
{
    pthread_mutex_lock(&w->lock);
    bool stop = w->stop;
    pthread_mutex_unlock(&w->lock);
    return stop;
}

static void read_memory(struct nrg_memory_watch *w)
{
    struct nrg_active *active;
    struct nrg_rows rows;
    nrg_rows_init(&rows, NRG_M_COLUMNS);
    pthread_mutex_lock(w->tree_lock);
    size_t n = nrg_proctree_active(w->tree, &active);
    pthread_mutex_unlock(w->tree_lock);
    for (size_t i = 0; i < n && !is_stopping(w); i++) {
        int64_t row[NRG_M_COLUMNS] = {active[i].id, NRG_MISSING, NRG_MISSING, NRG_MISSING,
                                      NRG_MISSING};
        int failed = nrg_proc_memory(&w->ctx->root, active[i].pid, &row[NRG_M_PSS_BYTES],
                                     &row[NRG_M_USS_BYTES]);
        if (failed)
            row[NRG_M_PSS_BYTES] = row[NRG_M_USS_BYTES] = NRG_MISSING;
        if (nrg_proc_io(&w->ctx->root, active[i].pid, &row[NRG_M_READ_BYTES],
                        &row[NRG_M_WRITTEN_BYTES])) {
            row[NRG_M_READ_BYTES] = row[NRG_M_WRITTEN_BYTES] = NRG_MISSING;
            if (failed)
                continue;
        }
        nrg_rows_add(&rows, nrg_now_ns(), 0, row);
    }
    nrg_queue_push_rows(w->queue, NRG_MSG_ROWS, w->series, &rows);
    free(active);
}

static void *watch_loop(void *arg)
{
    struct nrg_memory_watch *w = arg;
    int64_t next_ns = nrg_now_ns() + FIRST_NS;
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        if (nrg_now_ns() < next_ns) {
            nrg_cond_wait_until(&w->changed, &w->lock, next_ns);
            continue;
        }
        pthread_mutex_unlock(&w->lock);
        read_memory(w);
        next_ns = nrg_now_ns() + PERIOD_NS;
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

struct nrg_memory_watch *nrg_memory_watch_new(const struct nrg_context *ctx,
                                              struct nrg_proctree *tree, pthread_mutex_t *tree_lock,
                                              struct nrg_queue *queue, int series)
{
    struct nrg_memory_watch *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    *w = (struct nrg_memory_watch){
        .ctx = ctx, .tree = tree, .tree_lock = tree_lock, .queue = queue, .series = series};
    pthread_mutex_init(&w->lock, NULL);
    nrg_cond_init_monotonic(&w->changed);
    return w;
}

int nrg_memory_watch_start(struct nrg_memory_watch *w, pthread_t *thread)
{
    int rc = nrg_thread_start(&w->thread, "nrg-memory", watch_loop, w);
    w->started = !rc;
    *thread = w->thread;
    return rc;
}

void nrg_memory_watch_stop(struct nrg_memory_watch *w)
{
    if (!w->started)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    w->started = false;
}

void nrg_memory_watch_free(struct nrg_memory_watch *w)
{
    if (!w)
        return;
    nrg_memory_watch_stop(w);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
    free(w);
}
