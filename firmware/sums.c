/*
 * The interrupt's half of meter.h: no division, no loop that depends on data.
 *
 * Currents are sampled after the voltage, and transformers add a delay, so the voltage is wanted
 * between samples. Interpolating it is linear, and so is adding up: instead of a voltage between
 * samples, the products of the current with four neighbouring voltages are added up, and meter.c
 * weighs the four sums once per window. This needs the two voltages after a current, so sets are
 * added two sets late.
 *
 * Sums are about the middle of the ADC's range. The true middle of the inputs is some counts off;
 * meter.c takes that out exactly, because the sums of v and i are known.
 */
#include "meter.h"

#include <string.h>

static void keep_edge(const struct meter *meter, bool crossing, struct meter_edge *edge)
{
    memcpy(edge->v, meter->v, sizeof edge->v);
    for (uint8_t c = 0; c < METER_CLAMPS; c++) {
        edge->i[c][0] = meter->i[c][0];
        edge->i[c][1] = meter->i[c][1];
    }
    edge->zero = meter->zero;
    edge->crossing = crossing;
}

/* The first crossing: what came before is no whole cycle. Its time counts, its sums do not. */
static void begin_first_window(struct meter *meter, bool crossing)
{
    struct meter_window *window = meter->window;
    uint16_t ahead = window->n;
    uint32_t lost = window->lost;
    memset(window, 0, sizeof *window);
    window->ahead = ahead;
    window->lost = lost;
    keep_edge(meter, crossing, &window->begin);
    meter->begun = true;
}

static void hand_over_window(struct meter *meter, bool crossing)
{
    struct meter_window *window = meter->window;
    keep_edge(meter, crossing, &window->end);
    meter->filling ^= 1;
    meter->window = &meter->windows[meter->filling];
    meter->window->begin = window->end;
    meter->zero = meter->next_zero;
    meter->hysteresis = meter->next_hysteresis;
    METER_HAND_OVER();
    meter->full = true;
}

static void end_cycle(struct meter *meter, bool crossing)
{
    struct meter_window *window = meter->window;
    meter->cycle_n = 0;
    if (!meter->begun) {
        begin_first_window(meter, crossing);
        return;
    }
    if (window->cycles < UINT8_MAX)
        window->cycles++;
    window->broken |= !crossing;
    if (window->cycles >= meter->cycles && !meter->full)
        hand_over_window(meter, crossing);
}

/* A positive-going crossing, armed by a voltage well below zero so that noise makes no second. */
static bool crosses_zero(struct meter *meter, int16_t v)
{
    if (v < 0) {
        if (v < -meter->hysteresis)
            meter->armed = true;
        return false;
    }
    bool crossing = meter->armed && meter->cycle_n >= meter->shortest;
    meter->armed = false;
    return crossing;
}

void meter_voltage(struct meter *meter, int16_t v)
{
    meter->v[0] = meter->v[1];
    meter->v[1] = meter->v[2];
    meter->v[2] = meter->v[3];
    meter->v[3] = meter->v[4];
    meter->v[4] = v;
    int16_t now = meter->v[2];
    if (crosses_zero(meter, (int16_t)(now - meter->zero)))
        end_cycle(meter, true);
    else if (meter->cycle_n >= meter->longest)
        end_cycle(meter, false);
    meter->cycle_n++;
    struct meter_window *window = meter->window;
    meter->adding = window->n < METER_MOST_SETS;
    if (!meter->adding) {
        window->lost += METER_SLOTS;
        return;
    }
    window->n++;
    window->sums.v += now;
    window->sums.vv += (int32_t)now * now;
}

void meter_current(struct meter *meter, uint8_t clamp, int16_t i)
{
    int16_t *past = meter->i[clamp], now = past[1];
    past[0] = now;
    past[1] = past[2];
    past[2] = i;
    if (!meter->adding)
        return;
    struct meter_sums *sums = &meter->window->sums;
    int32_t *vi = sums->clamp[clamp].vi;
    sums->clamp[clamp].i += now;
    vi[0] += (int32_t)now * meter->v[1];
    vi[1] += (int32_t)now * meter->v[2];
    vi[2] += (int32_t)now * meter->v[3];
    vi[3] += (int32_t)now * meter->v[4];
}

void meter_lost(struct meter *meter, uint16_t conversions)
{
    meter->window->lost += conversions;
}
