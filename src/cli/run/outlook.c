/* See outlook.h. */
#include "cli/run/outlook.h"

/* Below this, a layer of some ms needs minutes of repetitions (docs/uncertainty.md). */
#define SLOW_FOR_SPANS_HZ 50

struct sources {
    bool estimate, sensor; /* a GPU's sensor may stand beside an estimate of the processors */
};

static struct sources find_sources(const struct nrg_probe *sensors)
{
    struct sources there = {0};
    for (size_t f = 0; f < sensors->n_found; f++) {
        const struct nrg_found *found = &sensors->found[f];
        for (size_t c = 0; c < found->n_channels; c++) {
            const struct nrg_channel *channel = &found->channels[c];
            bool unplaced = channel->wide && !channel->covers_cpu; /* see sensors/covers.h */
            if (!found->wanted[c] || unplaced ||
                (channel->quantity != NRG_ENERGY && channel->quantity != NRG_POWER))
                continue;
            there.sensor |= channel->provenance != NRG_ESTIMATED;
            there.estimate |= channel->provenance == NRG_ESTIMATED && channel->covers_cpu;
        }
    }
    return there;
}

void nrg_run_outlook_print(const struct nrg_run_outlook *o, FILE *out)
{
    struct sources there = find_sources(o->sensors);
    if (!there.estimate && !there.sensor)
        fprintf(out, "nrg: nothing here tells energy (nrg sensors says what would)\n");
    if (there.estimate)
        fprintf(out,
                "nrg: no energy sensor%s is estimated from CPU time (nrg sensors says what would "
                "be better)\n",
                there.sensor ? " of the processors: their energy" : ": energy");
    if (there.estimate && !there.sensor && o->has_baseline)
        fprintf(out, "nrg: --baseline tells nothing here: the estimate knows its own idle power\n");
    if (there.sensor && !o->has_baseline)
        fprintf(out, "nrg: idle power is not measured: --baseline 5s does it (without, the run may "
                     "show it)\n");
    if (there.sensor && o->marks_spans && o->rate_hz > 0 && o->rate_hz < SLOW_FOR_SPANS_HZ)
        fprintf(out,
                "nrg: %g readings a second are few for spans: --rate 100Hz, or many more steps\n",
                o->rate_hz);
}
