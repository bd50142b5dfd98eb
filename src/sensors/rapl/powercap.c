/*
 * RAPL through the powercap tree: /sys/class/powercap/intel-rapl:N[:M]/{name,energy_uj,
 * max_energy_range_uj}. The same zone type serves AMD. Names decide what a zone is, never
 * numbers: psys is a top-level zone beside the packages. intel-rapl-mmio repeats the package
 * through another register; it comes last, so that it is only used where nothing else gives the
 * package (the registry takes the first channel of a name).
 *
 * One sensor per top-level zone, its sub-zones are its channels, read as files.h says. Since 2020
 * only root may read energy_uj (a side channel), so the probe says how to get permission.
 *
 * Refuses: AMD's core zone (is_one_core), zones without a name, other zone types (dtpm), counters
 * that do not parse.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sensors/drivers.h"
#include "sensors/files.h"
#include "sensors/fixes.h"
#include "sensors/machine/cpu_model.h"
#include "sensors/rapl/common.h"

#define CLASS_DIR "/sys/class/powercap"
#define MAX_ZONES 16 /* of one sensor: a package and its sub-zones */

struct zone {
    char name[48]; /* intel-rapl:0:1 */
    char dir[160];
};

struct zones {
    struct zone *items;
    size_t n, cap;
};

/* "intel-rapl:0" -> 1 level, "intel-rapl:a:2" -> 2; 0 when it is not a zone of that type. The
 * kernel numbers zones in hexadecimal. */
static int zone_level(const char *name, const char *type)
{
    size_t len = strlen(type);
    int level = 0;
    if (strncmp(name, type, len))
        return 0;
    for (const char *p = name + len; *p; level++) {
        size_t digits = strspn(p + 1, "0123456789abcdef");
        if (*p != ':' || !digits)
            return 0;
        p += 1 + digits;
    }
    return level;
}

static bool known_zone(const struct zones *zones, const char *name)
{
    for (size_t i = 0; i < zones->n; i++)
        if (!strcmp(zones->items[i].name, name))
            return true;
    return false;
}

/*
 * The class directory shows all zones side by side; the control type's directory nests them.
 * Hand-made and partly copied trees have one of the two: take both, each zone once.
 */
static int list_zones(const struct nrg_root *root, const char *dir, const char *type, int depth,
                      struct zones *zones)
{
    struct nrg_names names;
    int rc = nrg_root_list(root, dir, &names);
    if (rc)
        return rc;
    for (size_t i = 0; !rc && i < names.n; i++) {
        const char *name = names.items[i];
        int level = zone_level(name, type);
        if (level > 0 && level <= 2 && strlen(name) < sizeof zones->items->name &&
            !known_zone(zones, name)) {
            rc = nrg_reserve(&zones->items, &zones->cap, zones->n + 1, sizeof *zones->items);
            if (rc)
                break;
            struct zone *zone = &zones->items[zones->n++];
            nrg_copy(zone->name, sizeof zone->name, name);
            snprintf(zone->dir, sizeof zone->dir, "%.100s/%.50s", dir, name);
        }
    }
    for (size_t i = 0; !rc && depth < 2 && i < names.n; i++) {
        char sub[160];
        int level = zone_level(names.items[i], type);
        if (level != 1 && strcmp(names.items[i], type))
            continue;
        snprintf(sub, sizeof sub, "%.100s/%.50s", dir, names.items[i]);
        rc = list_zones(root, sub, type, depth + 1, zones);
        if (rc != -ENOMEM) /* one zone that can't be looked into must not hide the others */
            rc = 0;
    }
    nrg_names_release(&names);
    return rc;
}

/* AMD counts each core in a register of its own, and the kernel's zone reads one of them. */
static bool is_one_core(const struct nrg_root *root, const char *domain)
{
    struct nrg_cpu_model model;
    return !strcmp(domain, "core") && nrg_root_is_one_machine(root, NRG_PART_PROC | NRG_PART_SYS) &&
           !nrg_cpu_model_identify(root, &model) && nrg_cpu_vendor_of(&model) == NRG_VENDOR_AMD;
}

