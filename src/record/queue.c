/* See queue.h. */
#include "record/queue.h"

#include <stdlib.h>

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

void nrg_message_free(struct nrg_message *message)
{
    if (!message)
        return;
    if (has_rows(message))
        nrg_rows_release(&message->rows);
    else if (message->kind == NRG_MSG_SPAN_NAME)
        free(message->span_name.text);
    else if (message->kind == NRG_MSG_TEXT)
        free(message->text.value);
    else if (message->kind == NRG_MSG_GRAPH)
        free(message->graph.bytes);
    free(message);
}

void nrg_queue_release(struct nrg_queue *queue)
{
    for (struct nrg_message *m = queue->first, *next; m; m = next) {
        next = m->next;
        nrg_message_free(m);
    }
    pthread_mutex_destroy(&queue->lock);
    pthread_cond_destroy(&queue->ready);
}

struct nrg_message *nrg_message_new(struct nrg_queue *queue, enum nrg_message_kind kind)
{
    struct nrg_message *message = calloc(1, sizeof *message);
    if (!message) {
        pthread_mutex_lock(&queue->lock);
        queue->dropped++;
        pthread_mutex_unlock(&queue->lock);
        return NULL;
    }
    message->kind = kind;
    return message;
}

void nrg_queue_push(struct nrg_queue *queue, struct nrg_message *message)
{
    if (!message)
        return;
    pthread_mutex_lock(&queue->lock);
    message->next = NULL;
    *queue->last = message;
    queue->last = &message->next;
    queue->n_rows += has_rows(message) ? message->rows.n : 0;
    pthread_mutex_unlock(&queue->lock);
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
    queue->n_rows -= has_rows(message) ? message->rows.n : 0;
    pthread_mutex_unlock(&queue->lock);
    nrg_message_free(message);
}

static void signal_flag(struct nrg_queue *queue, bool *flag)
{
    pthread_mutex_lock(&queue->lock);
    *flag = true;
    pthread_cond_signal(&queue->ready);
    pthread_mutex_unlock(&queue->lock);
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
