/*
 * The checks of a scenario that need the whole file: a domain without power, parents that are
 * missing or contain themselves, the same channel twice, and sensor properties that exclude each
 * other in any order (wrap of a gauge, lag of a counter, a quantum too small for int64).
 * nrg_scenario_parse calls it once; it also fills in the default quantum.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "sensors/virtual/internal.h"

#define MAX_RAW 4e18 /* quanta: leaves room in int64 */

static const struct nrg_scenario_domain *find_domain(const struct nrg_scenario *scenario,
                                                     const char *name)
{
    for (size_t i = 0; i < scenario->n_domains; i++)
        if (!strcmp(scenario->domains[i].name, name))
            return &scenario->domains[i];
    return NULL;
}

static int check_parent(struct nrg_parser *s)
{
    const struct nrg_scenario_domain *up = s->domain;
    s->line = s->domain->parent_line;
    for (size_t steps = 0; up->parent[0]; steps++) {
        const struct nrg_scenario_domain *parent = find_domain(s->scenario, up->parent);
        if (!parent)
            return REFUSE(s, "parent '%s' is not a domain of this file", up->parent);
        if (steps == s->scenario->n_domains)
            return REFUSE(s, "%s contains itself through its parents", s->domain->name);
        up = parent;
    }
    return 0;
}

static int check_sensor(struct nrg_parser *s)
{
    const struct nrg_scenario_domain *d = s->domain;
    if (d->gauge && (d->wrap_j > 0 || d->start_j > 0))
        return REFUSE(s, "%s is a gauge: wrap and start are for counters", d->name);
    if (!d->gauge && d->lag_ns)
        return REFUSE(s, "%s is a counter: lag is for gauges", d->name);
    for (size_t i = 0; d->gauge && i < d->n_faults; i++)
        if (d->faults[i].kind == NRG_FAULT_BACKWARDS)
            return REFUSE(s, "%s is a gauge: only counters go backwards", d->name);
    if (d->wrap_j > 0 && d->start_j >= d->wrap_j)
        return REFUSE(s, "%s starts at %g J, beyond its wrap at %g J", d->name, d->start_j,
                      d->wrap_j);
    if (fmax(d->start_j, d->wrap_j) / d->quantum > MAX_RAW)
        return REFUSE(s, "%s: quantum %g is too small for its wrap or start", d->name, d->quantum);
    if (d->wrap_j > 0 && d->wrap_j < 2 * d->quantum)
        return REFUSE(s, "%s wraps at %g J, less than two quanta of %g J", d->name, d->wrap_j,
                      d->quantum);
    return 0;
}

static int check_domain(struct nrg_parser *s)
{
    struct nrg_scenario_domain *d = s->domain;
    s->line = d->line;
    if (!d->shape && !(d->per_busy_cpu_w > 0) && !d->follows[0])
        return REFUSE(s, "%s has no power: add power, ramp, burst, per-busy-cpu or joules-from",
                      d->name);
    if (d->per_busy_cpu_w > 0 && d->follows[0])
        return REFUSE(s, "%s can't follow both the CPUs and a file", d->name);
    for (const struct nrg_scenario_domain *o = s->scenario->domains; o < d; o++)
        if (o->gauge == d->gauge && !strcmp(o->name, d->name))
            return REFUSE(s, "%s is there already, on line %d", d->name, o->line);
    if (d->quantum < 0 ? !d->gauge : (d->quantum > 0 && d->gauge))
        return REFUSE(s, "%s: quantum is in J for counters and in W for gauges", d->name);
    d->quantum = d->quantum == 0 ? (d->gauge ? 1e-3 : 1e-6) : fabs(d->quantum);
    int rc = check_sensor(s);
    return rc ? rc : check_parent(s);
}

int nrg_scenario_check(struct nrg_parser *s)
{
    int rc = 0;
    s->line = 1;
    if (!s->scenario->n_domains)
        return REFUSE(s, "no domain in it");
    for (size_t i = 0; !rc && i < s->scenario->n_domains; i++) {
        s->domain = &s->scenario->domains[i];
        rc = check_domain(s);
    }
    return rc;
}
