/* See stamps.h. */
#include "sensors/stamps.h"

#define DRIFT_PPM 200 /* a cheap quartz has 100 */

/* True when the device's clock was set since the last reading. */
static bool was_set(const struct nrg_stamps *s, int64_t stamp_ns, int64_t seen_ns)
{
    int64_t pause_ns = seen_ns - s->seen_ns;
    return stamp_ns < s->last.stamp_ns ||
           seen_ns - stamp_ns - s->offset_ns > s->most_delay_ns + pause_ns;
}

static void follow(struct nrg_stamps *s, int64_t stamp_ns, int64_t seen_ns)
{
    int64_t distance_ns = seen_ns - stamp_ns;
    if (s->n && !was_set(s, stamp_ns, seen_ns)) {
        s->offset_ns += (seen_ns - s->seen_ns) / 1000000 * DRIFT_PPM;
        if (distance_ns > s->offset_ns)
            return;
    }
    s->offset_ns = distance_ns;
}

size_t nrg_stamps_place(struct nrg_stamps *s, int64_t stamp_ns, int64_t raw, int64_t seen_ns,
                        struct nrg_stamped out[2])
{
    size_t placed = 0;
    if (s->n && stamp_ns == s->last.stamp_ns) {
        s->seen_ns = seen_ns;
        return 0;
    }
    bool in_order = !s->n || stamp_ns > s->last.stamp_ns;
    follow(s, stamp_ns, seen_ns);
    struct nrg_stamped now = {stamp_ns, stamp_ns + s->offset_ns, raw};
    if (s->n == 1 && in_order) {
        s->last.t_ns = s->last.stamp_ns + s->offset_ns;
        out[placed++] = s->last;
    }
    if (s->n && now.t_ns <= s->last.t_ns) /* times of one series only grow */
        now.t_ns = s->last.t_ns + 1;
    if (s->n)
        out[placed++] = now;
    s->last = now;
    s->seen_ns = seen_ns;
    s->n += s->n < 2;
    return placed;
}
