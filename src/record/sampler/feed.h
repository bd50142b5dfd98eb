/*
 * One opened sensor inside the recorder: its sink, the rows that wait to be handed over, when it
 * is read next, and what it last complained about. Owned by the thread that reads it.
 */
#ifndef NRG_RECORD_FEED_H
#define NRG_RECORD_FEED_H

#include "record/live.h"
#include "record/queue.h"
#include "record/store/writer.h"
#include "sensors/driver.h"

struct nrg_feed {
    struct nrg_sink sink; /* first: callbacks cast back */
    const struct nrg_context *ctx;
    const struct nrg_found *found;
    struct nrg_queue *queue;
    struct nrg_live *live; /* who wants the energy so far; NULL: nobody */
    void *state;           /* the driver's; NULL when closed */
    int64_t period_ns, next_ns;
    int64_t last_t_ns; /* of the last row, 0: none yet */
    size_t n_groups;
    int *series;           /* per group */
    struct nrg_rows *rows; /* per group */
    int *error;            /* per channel: last fault, 0: fine */
    bool faulty;           /* some channel has had a fault: look for its recovery */
    int sensor_error;
    struct nrg_rows gpu_rows;
    int gpu_series; /* 0: not made yet */
};

/* Opens the sensor and registers it with the store. */
int nrg_feed_init(struct nrg_feed *feed, const struct nrg_context *ctx,
                  const struct nrg_found *found, double rate_hz, struct nrg_queue *queue,
                  struct nrg_store *store, int gpu_series, struct nrg_error *err);
void nrg_feed_release(struct nrg_feed *feed);

void nrg_feed_read(struct nrg_feed *feed);
/* Gives the waiting rows to the queue. */
void nrg_feed_hand_over(struct nrg_feed *feed);

/* Moves next_ns past now on the grid of multiples of the period; returns skipped deadlines. */
uint64_t nrg_feed_schedule(struct nrg_feed *feed, int64_t now_ns);

#endif
