/*
 * The queue from the threads that read to the thread that writes. Readers push about once a second,
 * so the lock is rarely contended, and a slow disk never delays a reading.
 *
 * Ownership: push copies the message and takes over what it points to (rows, texts, bytes), also
 * when it fails. The consumer takes the whole list and gives each message to nrg_queue_done.
 * Errors: -ENOMEM, counted in `dropped`. Threads: any number of producers, one consumer.
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
    NRG_MSG_TEXT, /* metadata */
    NRG_MSG_GRAPH,
    NRG_MSG_SPAN_NAME,
    NRG_MSG_SPAN_TRACK,
    NRG_MSG_SPAN_PATH,
    NRG_MSG_PAST_ROWS /* spans that had ended when the program reported them: spans/drain.h */
};

struct nrg_message {
    struct nrg_message *next;
    enum nrg_message_kind kind;
    int series; /* of rows; for past rows a number below NRG_PAST_SERIES */
    union {
        struct nrg_rows rows;
        struct nrg_process_info process;
        struct nrg_event event;
        struct nrg_clock_pair clock;
        struct nrg_run run;
        struct {
            char key[80];
            char *value;
        } text;
        struct {
            char name[256], format[32];
            void *bytes;
            size_t size;
        } graph;
        struct nrg_span_name span_name;
        struct nrg_span_track span_track;
        struct nrg_span_path span_path;
    };
};

struct nrg_queue {
    pthread_mutex_t lock;
    pthread_cond_t ready;
    struct nrg_message *first, **last;
    bool wake, stop;
    size_t n_rows;         /* of all messages that are not done yet */
    uint64_t dropped;      /* messages lost because memory ran out */
    struct nrg_rows spare; /* memory of written rows; cap 0: none */
};

void nrg_queue_init(struct nrg_queue *queue);
void nrg_queue_release(struct nrg_queue *queue);

int nrg_queue_push(struct nrg_queue *queue, const struct nrg_message *message);
/*
 * Pushes the rows, if there are any, and leaves *rows empty. If they were many, the memory of rows
 * that were written before takes their place: in a burst nothing is allocated.
 */
void nrg_queue_push_rows(struct nrg_queue *queue, enum nrg_message_kind kind, int series,
                         struct nrg_rows *rows);
/* Pushes an event that happened now. */
void nrg_queue_push_event(struct nrg_queue *queue, const char *kind, const char *source,
                          const char *detail);

/* Rows that wait or are being written. A producer that can wait should do so when they are many. */
size_t nrg_queue_rows(struct nrg_queue *queue);

/* Wakes the consumer. A push alone does not, so that messages are written in batches. */
void nrg_queue_wake(struct nrg_queue *queue);
void nrg_queue_stop(struct nrg_queue *queue);
/* Blocks until woken; returns the list and whether to stop after it. */
struct nrg_message *nrg_queue_take(struct nrg_queue *queue, bool *stop);
/* Frees a message that the consumer has dealt with. */
void nrg_queue_done(struct nrg_queue *queue, struct nrg_message *message);

#endif
