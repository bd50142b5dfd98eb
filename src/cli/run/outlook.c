/* See outlook.h. */
#include "cli/run/outlook.h"

#include <math.h>

#include "llm/serving.h"

/* Below this, a layer of some ms needs minutes of repetitions (docs/uncertainty.md). */
#define SLOW_FOR_SPANS_HZ 50
/* Rows of a regression of a server's counts: 45 s and 300 s in the tables of docs/llm.md. */
#define KNOWN_ROWS  23
#define PRICED_ROWS 150

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

/* The update of the slowest sensor of energy, as far as drivers say it. */
static int64_t slowest_update_ns(const struct nrg_probe *sensors)
{
    int64_t slowest_ns = 0;
    for (size_t f = 0; f < sensors->n_found; f++)
        for (size_t c = 0; c < sensors->found[f].n_channels; c++) {
            const struct nrg_channel *channel = &sensors->found[f].channels[c];
            bool energy = channel->quantity == NRG_ENERGY || channel->quantity == NRG_POWER;
            if (sensors->found[f].wanted[c] && energy && channel->update_ns > slowest_ns)
                slowest_ns = channel->update_ns;
        }
    return slowest_ns;
}

/* What servers of known laws needed (docs/llm.md), where rows of the regression are of 2 s. */
static void print_server(const struct nrg_probe *sensors, FILE *out)
{
    double row_s = nrg_serving_row_s(slowest_update_ns(sensors));
    fprintf(out,
            "nrg: joules per token with all its time take about %.0f s of requests for ±3 %%; a "
            "token's own price at least %.0f min for ±4 %%, and a load that varies\n",
            ceil(KNOWN_ROWS * row_s / 10) * 10, ceil(PRICED_ROWS * row_s / 60));
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
    if (o->asks_server && (there.sensor || there.estimate))
        print_server(o->sensors, out);
}
