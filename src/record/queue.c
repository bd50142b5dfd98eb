/* See queue.h. */
#include "record/queue.h"

#include <errno.h>
#include <stdlib.h>

/* Rows whose memory is worth keeping: less grows back quickly, more would be held for nothing. */
#define SPARE_LEAST 1024
#define SPARE_MOST  16384

void nrg_queue_init(struct nrg_queue *queue)
{
    *queue = (struct nrg_queue){0};
    queue->last = &queue->first;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->ready, NULL);
}

static bool has_rows(const struct nrg_message *message)
{
    return message->kind == NRG_MSG_ROWS || message->kind == NRG_MSG_PAST_ROWS;
}

static void release_content(const struct nrg_message *message)
{
    if (has_rows(message)) {
        struct nrg_rows rows = message->rows;
        nrg_rows_release(&rows);
    } else if (message->kind == NRG_MSG_SPAN_NAME) {
        free(message->span_name.text);
    } else if (message->kind == NRG_MSG_TEXT) {
        free(message->text.value);
    } else if (message->kind == NRG_MSG_GRAPH) {
        free(message->graph.bytes);
    }
}

void nrg_queue_release(struct nrg_queue *queue)
{
    for (struct nrg_message *m = queue->first, *next; m; m = next) {
        next = m->next;
        release_content(m);
        free(m);
    }
    nrg_rows_release(&queue->spare);
    pthread_mutex_destroy(&queue->lock);
    pthread_cond_destroy(&queue->ready);
}

int nrg_queue_push(struct nrg_queue *queue, const struct nrg_message *message)
{
    struct nrg_message *m = malloc(sizeof *m);
    if (m)
        *m = *message;
    else
        release_content(message);
    pthread_mutex_lock(&queue->lock);
    if (m) {
        m->next = NULL;
        *queue->last = m;
        queue->last = &m->next;
        queue->n_rows += has_rows(m) ? m->rows.n : 0;
    } else {
        queue->dropped++;
    }
    pthread_mutex_unlock(&queue->lock);
    return m ? 0 : -ENOMEM;
}

/* Gives *rows, which is empty, the spare memory if it fits. */
static void take_spare(struct nrg_queue *queue, struct nrg_rows *rows)
{
    pthread_mutex_lock(&queue->lock);
    if (queue->spare.cap && queue->spare.n_columns == rows->n_columns) {
        *rows = queue->spare;
        queue->spare = (struct nrg_rows){0};
    }
    pthread_mutex_unlock(&queue->lock);
}

/* Takes over the memory of rows that were written. */
static void keep_spare(struct nrg_queue *queue, struct nrg_rows *rows)
{
    if (queue->spare.cap || rows->cap < SPARE_LEAST || rows->cap > SPARE_MOST)
        return;
    rows->n = 0;
    rows->width_ns = 0;
    queue->spare = *rows;
    nrg_rows_init(rows, rows->n_columns);
}

void nrg_queue_push_rows(struct nrg_queue *queue, enum nrg_message_kind kind, int series,
                         struct nrg_rows *rows)
{
    if (!rows->n)
        return;
    nrg_queue_push(queue, &(struct nrg_message){.kind = kind, .series = series, .rows = *rows});
    bool many = rows->cap >= SPARE_LEAST;
    nrg_rows_init(rows, rows->n_columns);
    if (many)
        take_spare(queue, rows);
}

void nrg_queue_push_event(struct nrg_queue *queue, const char *kind, const char *source,
                          const char *detail)
{
    nrg_queue_push(queue, &(struct nrg_message){.kind = NRG_MSG_EVENT,
                                                .event = nrg_event_now(kind, source, detail)});
}

size_t nrg_queue_rows(struct nrg_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    size_t n = queue->n_rows;
    pthread_mutex_unlock(&queue->lock);
    return n;
}

void nrg_queue_done(struct nrg_queue *queue, struct nrg_message *message)
{
    pthread_mutex_lock(&queue->lock);
    if (has_rows(message)) {
        queue->n_rows -= message->rows.n;
        keep_spare(queue, &message->rows);
    }
    pthread_mutex_unlock(&queue->lock);
    release_content(message);
    free(message);
}

/* Signalled without the lock: else the writer wakes, waits for it, and has to wake again. */
static void signal_flag(struct nrg_queue *queue, bool *flag)
{
    pthread_mutex_lock(&queue->lock);
    *flag = true;
    pthread_mutex_unlock(&queue->lock);
    pthread_cond_signal(&queue->ready);
}

void nrg_queue_wake(struct nrg_queue *queue)
{
    signal_flag(queue, &queue->wake);
}

void nrg_queue_stop(struct nrg_queue *queue)
{
    signal_flag(queue, &queue->stop);
}

struct nrg_message *nrg_queue_take(struct nrg_queue *queue, bool *stop)
{
    pthread_mutex_lock(&queue->lock);
    while (!queue->wake && !queue->stop)
        pthread_cond_wait(&queue->ready, &queue->lock);
    struct nrg_message *list = queue->first;
    queue->first = NULL;
    queue->last = &queue->first;
    queue->wake = false;
    *stop = queue->stop;
    pthread_mutex_unlock(&queue->lock);
    return list;
}
