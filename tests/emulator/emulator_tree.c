/*
 * See emulator_tree.h. How a value is written whole: the kernel gives no promise that a pread of
 * a regular file is atomic against a pwrite (ext4 and tmpfs copy without a common lock), and a
 * rename would not reach readers that keep the file open, as nrg does. So energy_uj is 17 bytes
 * that are made once, 16 for the number with blanks in front and a newline, and are then changed
 * through a shared mapping, which is the very page that readers copy from. The number is one
 * aligned 16-byte store: x86-64 processors with AVX and arm64 with LSE2 make that indivisible.
 *
 * What is left: a reader's copy in two 8-byte halves may have a store between them, some ns in
 * each step. It only matters when the upper half changes, and digits are placed such that this is
 * once every 100 J. Tried on ext4 and tmpfs: none torn of 3 million preads each, against a writer
 * that changed both halves all the time. A file system without coherent shared mappings (some
 * network ones) does not work for the tree.
 */
#include "emulator/emulator_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEVICES      "sys/devices/virtual/powercap"
#define CLASS        "sys/class/powercap"
#define NUMBER_LEN   16
#define MAX_ENERGY_J 9e9 /* leaves a run 1e9 J of room in the digits */

typedef long long number_block __attribute__((vector_size(NUMBER_LEN)));

/* Makes the file's directories, then writes it. */
static int write_file(const char *path, const char *text, mode_t mode)
{
    char part[512];
    for (size_t i = 1; i < sizeof part && path[i]; i++) {
        if (path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0755) && errno != EEXIST)
            return -errno;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return -errno;
    size_t len = strlen(text);
    int rc = write(fd, text, len) == (ssize_t)len ? 0 : -EIO;
    close(fd);
    return rc;
}

