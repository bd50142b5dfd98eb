/*
 * TI INA3221: three rails per chip, voltage and current each; the sensor of NVIDIA's Jetson boards
 * and of many others. Two kernel drivers show it:
 *   mainline   hwmon "ina3221": in1..3_input mV, curr1..3_input mA (signed), in1..3_label;
 *              no power file. in4..7 are shunt voltages in uV, not rails, whatever hwmon says.
 *   JetPack 4  ina3221x: iio:deviceN/in_{voltage,current,power}0..2_input, rail_name_0..2
 * Chips are found by name, once each: the directories of the bus and of the class show the same
 * chip, and its hwmon number (which changes between boots) shows that it is the same.
 *
 * Each rail gives power (mV * mA = uW exactly; JetPack 4 has a file for the product), voltage and
 * current, read together as one group. Reading goes over I2C and the kernel waits for a finished
 * conversion, so it may block.
 *
 * Lag: with samples = N the chip is a running filter, new = old + (sample - old) / N, fed once per
 * conversion of all channels. update_interval is N such conversions, so the filter's time constant
 * is about update_interval.
 *
 * What contains what: sensors/rails.h. Rails that are not known there, or stand beside another
 * sensor of the processors, may be counted by others, too: they are wide, shown and not added
 * (covers.h).
 *
 * Refuses: disabled and unconnected ("NC") channels; the "sum of shunt voltages".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sensors/board/internal.h"
#include "sensors/drivers.h"
#include "sensors/files.h"
#include "sensors/fixes.h"
#include "sensors/rails.h"

#define MAINLINE_DIR "/sys/bus/i2c/drivers/ina3221"
#define JETPACK_DIR  "/sys/bus/i2c/drivers/ina3221x"
#define HWMON_DIR    "/sys/class/hwmon"
#define RAILS        3

#define CHANNELS_PER_RAIL 3 /* power, voltage, current */

#define BUS_STEP_V   8e-3  /* of the chip's voltage register */
#define SHUNT_STEP_V 40e-6 /* of its shunt register: current = shunt voltage / shunt */

/* File names of the two layouts; the number is first + rail. */
static const struct layout {
    unsigned first;
    const char *voltage, *current, *power, *label, *enable;
} mainline = {1, "in%u_input", "curr%u_input", NULL, "in%u_label", "in%u_enable"},
  jetpack = {0,   "in_voltage%u_input", "in_current%u_input", "in_power%u_input", "rail_name_%u",
             NULL};

struct chip {
    char dir[128];
    char address[32];
    const struct layout *layout;
};

/* Formats come from the layouts above only. */
static void file_name(char *buf, size_t size, const char *format, unsigned number)
{
    const char *at = strstr(format, "%u");
    snprintf(buf, size, "%.*s%u%s", (int)(at - format), format, number, at + 2);
}

static int read_number(const struct nrg_root *root, const char *dir, const char *file, int64_t *out)
{
    char path[192];
    snprintf(path, sizeof path, "%.128s/%.60s", dir, file);
    return nrg_root_read_i64(root, path, out);
}

struct rail {
    unsigned number;
    char name[40];
    bool labelled, has_power;
    char voltage[24], current[24], power[24];
    const char *failed; /* which of them could not be read */
    int64_t voltage_mv;
    double current_step_a; /* 0: unknown */
};

/* Label, or "ina3221-1-0040.1". False for rails that are not connected. */
static bool name_rail(const struct nrg_root *root, const struct chip *chip, struct rail *rail)
{
    char path[192], file[32];
    int64_t enabled;
    file_name(file, sizeof file, chip->layout->label, rail->number);
    snprintf(path, sizeof path, "%s/%s", chip->dir, file);
    rail->labelled = !nrg_root_read_label(root, path, rail->name, sizeof rail->name);
    if (!rail->labelled)
        snprintf(rail->name, sizeof rail->name, "ina3221-%.20s.%u", chip->address, rail->number);
    if (!strcmp(rail->name, "NC") || strstr(rail->name, "sum of shunt"))
        return false;
    if (!chip->layout->enable)
        return true;
    file_name(file, sizeof file, chip->layout->enable, rail->number);
    return read_number(root, chip->dir, file, &enabled) || enabled != 0;
}

/* 0 when the rail can be read; -ENOENT: this chip has no such rail. */
static int check_rail(const struct nrg_root *root, const struct chip *chip, struct rail *rail)
{
    char file[32];
    int64_t value, shunt_uohm;
    file_name(rail->voltage, sizeof rail->voltage, chip->layout->voltage, rail->number);
    file_name(rail->current, sizeof rail->current, chip->layout->current, rail->number);
    rail->failed = rail->voltage;
    int rc = read_number(root, chip->dir, rail->voltage, &rail->voltage_mv);
    if (!rc) {
        rail->failed = rail->current;
        rc = read_number(root, chip->dir, rail->current, &value);
    }
    if (rc)
        return rc;
    if (chip->layout->power) {
        file_name(rail->power, sizeof rail->power, chip->layout->power, rail->number);
        rail->has_power = !read_number(root, chip->dir, rail->power, &value);
    }
    file_name(file, sizeof file, "shunt%u_resistor", rail->number);
    if (!read_number(root, chip->dir, file, &shunt_uohm) && shunt_uohm > 0)
        rail->current_step_a = SHUNT_STEP_V / ((double)shunt_uohm * 1e-6);
    return 0;
}

