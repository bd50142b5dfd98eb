/* The classic method, see calcvi.h. Turned inside out: it is given samples instead of taking them.
 */
#include "sensors/calcvi.h"

#include <math.h>
#include <string.h>

void nrg_calcvi_init(struct nrg_calcvi *calc, double v_scale, double i_scale, double rate_hz,
                     double pause_s)
{
    memset(calc, 0, sizeof *calc);
    calc->v_scale = v_scale;
    calc->i_scale = i_scale;
    calc->phase = 1;
    calc->crossings = 20;
    calc->timeout = (unsigned)(2 * rate_hz);
    calc->pause = (unsigned)(pause_s * rate_hz);
    calc->state = NRG_CALCVI_START;
}

static bool finish(struct nrg_calcvi *calc, struct nrg_calcvi_result *out)
{
    double n = calc->n;
    calc->seen += calc->n;
    out->v_rms = calc->v_scale * sqrt(calc->vv / n);
    out->i_rms = calc->i_scale * sqrt(calc->ii / n);
    out->power_w = calc->v_scale * calc->i_scale * calc->vi / n;
    out->apparent_va = out->v_rms * out->i_rms;
    out->power_factor = out->apparent_va > 0 ? out->power_w / out->apparent_va : 0;
    calc->state = calc->pause ? NRG_CALCVI_PAUSE : NRG_CALCVI_START;
    calc->waited = 0;
    return true;
}

static bool sum(struct nrg_calcvi *calc, double v, double i, struct nrg_calcvi_result *out)
{
    calc->v_offset += (v - calc->v_offset) / 1024;
    calc->i_offset += (i - calc->i_offset) / 1024;
    double v_now = v - calc->v_offset, i_now = i - calc->i_offset;
    double shifted = calc->v_last + calc->phase * (v_now - calc->v_last);
    calc->vv += v_now * v_now;
    calc->ii += i_now * i_now;
    calc->vi += shifted * i_now;
    calc->v_last = v_now;
    calc->above = v_now > 0;
    if (!calc->n++)
        calc->was_above = calc->above;
    calc->crossed += calc->above != calc->was_above;
    calc->was_above = calc->above;
    if (calc->crossed < calc->crossings && ++calc->waited < calc->timeout)
        return false;
    return finish(calc, out);
}

/* Waits for a voltage near the middle: the measurement begins where it will end. */
static void wait(struct nrg_calcvi *calc, double v)
{
    double size = fabs(v - calc->v_offset);
    calc->unseen++;
    if (size > calc->v_peak)
        calc->v_peak = size;
    if (size > calc->v_peak * .1 && ++calc->waited < calc->timeout)
        return;
    calc->state = NRG_CALCVI_SUM;
    calc->v_last = v - calc->v_offset;
    calc->waited = calc->crossed = calc->n = 0;
    calc->vv = calc->ii = calc->vi = 0;
}

bool nrg_calcvi_feed(struct nrg_calcvi *calc, double v, double i, struct nrg_calcvi_result *out)
{
    if (!calc->begun) {
        calc->begun = true;
        calc->v_offset = v;
        calc->i_offset = i;
    }
    if (calc->state == NRG_CALCVI_SUM)
        return sum(calc, v, i, out);
    if (calc->state == NRG_CALCVI_START) {
        wait(calc, v);
        return false;
    }
    calc->unseen++;
    if (++calc->waited >= calc->pause) {
        calc->state = NRG_CALCVI_START;
        calc->waited = 0;
    }
    return false;
}