static int map_file(struct emulator_zone *zone)
{
    int fd = open(zone->path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    void *mapped = mmap(NULL, NUMBER_LEN + 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int rc = mapped == MAP_FAILED ? -errno : 0;
    zone->shown = rc ? NULL : mapped;
    close(fd);
    return rc;
}

/* "intel-rapl:0:1" under its package, "intel-rapl:0" at the top, and the link that shows both. */
static int make_zone(struct emulator_zone *zone, const struct nrg_scenario_domain *d,
                     const char *dir, const char *id, const char *package_id, const char *name)
{
    char place[200], path[512], target[300], text[64];
    snprintf(place, sizeof place, DEVICES "/intel-rapl/%s%s%s", package_id, *package_id ? "/" : "",
             id);
    snprintf(path, sizeof path, "%.250s/%s/name", dir, place);
    snprintf(text, sizeof text, "%s\n", name);
    int rc = write_file(path, text, 0444);
    uint64_t wrap = nrg_sim_meter_wrap(d);
    double range_uj = wrap ? (double)wrap * d->quantum * 1e6 : 262143328850.0;
    snprintf(path, sizeof path, "%.250s/%s/max_energy_range_uj", dir, place);
    snprintf(text, sizeof text, "%.0f\n", range_uj);
    if (!rc)
        rc = write_file(path, text, 0444);
    snprintf(zone->path, sizeof zone->path, "%.250s/%s/energy_uj", dir, place);
    snprintf(text, sizeof text, "%*d\n", NUMBER_LEN, 0);
    if (!rc)
        rc = write_file(zone->path, text, 0644);
    snprintf(path, sizeof path, "%.250s/" CLASS "/%s", dir, id);
    snprintf(target, sizeof target, "../../../%s", place);
    if (!rc && symlink(target, path))
        rc = -errno;
    zone->uj_per_raw = d->quantum * 1e6;
    return rc ? rc : map_file(zone);
}

/* "dram-1" -> "dram" and "1"; false when it is not `kind-suffix`. */
static bool split_name(const char *name, char *kind, size_t size, const char **suffix)
{
    const char *dash = strchr(name, '-');
    if (!dash || !dash[1] || (size_t)(dash - name) >= size)
        return false;
    memcpy(kind, name, (size_t)(dash - name));
    kind[dash - name] = '\0';
    *suffix = dash + 1;
    return true;
}

static bool is_package(const struct nrg_scenario_domain *d)
{
    return !strncmp(d->name, "package-", 8);
}

/* Zones at the top are numbered in file order, packages before psys as the kernel has it. */
static int top_number(const struct nrg_scenario *scenario, const char *name)
{
    int number = 0;
    for (size_t i = 0; i < scenario->n_domains; i++) {
        if (!strcmp(scenario->domains[i].name, name))
            return is_package(&scenario->domains[i]) ? number : -1;
        number += is_package(&scenario->domains[i]);
    }
    return -1;
}

static int count_packages(const struct nrg_scenario *scenario)
{
    int n = 0;
    for (size_t i = 0; i < scenario->n_domains; i++)
        n += is_package(&scenario->domains[i]);
    return n;
}

static int sub_number(const struct nrg_scenario *scenario, size_t domain, const char *suffix)
{
    int number = 0;
    for (size_t i = 0; i < domain; i++) {
        char kind[16];
        const char *other;
        if (!is_package(&scenario->domains[i]) &&
            split_name(scenario->domains[i].name, kind, sizeof kind, &other) &&
            !strcmp(other, suffix))
            number++;
    }
    return number;
}

static int add_domain(struct emulator_tree *tree, const struct nrg_scenario *scenario, size_t i,
                      const char *dir, struct nrg_error *err)
{
    const struct nrg_scenario_domain *d = &scenario->domains[i];
    char kind[16], package[64], id[64], top[64] = "";
    const char *suffix, *name = d->name;
    if (d->gauge)
        return nrg_fail(err, -EINVAL, d->name, "RAPL has counters only");
    if (d->start_j > MAX_ENERGY_J || d->wrap_j > MAX_ENERGY_J)
        return nrg_fail(err, -ERANGE, d->name, "more than %d digits of uJ", NUMBER_LEN);
    if (!strcmp(d->name, "psys")) {
        snprintf(id, sizeof id, "intel-rapl:%x", count_packages(scenario));
    } else if (is_package(d)) {
        snprintf(id, sizeof id, "intel-rapl:%x", top_number(scenario, d->name));
    } else {
        if (!split_name(d->name, kind, sizeof kind, &suffix) ||
            (strcmp(kind, "core") && strcmp(kind, "uncore") && strcmp(kind, "dram")))
            return nrg_fail(err, -EINVAL, d->name,
                            "RAPL has package-N, core-N, uncore-N, dram-N and psys");
        snprintf(package, sizeof package, "package-%.40s", suffix);
        int number = top_number(scenario, package);
        if (number < 0)
            return nrg_fail(err, -EINVAL, d->name, "there is no %s in the scenario", package);
        snprintf(top, sizeof top, "intel-rapl:%x", number);
        snprintf(id, sizeof id, "intel-rapl:%x:%x", number, sub_number(scenario, i, suffix));
        name = kind;
    }
    int rc = make_zone(&tree->zones[i], d, dir, id, top, name);
    return rc ? nrg_fail(err, rc, tree->zones[i].path, "cannot make it: %s", strerror(-rc)) : 0;
}

/* The control type: in the class as its zones are, and with the way back, which CodeCarbon takes.
 */
static int link_control_type(const char *dir)
{
    char path[512];
    snprintf(path, sizeof path, "%.250s/" CLASS "/intel-rapl", dir);
    int rc = symlink("../../../" DEVICES "/intel-rapl", path);
    snprintf(path, sizeof path, "%.250s/" DEVICES "/intel-rapl/subsystem", dir);
    if (!rc)
        rc = symlink("../../../../class/powercap", path);
    return rc ? -errno : 0;
}

int emulator_tree_make(struct emulator_tree *tree, const struct nrg_scenario *scenario,
                       const char *dir, struct nrg_error *err)
{
    char path[512];
    if (strlen(dir) > 250)
        return nrg_fail(err, -ENAMETOOLONG, dir, "too long");
    tree->n = scenario->n_domains;
    snprintf(path, sizeof path, "%s/" DEVICES "/intel-rapl/enabled", dir);
    int rc = write_file(path, "1\n", 0444);
    snprintf(path, sizeof path, "%s/" CLASS "/.emulated", dir);
    if (!rc)
        rc = write_file(path, "", 0444);
    if (!rc)
        rc = link_control_type(dir);
    if (rc)
        return nrg_fail(err, rc, path, "cannot make the tree: %s", strerror(-rc));
    for (size_t i = 0; !rc && i < scenario->n_domains; i++)
        rc = add_domain(tree, scenario, i, dir, err);
    return rc;
}

void emulator_tree_show(struct emulator_tree *tree, size_t domain, int rc, int64_t raw)
{
    struct emulator_zone *zone = &tree->zones[domain];
    char text[NUMBER_LEN + 8];
    if (zone->gone)
        return;
    if (rc == -ENODEV) {
        unlink(zone->path);
        zone->gone = true;
    }
    if (rc)
        snprintf(text, sizeof text, "%*s", NUMBER_LEN, "fault");
    else
        snprintf(text, sizeof text, "%*.0f", NUMBER_LEN,
                 floor((double)raw * zone->uj_per_raw + 1e-3));
    number_block block;
    memcpy(&block, text, sizeof block);
    *(volatile number_block *)(void *)zone->shown = block;
}

void emulator_tree_release(struct emulator_tree *tree)
{
    for (size_t i = 0; i < tree->n; i++)
        if (tree->zones[i].shown)
            munmap(tree->zones[i].shown, NUMBER_LEN + 1);
}