static struct nrg_channel *add_rail_channel(struct nrg_found *found, const struct chip *chip,
                                            const struct rail *rail, const char *kind,
                                            enum nrg_quantity quantity, double scale,
                                            const char *file)
{
    char name[48];
    snprintf(name, sizeof name, "%s%s", rail->name, kind);
    struct nrg_channel *channel = nrg_found_channel(found, name, quantity, NRG_GAUGE);
    if (!channel)
        return NULL;
    channel->group = (unsigned)(found->n_channels - 1) / CHANNELS_PER_RAIL;
    channel->scale = scale;
    snprintf(channel->source, sizeof channel->source, "%.78s/%s", chip->dir, file);
    return channel;
}

/* Power, voltage, current; all of one group. */
static int add_rail(struct nrg_found *found, const struct chip *chip, const struct rail *rail)
{
    char product[48]; /* mV * mA = uW */
    snprintf(product, sizeof product, "%s*%s", rail->voltage, rail->current);
    struct nrg_channel *channel =
        add_rail_channel(found, chip, rail, "", NRG_POWER, rail->has_power ? 1e-3 : 1e-6,
                         rail->has_power ? rail->power : product);
    if (!channel)
        return -ENOMEM;
    channel->covers_cpu = nrg_rail_is_input(rail->name) || strcasestr(rail->name, "CPU");
    channel->resolution = (double)rail->voltage_mv * 1e-3 * rail->current_step_a;
    channel->provenance = rail->has_power ? NRG_MEASURED : NRG_DERIVED;
    channel = add_rail_channel(found, chip, rail, ".voltage", NRG_VOLTAGE, 1e-3, rail->voltage);
    if (!channel)
        return -ENOMEM;
    channel->resolution = BUS_STEP_V;
    channel = add_rail_channel(found, chip, rail, ".current", NRG_CURRENT, 1e-3, rail->current);
    if (!channel)
        return -ENOMEM;
    channel->resolution = rail->current_step_a;
    return 0;
}

/* See the head of the file. */
static void set_timing(const struct nrg_root *root, const struct chip *chip,
                       struct nrg_found *found)
{
    int64_t samples, update_ns = nrg_hwmon_interval_ns(root, chip->dir, "update_interval");
    if (read_number(root, chip->dir, "samples", &samples))
        samples = 1;
    for (size_t c = 0; c < found->n_channels; c++) {
        found->channels[c].update_ns = update_ns;
        found->channels[c].lag_ns = samples > 1 ? update_ns : 0;
    }
}

static int probe_rail(struct nrg_probe *probe, struct nrg_found *found, const struct chip *chip,
                      unsigned number)
{
    struct rail rail = {.number = number};
    char files[192], fix[NRG_FIX_BYTES] = "";
    snprintf(files, sizeof files, "%s/*_input", chip->dir);
    if (!name_rail(&probe->ctx->root, chip, &rail))
        return 0;
    int rc = check_rail(&probe->ctx->root, chip, &rail);
    if (rc == -ENOENT)
        return 0;
    if (rc == -EACCES)
        nrg_fix_file(files, fix);
    if (rc)
        return nrg_probe_unavailable(probe, rail.name, fix, "%s/%s: %s", chip->dir, rail.failed,
                                     strerror(-rc));
    nrg_unique_name(probe, NRG_POWER, rail.name, sizeof rail.name);
    return add_rail(found, chip, &rail);
}

static int add_chip(struct nrg_probe *probe, const struct chip *chip)
{
    char sensor[64];
    snprintf(sensor, sizeof sensor, "ina3221 %s", chip->address);
    struct nrg_found *found = nrg_probe_found(probe, sensor);
    if (!found)
        return -ENOMEM;
    nrg_copy(found->locator, sizeof found->locator, chip->dir);
    int rc = 0;
    for (unsigned i = 0; !rc && i < RAILS; i++)
        rc = probe_rail(probe, found, chip, chip->layout->first + i);
    if (!found->n_channels)
        probe->n_found--;
    else
        set_timing(&probe->ctx->root, chip, found);
    return rc;
}

/* True when this hwmon directory was examined before; else adds it to those that were. */
static bool tried_before(struct nrg_names *tried, const char *hwmon)
{
    for (size_t i = 0; i < tried->n; i++)
        if (!strcmp(tried->items[i], hwmon))
            return true;
    if (!nrg_reserve(&tried->items, &tried->cap, tried->n + 1, sizeof *tried->items) &&
        (tried->items[tried->n] = strdup(hwmon)))
        tried->n++;
    return false;
}

