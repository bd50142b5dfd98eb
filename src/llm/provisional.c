/* See provisional.h. */
#include "llm/provisional.h"

#include <math.h>

#include "base/clock.h"
#include "record/sampler/live.h"

#define ASK_NS (10 * NRG_NS_PER_MS) /* readings are not more frequent, as a rule */

void nrg_provisional_init(struct nrg_provisional *p, struct nrg_recorder *recorder, double idle_w,
                          int64_t begin_ns)
{
    *p = (struct nrg_provisional){.recorder = recorder,
                                  .idle_w = idle_w > 0 ? idle_w : 0,
                                  .t_ns = begin_ns,
                                  .at_ns = begin_ns};
}

static void ask(struct nrg_provisional *p, int64_t now_ns)
{
    struct nrg_live_sum sum;
    if (p->read_ns && now_ns - p->read_ns < ASK_NS)
        return;
    p->read_ns = now_ns;
    if (nrg_recorder_energy(p->recorder, &sum))
        return;
    if (sum.t_ns > p->t_ns)
        p->power_w = (sum.energy_j - p->energy_j) / ((double)(sum.t_ns - p->t_ns) * 1e-9);
    p->t_ns = sum.t_ns;
    p->energy_j = sum.energy_j;
    p->known = true;
}

double nrg_provisional_at(struct nrg_provisional *p, int64_t now_ns)
{
    ask(p, now_ns);
    if (!p->known)
        return NAN;
    double since_s = now_ns > p->t_ns ? (double)(now_ns - p->t_ns) * 1e-9 : 0;
    double energy_j = p->energy_j + p->power_w * since_s;
    double more_j = energy_j - p->shared_j;
    more_j -= p->idle_w * (double)(now_ns - p->at_ns) * 1e-9;
    p->at_ns = now_ns;
    p->shared_j = energy_j;
    if (p->running && more_j > 0)
        p->each_j += more_j / (double)p->running;
    return p->each_j;
}

void nrg_provisional_runs(struct nrg_provisional *p, int64_t now_ns, int more)
{
    nrg_provisional_at(p, now_ns);
    if (more > 0)
        p->running++;
    else if (p->running)
        p->running--;
}
