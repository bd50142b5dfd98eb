/*
 * From the sampling threads to the writing thread: whole batches, handed over about once a
 * second, so that the lock is never hot and the disk never delays a reading. The producer gives
 * a message away; the consumer takes all there are.
 */
#ifndef NRG_RECORD_QUEUE_H
#define NRG_RECORD_QUEUE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"
#include "record/format.h"
#include "record/rows.h"

enum nrg_message_kind {
    NRG_MSG_ROWS,
    NRG_MSG_PROCESS,
    NRG_MSG_EVENT,
    NRG_MSG_CLOCK,
    NRG_MSG_RUN,
    NRG_MSG_TEXT, /* of the metadata */
    NRG_MSG_INTEGER,
    NRG_MSG_GRAPH,
    NRG_MSG_SPAN_NAME,
    NRG_MSG_SPAN_TRACK,
    NRG_MSG_PAST_ROWS /* spans that were over when they were told: see span_drain.h */
};

struct nrg_message {
    struct nrg_message *next;
    enum nrg_message_kind kind;
    int series; /* of rows; of past rows their number, from 0 */
    union {
        struct nrg_rows rows;
        struct nrg_process_info process;
        struct nrg_event event;
        struct nrg_clock_pair clock;
        struct nrg_run run;
        struct {
            char key[80];
            char *value; /* the message's */
        } text;
        struct {
            char key[80];
            int64_t value;
        } integer;
        struct {
            char name[256], format[32];
            void *bytes; /* the message's */
            size_t size;
        } graph;
        struct nrg_span_name span_name; /* its text is the message's */
        struct nrg_span_track span_track;
    };
};

struct nrg_queue {
    pthread_mutex_t lock;
    pthread_cond_t ready;
    struct nrg_message *first, **last;
    bool wake, stop;
    size_t n_rows;    /* pushed and not freed, of all messages */
    uint64_t dropped; /* messages lost for want of memory */
};

void nrg_queue_init(struct nrg_queue *queue);
void nrg_queue_release(struct nrg_queue *queue);

/* NULL when out of memory (counted). */
struct nrg_message *nrg_message_new(struct nrg_queue *queue, enum nrg_message_kind kind);
void nrg_message_free(struct nrg_message *message);

/* How many rows wait or are being written: a producer that can wait should, when there are many. */
size_t nrg_queue_rows(struct nrg_queue *queue);
/* Instead of nrg_message_free, by the consumer. */
void nrg_queue_done(struct nrg_queue *queue, struct nrg_message *message);

void nrg_queue_push(struct nrg_queue *queue, struct nrg_message *message);
/* Lets the consumer run: without it pushed messages wait for company. */
void nrg_queue_wake(struct nrg_queue *queue);
void nrg_queue_stop(struct nrg_queue *queue);
/* Blocks until woken; returns the list and whether to stop after it. */
struct nrg_message *nrg_queue_take(struct nrg_queue *queue, bool *stop);

#endif
