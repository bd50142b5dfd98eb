/* See pulse.h. */
#include "sensors/pulse.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

/* A virtual machine's registers may move once a second. */
#define FIRST_WAIT_NS (2 * NRG_NS_PER_S)
#define MOST_WAIT_NS  (60 * NRG_NS_PER_S)

int nrg_pulse_init(struct nrg_pulse *p, const struct nrg_found *found)
{
    *p = (struct nrg_pulse){.wait_ns = FIRST_WAIT_NS};
    p->standing = nrg_calloc(found->n_channels + 1, sizeof *p->standing);
    return p->standing ? 0 : -ENOMEM;
}

void nrg_pulse_release(struct nrg_pulse *p)
{
    free(p->standing);
    *p = (struct nrg_pulse){0};
}

static bool is_watched(const struct nrg_found *found, size_t c)
{
    return found->wanted[c] && nrg_least_w(&found->channels[c]) > 0;
}

bool nrg_pulse_row(struct nrg_pulse *p, const struct nrg_found *found, unsigned group, int64_t t_ns,
                   const int64_t *raw)
{
    size_t column = 0;
    bool moved = false;
    for (size_t c = 0; c < found->n_channels; c++) {
        if (found->channels[c].group != group)
            continue;
        int64_t value = raw[column++];
        bool counted = p->standing[c].seen;
        if (is_watched(found, c) && value != NRG_MISSING)
            moved |= nrg_standing_add(&p->standing[c], t_ns, value) && counted && value;
    }
    bool back = moved && p->opened;
    if (moved && p->retry_ns)
        *p = (struct nrg_pulse){.standing = p->standing, .wait_ns = FIRST_WAIT_NS};
    return back;
}

bool nrg_pulse_lacks(struct nrg_pulse *p, const struct nrg_found *found, int64_t now_ns)
{
    bool dead = false;
    for (size_t c = 0; c < found->n_channels; c++) {
        const struct nrg_channel *channel = &found->channels[c];
        const struct nrg_standing *s = &p->standing[c];
        int64_t longest_ns =
            nrg_longest_still_ns(channel->update_ns, channel->resolution, nrg_least_w(channel));
        int64_t still_ns = s->last_ns - s->since_ns;
        dead |= is_watched(found, c) && still_ns > longest_ns && still_ns >= FIRST_WAIT_NS;
    }
    if (!dead || now_ns < p->retry_ns)
        return false;
    p->retry_ns = now_ns + p->wait_ns;
    p->wait_ns = p->wait_ns > MOST_WAIT_NS / 2 ? MOST_WAIT_NS : 2 * p->wait_ns;
    return true;
}
