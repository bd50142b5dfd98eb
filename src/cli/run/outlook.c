/* See outlook.h. */
#include "cli/run/outlook.h"

/* Below this, a layer of some ms needs minutes of repetitions (docs/uncertainty.md). */
#define SLOW_FOR_SPANS_HZ 50

enum source { NOTHING, AN_ESTIMATE, A_SENSOR };

/* The best that there is for the processors, or for anything where nothing covers those. */
static enum source best_source(const struct nrg_probe *sensors)
{
    enum source best = NOTHING;
    for (size_t f = 0; f < sensors->n_found; f++) {
        const struct nrg_found *found = &sensors->found[f];
        for (size_t c = 0; c < found->n_channels; c++) {
            const struct nrg_channel *channel = &found->channels[c];
            bool unplaced = channel->wide && !channel->covers_cpu; /* see sensors/covers.h */
            if (!found->wanted[c] || unplaced ||
                (channel->quantity != NRG_ENERGY && channel->quantity != NRG_POWER))
                continue;
            if (channel->provenance != NRG_ESTIMATED)
                return A_SENSOR;
            best = AN_ESTIMATE;
        }
    }
    return best;
}

void nrg_run_outlook_print(const struct nrg_run_outlook *o, FILE *out)
{
    enum source source = best_source(o->sensors);
    if (source == NOTHING)
        fprintf(out, "nrg: nothing here tells energy (nrg sensors says what would)\n");
    if (source == AN_ESTIMATE)
        fprintf(out, "nrg: no energy sensor: energy is estimated from CPU time (nrg sensors says "
                     "what would be better)\n");
    if (source == AN_ESTIMATE && o->has_baseline)
        fprintf(out, "nrg: --baseline tells nothing here: the estimate knows its own idle power\n");
    if (source == A_SENSOR && !o->has_baseline)
        fprintf(out, "nrg: idle power is not measured: --baseline 5s does it (without, the run may "
                     "show it)\n");
    if (source == A_SENSOR && o->marks_spans && o->rate_hz > 0 && o->rate_hz < SLOW_FOR_SPANS_HZ)
        fprintf(out,
                "nrg: %g readings a second are few for spans: --rate 100Hz, or many more steps\n",
                o->rate_hz);
}
