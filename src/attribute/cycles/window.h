/*
 * A layer log beside a power log, execution by execution: the power that the earlier Jetson tool's
 * compute_layer_metrics_by_cycle gives each layer of each cycle, and what that leaves out.
 *
 * Its rule, kept to the letter so that results can be compared with published ones: executions are
 * taken as the file lists them, cycle by cycle; one pass over the power readings goes forward
 * only. Readings before the start are dropped, those up to and including the end are taken; the
 * power is their plain mean. A reading that one execution took is not seen by the next. When the
 * readings end, the execution in hand keeps what it has, and all after it are left out. Times are
 * in whole microseconds.
 *
 * Beside it stands what the rule can't see: the energy of the time between the first start and
 * the last end, the layers' part of it, and both with the sensor's lag corrected. These are
 * energies of the meter, idle power included.
 *
 * Make, release. 0 or -errno with err. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_CYCLES_WINDOW_H
#define NRG_ATTRIBUTE_CYCLES_WINDOW_H

#include "attribute/attribution.h"

/* One execution of a layer. */
struct nrg_execution {
    int64_t begin_ns, end_ns;
    int64_t cycle; /* from 1 */
    size_t row;    /* of the attribution */
    double run_time_s;
    double power_w, power_above_idle_w; /* NAN: no reading, or idle is not known */
    double lag_corrected_j;             /* NAN: its time is not covered by readings */
    bool left_out;                      /* after the end of the readings */
};

struct nrg_cycles {
    struct nrg_execution *executions; /* in the order of the log */
    size_t n;
    size_t *of_row; /* per row of the attribution: its execution, or SIZE_MAX */
    uint64_t with_power, left_out;
    double layers_s, between_s;                     /* between the first start and the last end */
    double layers_j, between_j;                     /* as read */
    double layers_corrected_j, between_corrected_j; /* with the lag; equal to those without one */
    double lag_s, idle_w;                           /* of the meter; idle_w NAN: not known */
    char lag_source[32];                            /* "given", "driver", "fitted", "none" */
};

/*
 * For an attribution by NRG_BY_CYCLE. The method that was asked for decides what power_w is: the
 * rule above (window), the reading closest to the end (nearest), else the mean over the window.
 * Rows are added below a layer whose executions the attribution does not tell apart. -ENODATA: the
 * recording has no layer log, and *cycles is empty. `idle_w` may be NAN.
 */
int nrg_cycles_make(struct nrg_cycles *cycles, struct nrg_attribution *attribution,
                    struct nrg_recording *recording, enum nrg_method method, double idle_w,
                    struct nrg_error *err);
void nrg_cycles_release(struct nrg_cycles *cycles);

#endif
