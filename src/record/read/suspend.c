/*
 * See suspend.h. The recorder notices a suspend when it looks at the clocks, once in a while: the
 * machine slept between the row of `clock` before the event and the event.
 */
#include "record/read/suspend.h"

#include <string.h>

#include "base/search.h"
#include "sensors/integrate.h"

#define SEEN_AFTER_NS (4 * NRG_NS_PER_S) /* without rows of `clock`: what slow recorders take */
#define SAME_LOOK_NS  NRG_NS_PER_MS      /* the row that was written with the event */
#define MOST_W        1e5                /* no domain of a machine draws more */

/* The machine slept at some moment from one time to the other. */
struct sleep {
    int64_t from_ns, to_ns;
    double length_s; /* 0: not known */
};

static struct sleep sleep_before(const struct nrg_recording *recording, int64_t event_ns)
{
    size_t n;
    const struct nrg_clock_pair *clocks = nrg_recording_clocks(recording, &n);
    struct sleep sleep = {event_ns - SEEN_AFTER_NS, event_ns, 0};
    int64_t look_ns = event_ns - SAME_LOOK_NS;
    size_t before = n ? nrg_count_below(&clocks->mono_ns, n, sizeof *clocks, look_ns) : 0;
    if (!before)
        return sleep;
    const struct nrg_clock_pair *last = &clocks[before - 1];
    sleep.from_ns = last->mono_ns;
    if (before < n)
        sleep.length_s = ((double)clocks[before].real_ns - (double)last->real_ns) * 1e-9 -
                         ((double)clocks[before].mono_ns - (double)last->mono_ns) * 1e-9;
    return sleep;
}

static bool slept_between(const struct nrg_recording *recording, int64_t from_ns, int64_t to_ns,
                          double *length_s)
{
    size_t n;
    const struct nrg_event *events = nrg_recording_events(recording, &n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(events[i].kind, "suspend") != 0)
            continue;
        struct sleep sleep = sleep_before(recording, events[i].t_ns);
        *length_s = sleep.length_s > 0 ? sleep.length_s : 0;
        if (from_ns <= sleep.to_ns && to_ns >= sleep.from_ns)
            return true;
    }
    return false;
}

double nrg_recorded_step(const struct nrg_recording *recording, const struct nrg_channel *c,
                         int64_t last_raw, int64_t raw, int64_t last_ns, int64_t t_ns,
                         bool *wrapped)
{
    double slept_s, step = nrg_counter_step(c, last_raw, raw, t_ns - last_ns, wrapped);
    double most_j = MOST_W * (double)(t_ns - last_ns) * 1e-9;
    bool odd = raw < last_raw || (c->quantity == NRG_ENERGY && step * c->scale > most_j);
    if (!(step > 0) || !odd || !slept_between(recording, last_ns, t_ns, &slept_s) ||
        (raw >= last_raw && step * c->scale <= most_j + MOST_W * slept_s))
        return step;
    if (wrapped)
        *wrapped = false;
    return NRG_STEP_BACKWARDS;
}
