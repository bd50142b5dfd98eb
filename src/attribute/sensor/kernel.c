/* See kernel.h. */
#include "attribute/sensor/kernel.h"

#include <math.h>

#define MEMORIES 12 /* time constants, after which 6e-6 of a value is left */

double nrg_sensor_end_s(const struct nrg_sensor *s, const struct nrg_facts *f, size_t i)
{
    double middle_s = (f->begin_s + f->end_s) / 2, t_s = f->t_s[i];
    if (s->kind == NRG_SENSOR_DELAY)
        return t_s - s->delay_s - s->slew * (t_s - middle_s);
    double period_s = f->update_s * (1 + s->slew), from_s = middle_s + s->delay_s;
    return from_s + period_s * floor((t_s - from_s) / period_s);
}

struct nrg_sight nrg_sensor_sight(const struct nrg_sensor *s, const struct nrg_facts *f, size_t i)
{
    if (!f->is_gauge)
        return (struct nrg_sight){nrg_sensor_end_s(s, f, i), nrg_sensor_end_s(s, f, i + 1), 0, 1};
    double end_s = f->t_s[i] - s->delay_s;
    if (s->kind == NRG_SENSOR_MEMORY)
        return (struct nrg_sight){end_s - MEMORIES * s->width_s, end_s, s->width_s, 1};
    return (struct nrg_sight){end_s - s->width_s, end_s, 0, 1 / s->width_s};
}

double nrg_sight_weight(const struct nrg_sight *sight, double begin_s, double end_s)
{
    double from_s = fmax(begin_s, sight->begin_s), to_s = fmin(end_s, sight->end_s);
    if (!(to_s > from_s))
        return 0;
    if (!(sight->memory_s > 0))
        return (to_s - from_s) * sight->scale;
    double w = sight->memory_s;
    return sight->scale * (exp((to_s - sight->end_s) / w) - exp((from_s - sight->end_s) / w));
}
