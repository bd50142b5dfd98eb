/*
 * See sim_meter.h. A read visits the fault edges since the last read in time order, so that a
 * sensor that sticks at 2 s shows the value of 2 s whenever it is read. At every edge the state
 * moves to the last update (a multiple of the period) in one exact step.
 *
 * A counter shows start + true energy + adjustments, never a running sum: reading it a thousand
 * times gives the same digits as reading it once. Only a noisy counter has to visit every update.
 * Beyond MAX_STEPS updates at once it draws one number for all of them, with the deviation that
 * their sum would have, so that a long pause does not cause a long loop.
 */
#include "sensors/virtual/sim_meter.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/root.h"
#include "sensors/machine/files.h"
#include "sensors/virtual/scenario_truth.h"

#define MAX_STEPS 4096
#define MAX_RAW   9e18
/* In quanta: 0.3 / 0.1 is just below 3, but a sensor with quanta of 0.1 J shows 0.3 J. */
#define ROUNDING_SLACK 1e-6

static uint64_t splitmix64(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* (0, 1]: the logarithm below must exist. */
static double uniform_random(uint64_t seed, uint64_t index)
{
    uint64_t bits = splitmix64(seed + (index + 1) * UINT64_C(0x9e3779b97f4a7c15));
    return (double)((bits >> 11) + 1) * 0x1p-53;
}

double nrg_sim_gauss(uint64_t seed, uint64_t index)
{
    double radius = sqrt(-2 * log(uniform_random(seed, 2 * index)));
    return radius * cos(2 * M_PI * uniform_random(seed, 2 * index + 1));
}

void nrg_sim_meter_init(struct nrg_sim_meter *m, const struct nrg_scenario *scenario, size_t domain,
                        double live)
{
    const struct nrg_scenario_domain *d = &scenario->domains[domain];
    *m = (struct nrg_sim_meter){.domain = d,
                                .seed = splitmix64(scenario->seed + (domain << 32)),
                                .t_ns = -1,
                                .live = live,
                                .latched_live = live,
                                .lagged_w = nrg_scenario_true_w(d, 0)};
    m->shown = d->gauge ? m->lagged_w : d->start_j;
}

static double truncated_noise(const struct nrg_sim_meter *m, uint64_t index, double deviation)
{
    double noise = deviation > 0 ? deviation * nrg_sim_gauss(m->seed, index) : 0;
    return noise < -1 ? -1 : noise; /* power and increments do not go below zero */
}

/* What noise adds to the counter between two updates; `live_j` is spread evenly over them. */
static double counter_noise_j(const struct nrg_sim_meter *m, int64_t latch_ns, double live_j)
{
    const struct nrg_scenario_domain *d = m->domain;
    int64_t n = (latch_ns - m->latch_ns) / d->update_ns;
    int64_t stride_ns = d->update_ns;
    double deviation = d->noise, noise_j = 0;
    if (n > MAX_STEPS) {
        deviation /= sqrt((double)n);
        stride_ns *= n;
        n = 1;
    }
    for (int64_t i = 0, t_ns = m->latch_ns; i < n; i++, t_ns += stride_ns) {
        uint64_t index = (uint64_t)((t_ns + stride_ns) / d->update_ns);
        double energy_j = nrg_scenario_true_j(d, t_ns, t_ns + stride_ns) + live_j / (double)n;
        noise_j += energy_j * truncated_noise(m, index, deviation);
    }
    return noise_j;
}

static double gauge_w(struct nrg_sim_meter *m, int64_t latch_ns, double live_j)
{
    const struct nrg_scenario_domain *d = m->domain;
    double h_s = (double)(latch_ns - m->latch_ns) / (double)NRG_NS_PER_S;
    double lag_s = (double)d->lag_ns / (double)NRG_NS_PER_S;
    double live_w = h_s > 0 ? live_j / h_s : m->lagged_live_w;
    m->lagged_w = nrg_scenario_lagged_w(d, m->latch_ns, m->lagged_w, latch_ns);
    m->lagged_live_w = d->lag_ns ? nrg_lag_step_w(m->lagged_live_w, live_w, 0, h_s, lag_s) : live_w;
    uint64_t index = (uint64_t)(latch_ns / d->update_ns);
    return (m->lagged_w + m->lagged_live_w) * (1 + truncated_noise(m, index, d->noise));
}

/* Moves the state to the update at latch_ns. */
static void update_state(struct nrg_sim_meter *m, int64_t latch_ns, double latched_live,
                         bool frozen, bool stuck)
{
    const struct nrg_scenario_domain *d = m->domain;
    double live_j = (d->follows[0] ? 1 : d->per_busy_cpu_w) * (latched_live - m->latched_live);
    double shown;
    if (d->gauge) {
        shown = gauge_w(m, latch_ns, live_j);
    } else {
        m->adjust_j += live_j;
        if (frozen)
            m->adjust_j -= live_j + nrg_scenario_true_j(d, m->latch_ns, latch_ns);
        else if (d->noise > 0)
            m->adjust_j += counter_noise_j(m, latch_ns, live_j);
        shown = d->start_j + nrg_scenario_true_j(d, 0, latch_ns) + m->adjust_j;
    }
    m->latch_ns = latch_ns;
    m->latched_live = latched_live;
    if (!frozen && !stuck)
        m->shown = shown;
}

/* The last value is that at the start of the fault; a freeze includes its end. */
static bool stands_still(const struct nrg_scenario_domain *d, enum nrg_scenario_fault_kind kind,
                         int64_t t_ns)
{
    for (size_t i = 0; i < d->n_faults; i++) {
        const struct nrg_scenario_fault *f = &d->faults[i];
        if (f->kind == kind && t_ns > f->start_ns &&
            (t_ns < f->end_ns || (t_ns == f->end_ns && kind == NRG_FAULT_FREEZE)))
            return true;
    }
    return false;
}

static void jump_back(struct nrg_sim_meter *m, int64_t t_ns)
{
    const struct nrg_scenario_domain *d = m->domain;
    for (size_t i = 0; i < d->n_faults; i++) {
        if (d->faults[i].kind == NRG_FAULT_BACKWARDS && d->faults[i].start_ns == t_ns) {
            m->adjust_j -= d->faults[i].energy_j;
            m->shown -= d->faults[i].energy_j;
        }
    }
}

/* Earliest fault edge after `after_ns` and not after `until_ns`; until_ns when there is none. */
static int64_t next_edge_ns(const struct nrg_scenario_domain *d, int64_t after_ns, int64_t until_ns)
{
    int64_t edge_ns = until_ns;
    for (size_t i = 0; i < d->n_faults; i++) {
        const struct nrg_scenario_fault *f = &d->faults[i];
        if (f->start_ns > after_ns && f->start_ns < edge_ns)
            edge_ns = f->start_ns;
        if (f->end_ns > after_ns && f->end_ns < edge_ns)
            edge_ns = f->end_ns;
    }
    return edge_ns;
}

/* What is live is only known at reads; between two of them it grows evenly. */
static double live_at(const struct nrg_sim_meter *m, int64_t t_ns, int64_t read_ns, double read_s)
{
    if (m->t_ns < 0 || read_ns <= m->t_ns || t_ns >= read_ns)
        return read_s;
    double share = (double)(t_ns - m->t_ns) / (double)(read_ns - m->t_ns);
    return m->live + (read_s - m->live) * share;
}

static void advance_to(struct nrg_sim_meter *m, int64_t read_ns, double live)
{
    const struct nrg_scenario_domain *d = m->domain;
    int64_t t_ns = m->t_ns;
    while (t_ns < read_ns) {
        t_ns = next_edge_ns(d, t_ns, read_ns);
        int64_t latch_ns = t_ns - t_ns % d->update_ns;
        bool frozen = stands_still(d, NRG_FAULT_FREEZE, t_ns);
        bool stuck = stands_still(d, NRG_FAULT_STUCK, t_ns);
        update_state(m, latch_ns,
                     latch_ns > m->latch_ns ? live_at(m, latch_ns, read_ns, live) : m->latched_live,
                     frozen, stuck);
        jump_back(m, t_ns);
    }
    m->t_ns = read_ns;
    m->live = live;
}

uint64_t nrg_sim_meter_wrap(const struct nrg_scenario_domain *d)
{
    return (uint64_t)llround(d->wrap_j / d->quantum);
}

static int to_raw(const struct nrg_sim_meter *m, int64_t *raw)
{
    double quanta = floor(m->shown / m->domain->quantum + ROUNDING_SLACK);
    int64_t wrap = (int64_t)nrg_sim_meter_wrap(m->domain);
    if (!(fabs(quanta) < MAX_RAW))
        return -EOVERFLOW;
    int64_t count = (int64_t)quanta;
    if (wrap)
        count = (count % wrap + wrap) % wrap;
    *raw = count < 0 ? 0 : count;
    return 0;
}

int nrg_sim_meter_read(struct nrg_sim_meter *m, int64_t t_ns, double live, int64_t *raw)
{
    const struct nrg_scenario_domain *d = m->domain;
    advance_to(m, t_ns, live);
    for (size_t i = 0; i < d->n_faults; i++)
        if (d->faults[i].kind == NRG_FAULT_ERROR && t_ns >= d->faults[i].start_ns &&
            t_ns < d->faults[i].end_ns)
            return d->faults[i].error;
    return to_raw(m, raw);
}

bool nrg_scenario_gone(const struct nrg_scenario *scenario, int64_t t_ns)
{
    for (size_t i = 0; i < scenario->n_domains; i++)
        for (size_t f = 0; f < scenario->domains[i].n_faults; f++)
            if (scenario->domains[i].faults[f].kind == NRG_FAULT_GONE &&
                t_ns >= scenario->domains[i].faults[f].start_ns)
                return true;
    return false;
}

int nrg_sim_busy_cpu_s(int fd, double *busy_s)
{
    char text[NRG_PROC_STAT_HEAD];
    struct nrg_cpu_ticks ticks;
    ssize_t n = nrg_pread_text(fd, text, sizeof text);
    if (n < 0)
        return (int)n;
    if (!memchr(text, '\n', (size_t)n) || nrg_proc_stat_total(text, (size_t)n, &ticks))
        return -EINVAL;
    *busy_s = (double)ticks.busy / (double)sysconf(_SC_CLK_TCK);
    return 0;
}
