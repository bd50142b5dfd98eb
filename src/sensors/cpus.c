/* See cpus.h. */
#include "sensors/cpus.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"

#define CPU_DIR "/sys/devices/system/cpu"

static int read_place(const struct nrg_root *root, struct nrg_cpu *cpu)
{
    char path[128];
    snprintf(path, sizeof path, CPU_DIR "/cpu%u/topology/physical_package_id", cpu->cpu);
    int rc = nrg_root_read_i64(root, path, &cpu->package);
    if (rc)
        return rc;
    if (cpu->package < 0) /* virtual machines and some ARM boards say -1 */
        cpu->package = 0;
    snprintf(path, sizeof path, CPU_DIR "/cpu%u/topology/die_id", cpu->cpu);
    if (nrg_root_read_i64(root, path, &cpu->die) || cpu->die < 0)
        cpu->die = 0;
    snprintf(path, sizeof path, CPU_DIR "/cpu%u/topology/core_id", cpu->cpu);
    if (nrg_root_read_i64(root, path, &cpu->core))
        cpu->core = -1;
    return 0;
}

int nrg_cpus_read(const struct nrg_root *root, struct nrg_cpus *out)
{
    struct nrg_names names;
    *out = (struct nrg_cpus){0};
    int rc = nrg_root_list(root, CPU_DIR, &names);
    if (rc)
        return rc;
    for (size_t i = 0; !rc && i < names.n; i++) {
        struct nrg_cpu cpu = {0};
        uint64_t number;
        const char *name = names.items[i];
        if (strncmp(name, "cpu", 3) || !isdigit((unsigned char)name[3]) ||
            nrg_parse_u64(name + 3, strlen(name + 3), &number) || number > 65535)
            continue;
        cpu.cpu = (unsigned)number;
        if (read_place(root, &cpu))
            continue;
        rc = nrg_append(&out->items, &out->n, &out->cap, &cpu, sizeof *out->items);
    }
    nrg_names_release(&names);
    if (rc)
        nrg_cpus_release(out);
    return rc;
}

void nrg_cpus_release(struct nrg_cpus *cpus)
{
    free(cpus->items);
    *cpus = (struct nrg_cpus){0};
}

const struct nrg_cpu *nrg_cpus_find(const struct nrg_cpus *cpus, unsigned cpu)
{
    for (size_t i = 0; i < cpus->n; i++)
        if (cpus->items[i].cpu == cpu)
            return &cpus->items[i];
    return NULL;
}

void nrg_cpus_one_per_package(struct nrg_cpus *cpus, bool by_die)
{
    size_t kept = 0;
    for (size_t i = 0; i < cpus->n; i++) {
        struct nrg_cpu cpu = cpus->items[i];
        bool seen = false;
        if (!by_die)
            cpu.die = 0;
        for (size_t k = 0; k < kept && !seen; k++)
            seen = cpus->items[k].package == cpu.package && cpus->items[k].die == cpu.die;
        if (!seen)
            cpus->items[kept++] = cpu;
    }
    cpus->n = kept;
}

void nrg_cpu_suffix(const struct nrg_cpus *cpus, const struct nrg_cpu *cpu, char *buf, size_t size)
{
    bool dies = false;
    for (size_t i = 0; i < cpus->n; i++)
        for (size_t k = 0; k < i; k++)
            dies |= cpus->items[i].package == cpus->items[k].package &&
                    cpus->items[i].die != cpus->items[k].die;
    if (dies)
        snprintf(buf, size, "%lld-die-%lld", (long long)cpu->package, (long long)cpu->die);
    else
        snprintf(buf, size, "%lld", (long long)cpu->package);
}
