/*
 * See cpu_power.h. Numbers decide, not names: virtual machines cut the model name ("AMD EPYC")
 * but pass vendor, family, model and stepping through. The name only excludes: a Ryzen
 * Threadripper shares its numbers with an EPYC and is run differently.
 *
 * Within a family, parts with a high clock draw more per thread, and chips with few cores too: a
 * chip's idle power hardly depends on how many cores it has. Where the chip's cores are not known,
 * as in a virtual machine, the watts are those that were learnt without them, and the band is
 * wider.
 */
#include "sensors/machine/cpu_power.h"

#include <math.h>
#include <string.h>

/* Beyond these, what was learnt within families says nothing. */
#define CLOCK_RATIO 2.5
#define CORES_RATIO 16.0
/* No machine that was measured draws more of its full power when idle. */
#define IDLE_OF_FULL 0.8

static bool matches_model(const struct nrg_cpu_id *id, const struct nrg_cpu_model *m)
{
    enum nrg_cpu_where here = m->virtual_machine ? NRG_CPU_VIRTUAL : NRG_CPU_BARE_METAL;
    return !strcmp(id->vendor, m->vendor) && id->family == m->family && m->model >= id->model &&
           m->model <= id->model_to && m->stepping >= id->stepping &&
           m->stepping <= id->stepping_to && (id->where == NRG_CPU_ANYWHERE || id->where == here) &&
           !(*id->unless && strstr(m->name, id->unless));
}

static bool is_server_name(const char *name)
{
    return !*name || strstr(name, "Xeon") || strstr(name, "XEON") || strstr(name, "EPYC") ||
           strstr(name, "Opteron");
}

/* Whoever rents out a virtual machine runs servers. */
static enum nrg_cpu_generic generic_row(const struct nrg_cpu_model *m)
{
    if (!strcmp(m->vendor, "ARM"))
        return m->device_tree && !m->virtual_machine ? NRG_CPU_UNKNOWN_ARM_BOARD
                                                     : NRG_CPU_UNKNOWN_ARM_SERVER;
    return m->virtual_machine || is_server_name(m->name) ? NRG_CPU_UNKNOWN_SERVER
                                                         : NRG_CPU_UNKNOWN_CLIENT;
}

const struct nrg_cpu_family *nrg_cpu_family_of(const struct nrg_cpu_model *m, bool *known)
{
    *known = true;
    for (size_t i = 0; i < nrg_cpu_n_ids; i++)
        if (matches_model(&nrg_cpu_ids[i], m))
            return &nrg_cpu_families[nrg_cpu_ids[i].row];
    *known = false;
    return &nrg_cpu_families[nrg_cpu_n_families - (size_t)generic_row(m)];
}

/*
 * On bare metal without SMT each CPU that we see is a whole core. In a virtual machine the topology
 * is often made up, and a CPU is one thread of the host unless its type is known to be sold as
 * cores.
 */
unsigned nrg_cpu_threads_per_cpu(const struct nrg_cpu_model *m, const struct nrg_cpu_family *family)
{
    bool no_smt = m->cores && m->siblings == m->cores && !m->virtual_machine;
    return no_smt || m->whole_cores ? family->smt : 1;
}

unsigned nrg_cpu_most_threads_per_cpu(const struct nrg_cpu_model *m,
                                      const struct nrg_cpu_family *family)
{
    /* Who shows two threads of a core has no reason to make that up. */
    bool shows_smt = m->cores && m->siblings > m->cores;
    return m->virtual_machine && !shows_smt ? family->smt : nrg_cpu_threads_per_cpu(m, family);
}

static double scale(unsigned mine, unsigned of_row, double exponent, double most)
{
    if (!mine || !of_row)
        return 1;
    double ratio = (double)mine / of_row;
    return pow(fmin(fmax(ratio, 1 / most), most), exponent);
}

static void scale_band(struct nrg_cpu_band *band, const struct nrg_cpu_model *m,
                       const struct nrg_cpu_family *family, const struct nrg_cpu_exponents *e)
{
    double factor = scale(m->clock_mhz, family->clock_mhz, e->clock, CLOCK_RATIO) *
                    scale(m->chip_cores, family->chip_cores, e->cores, CORES_RATIO);
    band->low_w *= factor;
    band->typical_w *= factor;
    band->high_w *= factor;
}

struct nrg_cpu_power nrg_cpu_power_of(const struct nrg_cpu_model *m,
                                      const struct nrg_cpu_family *family)
{
    enum nrg_cpu_view view = m->chip_cores ? NRG_CPU_OF_METAL : NRG_CPU_OF_GUEST;
    struct nrg_cpu_power power = family->power[view];
    scale_band(&power.idle, m, family, &nrg_cpu_powers[view].idle);
    scale_band(&power.full, m, family, &nrg_cpu_powers[view].full);
    power.idle.low_w = fmin(power.idle.low_w, IDLE_OF_FULL * power.full.low_w);
    power.idle.typical_w = fmin(power.idle.typical_w, IDLE_OF_FULL * power.full.typical_w);
    power.idle.high_w = fmin(power.idle.high_w, IDLE_OF_FULL * power.full.high_w);
    return power;
}
