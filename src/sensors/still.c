/* See still.h. */
#include "sensors/still.h"

#include <string.h>

#include "sensors/integrate.h"

/* Neither processors that run this program nor a machine around them are at less: the least board
 * that runs Linux (Raspberry Pi Zero) idles at 0.4 W, packages of laptops in their deepest idle
 * states at some 0.1 W. */
#define LEAST_W 0.1

static bool begins_with(const char *name, const char *with)
{
    return !strncmp(name, with, strlen(with));
}

/* Cores may sleep while their package does not, and on mains a battery gives nothing. */
double nrg_least_w(const struct nrg_channel *c)
{
    bool counts = c->kind == NRG_COUNTER && c->quantity == NRG_ENERGY &&
                  c->provenance == NRG_MEASURED && !nrg_channel_is_companion(c);
    bool rests = begins_with(c->name, "core-") || begins_with(c->name, "battery");
    return counts && c->covers_cpu && !rests ? LEAST_W : 0;
}

/* As long as readings of a gauge that did not come: what the machine or a device is late by at
 * times is no outage. */
int64_t nrg_longest_still_ns(int64_t update_ns, double step_j, double least_w)
{
    double step_ns = least_w > 0 && step_j > 0 ? step_j / least_w * 1e9 : 0x1p63;
    int64_t late_ns = nrg_gauge_gap_ns(update_ns);
    return step_ns < 0x1p62 && late_ns < INT64_MAX / 2 ? late_ns + (int64_t)step_ns : INT64_MAX;
}

bool nrg_standing_add(struct nrg_standing *s, int64_t t_ns, int64_t raw)
{
    bool moved = !s->seen || raw != s->raw;
    if (moved) {
        s->before_ns = s->seen ? s->last_ns : t_ns;
        s->since_ns = t_ns;
    }
    s->seen = true;
    s->raw = raw;
    s->last_ns = t_ns;
    return moved;
}