/* Adds one zone as a channel. `package` is its package's suffix, updated by package zones. */
static int add_zone(struct nrg_probe *probe, struct nrg_found *found, const struct zone *zone,
                    char *package, size_t size)
{
    char path[200], name[64];
    int64_t range, energy_uj;
    snprintf(path, sizeof path, "%s/name", zone->dir);
    int rc = nrg_root_read_label(&probe->ctx->root, path, name, sizeof name);
    if (rc)
        return nrg_probe_unavailable(probe, zone->name, NULL, "%s: %s", path, strerror(-rc));
    const char *domain = name;
    if (!strncmp(name, "package-", 8)) {
        nrg_copy(package, size, name + 8);
        domain = "package";
    }
    if (is_one_core(&probe->ctx->root, domain)) {
        snprintf(path, sizeof path, "core-%.20s (%s)", package, zone->name);
        return nrg_probe_unavailable(probe, path,
                                     "the package has it; --sensor rapl-msr adds up all cores",
                                     "on AMD this zone is the energy of one core, not of all");
    }
    snprintf(path, sizeof path, "%s/energy_uj", zone->dir);
    rc = nrg_root_read_i64(&probe->ctx->root, path, &energy_uj);
    if (rc) {
        char what[128], fix[NRG_FIX_BYTES] = "";
        snprintf(what, sizeof what, "%.60s (%s)", name, zone->name);
        if (rc == -EACCES)
            nrg_fixes(&probe->ctx->root, NRG_RAPL_DENIED, fix);
        return nrg_probe_unavailable(probe, what, fix, "%s: %s", path, strerror(-rc));
    }
    struct nrg_channel *channel = nrg_rapl_channel(found, domain, package);
    if (!channel)
        return -ENOMEM;
    nrg_copy(channel->source, sizeof channel->source, path);
    channel->scale = 1e-6;
    channel->resolution = 61e-6;
    snprintf(path, sizeof path, "%s/max_energy_range_uj", zone->dir);
    if (!nrg_root_read_i64(&probe->ctx->root, path, &range) && range > 0)
        channel->wrap = (uint64_t)range;
    return 0;
}

static int add_package(struct nrg_probe *probe, const struct zones *zones, const struct zone *top,
                       const char *type)
{
    size_t len = strlen(top->name);
    char package[32];
    struct nrg_found *found = nrg_probe_found(probe, top->name);
    if (!found)
        return -ENOMEM;
    nrg_copy(package, sizeof package, top->name + strlen(type) + 1);
    int rc = add_zone(probe, found, top, package, sizeof package);
    for (size_t i = 0; !rc && i < zones->n && found->n_channels < MAX_ZONES; i++) {
        const struct zone *zone = &zones->items[i];
        if (zone_level(zone->name, type) == 2 && !strncmp(zone->name, top->name, len) &&
            zone->name[len] == ':')
            rc = add_zone(probe, found, zone, package, sizeof package);
    }
    if (!rc && !found->n_channels)
        probe->n_found--; /* nothing readable in it; the reasons are listed */
    return rc;
}

static int probe_type(struct nrg_probe *probe, const char *type, size_t *seen)
{
    struct zones zones = {0};
    int rc = list_zones(&probe->ctx->root, CLASS_DIR, type, 0, &zones);
    for (size_t i = 0; !rc && i < zones.n; i++) {
        if (zone_level(zones.items[i].name, type) == 1) {
            ++*seen;
            rc = add_package(probe, &zones, &zones.items[i], type);
        }
    }
    free(zones.items);
    return rc;
}

static int probe_powercap(struct nrg_probe *probe, struct nrg_error *err)
{
    size_t first = probe->n_found, seen = 0;
    char fix[NRG_FIX_BYTES];
    int rc = probe_type(probe, "intel-rapl", &seen);
    if (!rc)
        rc = probe_type(probe, "intel-rapl-mmio", &seen);
    if (rc == -ENOMEM)
        return rc;
    if (rc)
        return nrg_probe_unavailable(
            probe, "RAPL through powercap", nrg_fixes(&probe->ctx->root, NRG_RAPL_ABSENT, fix),
            CLASS_DIR ": %s",
            rc == -ENOENT ? "not there (no RAPL driver, or a virtual machine)" : strerror(-rc));
    if (!seen)
        return nrg_probe_unavailable(probe, "RAPL through powercap",
                                     nrg_fixes(&probe->ctx->root, NRG_RAPL_ABSENT, fix),
                                     CLASS_DIR " holds no intel-rapl zone");
    nrg_rapl_fix_parents(probe, first);
    return 0;
}

const struct nrg_driver nrg_driver_rapl_powercap = {
    .name = "rapl-powercap",
    .summary = "CPU package, core, uncore, DRAM and platform energy from the powercap tree",
    .probe = probe_powercap,
    .open = nrg_files_open,
    .read = nrg_files_read,
    .share = nrg_files_share,
    .close = nrg_files_close,
};
