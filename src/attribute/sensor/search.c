/* See search.h. The places and steps are those of ATTRIBUTION.md. */
#include "attribute/sensor/search.h"

#include <math.h>

#define SLOW_UPDATE_S 0.05 /* from here on a counter may also be late by a constant */
#define QUICK_PHASES  100
#define SLOW_PHASES   100
#define SLEW          1e-4 /* clocks of crystals are within 100 ppm */
#define MEAN_S        0.5  /* gauges that update so seldom show the mean since the last update */
#define SHORTEST_S    0.0125
#define WIDTHS        7
#define APART         8 /* steps */

static size_t counter_starts(const struct nrg_facts *f, struct nrg_sensor *starts,
                             struct nrg_sensor *step)
{
    bool slow = f->update_s >= SLOW_UPDATE_S;
    size_t phases = slow ? SLOW_PHASES : QUICK_PHASES, n = 0;
    for (int kind = NRG_SENSOR_GRID; kind <= (slow ? NRG_SENSOR_DELAY : NRG_SENSOR_GRID); kind++)
        for (size_t i = 0; i < phases; i++)
            for (int slew = slow ? -1 : 0; slew <= (slow ? 1 : 0); slew++)
                starts[n++] =
                    (struct nrg_sensor){.kind = (enum nrg_sensor_kind)kind,
                                        .delay_s = f->update_s * (double)i / (double)phases,
                                        .slew = slew * SLEW};
    *step = (struct nrg_sensor){.delay_s = f->update_s / (double)phases / 2,
                                .slew = slow ? SLEW / 2 : 1e-7};
    return n;
}

static size_t gauge_starts(const struct nrg_facts *f, struct nrg_sensor *starts,
                           struct nrg_sensor *step)
{
    static const double delays[] = {0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1};
    size_t n = 0;
    *step = (struct nrg_sensor){.delay_s = 0.01};
    if (f->update_s >= MEAN_S) {
        for (size_t i = 0; i < sizeof delays / sizeof *delays; i++)
            starts[n++] = (struct nrg_sensor){
                .kind = NRG_SENSOR_BOX, .delay_s = delays[i], .width_s = f->update_s};
        return n;
    }
    for (int kind = NRG_SENSOR_BOX; kind <= NRG_SENSOR_MEMORY; kind++)
        for (int i = 0; i < WIDTHS; i++)
            starts[n++] = (struct nrg_sensor){.kind = (enum nrg_sensor_kind)kind,
                                              .width_s = SHORTEST_S * pow(2, i)};
    step->width_s = SHORTEST_S / 3;
    return n;
}

size_t nrg_sensor_starts(const struct nrg_facts *f, struct nrg_sensor starts[NRG_SENSOR_STARTS],
                         struct nrg_sensor *step)
{
    return f->is_gauge ? gauge_starts(f, starts, step) : counter_starts(f, starts, step);
}

bool nrg_sensor_near(const struct nrg_sensor *a, const struct nrg_sensor *b,
                     const struct nrg_sensor *step)
{
    return a->kind == b->kind && a->width_s == b->width_s &&
           fabs(a->delay_s - b->delay_s) <= APART * step->delay_s;
}

double *nrg_sensor_parameter(struct nrg_sensor *s, size_t i)
{
    return i == 0 ? &s->delay_s : i == 1 ? &s->slew : &s->width_s;
}

double nrg_sensor_little(const struct nrg_sensor *s, const struct nrg_facts *f, size_t i)
{
    if (i == 0)
        return f->update_s < 0.02 ? 2e-6 : 1e-5;
    if (i == 1)
        return f->is_gauge ? 0 : 1e-8;
    return f->is_gauge && f->update_s < MEAN_S ? 1e-3 * s->width_s : 0;
}