/* Index of the first name with that prefix; names->n when there is none. */
static size_t find_prefix(const struct nrg_names *names, const char *prefix)
{
    size_t i = 0;
    while (i < names->n && strncmp(names->items[i], prefix, strlen(prefix)))
        i++;
    return i;
}

/* Chips below a bus driver: DIR/ADDRESS/hwmon/hwmonN or DIR/ADDRESS/iio:deviceN. */
static int probe_bus(struct nrg_probe *probe, const char *dir, const char *sub, const char *prefix,
                     const struct layout *layout, struct nrg_names *tried)
{
    const struct nrg_root *root = &probe->ctx->root;
    struct nrg_names addresses, devices;
    int rc = nrg_root_list(root, dir, &addresses);
    if (rc)
        return rc == -ENOMEM ? rc : 0;
    for (size_t i = 0; !rc && i < addresses.n; i++) {
        struct chip chip = {.layout = layout};
        char path[128];
        snprintf(path, sizeof path, "%s/%.30s%s", dir, addresses.items[i], sub);
        if (nrg_root_list(root, path, &devices))
            continue;
        size_t d = find_prefix(&devices, prefix);
        if (d < devices.n && !(tried && tried_before(tried, devices.items[d]))) {
            snprintf(chip.dir, sizeof chip.dir, "%.90s/%.30s", path, devices.items[d]);
            nrg_copy(chip.address, sizeof chip.address, addresses.items[i]);
            rc = add_chip(probe, &chip);
        }
        nrg_names_release(&devices);
    }
    nrg_names_release(&addresses);
    return rc;
}

/* The class directory, for trees that have no bus. The address is in the link's target. */
static int probe_class(struct nrg_probe *probe, struct nrg_names *tried)
{
    const struct nrg_root *root = &probe->ctx->root;
    struct nrg_names names;
    int rc = nrg_root_list(root, HWMON_DIR, &names);
    if (rc)
        return rc == -ENOMEM ? rc : 0;
    for (size_t i = 0; !rc && i < names.n; i++) {
        struct chip chip = {.layout = &mainline};
        char path[192], text[256];
        snprintf(chip.dir, sizeof chip.dir, HWMON_DIR "/%.30s", names.items[i]);
        snprintf(path, sizeof path, "%s/name", chip.dir);
        if (nrg_root_read_label(root, path, text, sizeof text) || strcmp(text, "ina3221") ||
            tried_before(tried, names.items[i]))
            continue;
        snprintf(path, sizeof path, "%s/device", chip.dir);
        const char *slash =
            nrg_root_readlink(root, path, text, sizeof text) > 0 ? strrchr(text, '/') : NULL;
        nrg_copy(chip.address, sizeof chip.address, slash ? slash + 1 : names.items[i]);
        rc = add_chip(probe, &chip);
    }
    nrg_names_release(&names);
    return rc;
}

static bool is_there(const char *name, const void *probe)
{
    return nrg_find_channel(probe, name, NRG_POWER) != NULL;
}

/* Rails that have no label are called after their chip: nothing is known about them. */
static const char *parent_of(const struct nrg_probe *probe, const char *name)
{
    return strncmp(name, "ina3221-", 8) ? nrg_rail_parent(name, is_there, probe) : "";
}

static void place_rail(const struct nrg_probe *probe, struct nrg_channel *c, bool cpu_covered)
{
    if (c->quantity != NRG_POWER)
        return;
    nrg_copy(c->parent, sizeof c->parent, parent_of(probe, c->name));
    c->wide = cpu_covered || !(c->parent[0] || c->covers_cpu || nrg_rail_is_disjoint(c->name));
}

static int probe_ina3221(struct nrg_probe *probe, struct nrg_error *err)
{
    struct nrg_names tried = {0};
    size_t first = probe->n_found;
    bool cpu_covered = nrg_cpu_is_covered(probe);
    int rc = probe_bus(probe, MAINLINE_DIR, "/hwmon", "hwmon", &mainline, &tried);
    if (!rc)
        rc = probe_class(probe, &tried);
    if (!rc)
        rc = probe_bus(probe, JETPACK_DIR, "", "iio", &jetpack, NULL);
    nrg_names_release(&tried);
    for (size_t f = first; f < probe->n_found; f++) {
        struct nrg_found *found = &probe->found[f];
        for (size_t c = 0; c < found->n_channels; c++)
            place_rail(probe, &found->channels[c], cpu_covered);
    }
    return rc;
}

const struct nrg_driver nrg_driver_ina3221 = {
    .name = "ina3221",
    .summary = "power, voltage and current of supply rails (Jetson boards and others)",
    .flags = NRG_MAY_BLOCK,
    .probe = probe_ina3221,
    .open = nrg_files_open,
    .read = nrg_files_read,
    .share = nrg_files_share,
    .close = nrg_files_close,
};
