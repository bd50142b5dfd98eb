/*
 * One opened sensor inside the recorder: its sink, the rows that wait for the writer, the time of
 * its next reading, and its last faults.
 *
 * Embedded: init, release (also after an init that failed). Errors: a negative errno with the
 * reason in err. Threads: belongs to the thread that reads it.
 */
#ifndef NRG_RECORD_SAMPLER_FEED_H
#define NRG_RECORD_SAMPLER_FEED_H

#include "record/queue.h"
#include "record/sampler/epochs.h"
#include "record/sampler/live.h"
#include "record/store/writer.h"
#include "sensors/pulse.h"

#define NRG_QUICK_RATE_HZ 100.0

struct nrg_feed {
    struct nrg_sink sink; /* first: callbacks cast back */
    const struct nrg_context *ctx;
    const struct nrg_found *found;
    struct nrg_queue *queue;
    struct nrg_live *live; /* gets every row, for the energy so far; NULL: none */
    void *state;           /* the driver's; NULL when closed */
    bool lost;             /* it left: look for it from retry_ns on */
    int64_t retry_ns;
    struct nrg_probe again; /* what a sensor that came back was opened from */
    struct nrg_epochs epochs;
    struct nrg_pulse pulse; /* whether its counters are dead */
    int64_t period_ns, next_ns;
    int64_t quick_ns;  /* period while a program marks spans; never above period_ns */
    int64_t last_t_ns; /* of the last row, 0: none yet */
    size_t n_groups;
    int *series;           /* per group */
    struct nrg_rows *rows; /* per group */
    int *error;            /* per channel: last fault, 0: fine */
    bool faulty;           /* a channel has had a fault: look for its recovery */
    int sensor_error;
    struct nrg_rows gpu_rows;
    int gpu_series; /* 0: the driver gives no processes */
};

/* Opens the sensor and registers it with the store. */
int nrg_feed_init(struct nrg_feed *feed, const struct nrg_context *ctx,
                  const struct nrg_found *found, double rate_hz, struct nrg_queue *queue,
                  struct nrg_store *store, int gpu_series, struct nrg_error *err);
void nrg_feed_release(struct nrg_feed *feed);

/* Reads it, or looks for it if it left. */
void nrg_feed_read(struct nrg_feed *feed);
/* Whether its deadline is over. Never for sensors that push data. */
bool nrg_feed_is_due(const struct nrg_feed *feed, int64_t now_ns);
/* Whether it measures energy or power. */
bool nrg_feed_measures(const struct nrg_feed *feed);
/* Gives the waiting rows to the queue. */
void nrg_feed_hand_over(struct nrg_feed *feed);

/* From now on at its quick period. Readings at the old deadlines stay where they were. */
void nrg_feed_quicken(struct nrg_feed *feed, int64_t now_ns);

/* Moves next_ns past now in whole periods; returns how many deadlines were skipped. */
uint64_t nrg_feed_schedule(struct nrg_feed *feed, int64_t now_ns);

#endif
