/*
 * Any chip of /sys/class/hwmon with power (uW) or energy (uJ, a counter) files, and the battery
 * (battery.c). hwmon says what a number is, not what it covers. So a table here has what is known
 * about chips, and what is unknown is kept out of sums:
 *   GPU boards (amdgpu, nouveau, i915, xe) are gpu-N, numbered after those found before, except
 *     for those that AMD's library (amd/driver.c) counts: these keep their number. An AMD
 *     APU's figure is the whole socket with its CPU: apu-N, a part of package-0 where RAPL has it.
 *   acpi_power_meter is the machine, except on NVIDIA Grace (grace.c); amd_energy and fam15h_power
 * count sockets: package-N. PMBus supplies show input (pin) and output (pout1...): the input
 * contains the output, so outputs are dropped where there is an input. A label that says "total"
 * covers the machine and contains the chip's other channels; one that says "cpu" covers the
 * processors, unless something else does. Any other chip may measure watts that others count, too
 * (a supply's input, a regulator of the processor): it is marked wide, shown beside the total and
 * not added (see covers.h). A counter beats a gauge: a power file is dropped when an energy file
 * has the same label.
 *
 * A chip is named by its own label or its driver, with an index (in the order of devices, not of
 * hwmon numbers, which change) where there are several. Each chip is one sensor, read as files.h
 * says; it may sit on a slow bus, so the driver may block.
 *
 * Refuses: files that can't be read now (the reason is listed), a machine that draws 0 W.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sensors/board/internal.h"
#include "sensors/drivers.h"
#include "sensors/files.h"
#include "sensors/fixes.h"
#include "sensors/rapl/common.h"

enum role { PART, GPU, GPU_TILE, MACHINE, SOCKET_ENERGY, SOCKET_POWER };

static const struct {
    const char *name; /* a trailing '*' matches any rest */
    enum role role;
} known_chips[] = {
    {"amdgpu", GPU},
    {"nouveau", GPU},
    {"i915", GPU},
    {"xe", GPU},
    {"i915_gt*", GPU_TILE},
    {"power_meter", MACHINE},
    {"amd_energy", SOCKET_ENERGY},
    {"zenergy", SOCKET_ENERGY},
    {"fam15h_power", SOCKET_POWER},
};

/* Labels (lower case) of a figure that covers the whole machine. */
static const char *const total_labels[] = {"system", "total system power", "power total",
                                           "total",  "total power",        "vin",
                                           "dc in",  "system power",       NULL};

struct hwmon_probe {
    struct nrg_probe *probe;
    struct nrg_hwmon_chips chips;
    bool cpu_covered; /* by another driver, or by a known chip */
    unsigned next_gpu, next_apu;
    unsigned *gpu_of_chip; /* number of gpu-N, per chip */
};

static enum role role_of(const char *name)
{
    for (size_t i = 0; i < sizeof known_chips / sizeof *known_chips; i++) {
        size_t len = strlen(known_chips[i].name);
        bool open_end = known_chips[i].name[len - 1] == '*';
        if (open_end ? !strncmp(name, known_chips[i].name, len - 1)
                     : !strcmp(name, known_chips[i].name))
            return known_chips[i].role;
    }
    return PART;
}

static bool is_total(const char *label)
{
    for (size_t i = 0; total_labels[i]; i++)
        if (!strcasecmp(label, total_labels[i]))
            return true;
    return false;
}

/* "pin", "pin1", "pout2": PMBus. */
static bool pmbus_label(const char *label, const char *kind)
{
    size_t len = strlen(kind);
    return !strncmp(label, kind, len) && strspn(label + len, "0123456789") == strlen(label + len);
}

/* Marks files that repeat what another file of the chip counts; see the head of the file. */
static void drop_repeated(struct nrg_hwmon_chip *chip)
{
    for (size_t i = 0; i < chip->n; i++) {
        struct nrg_hwmon_attr *a = &chip->attrs[i];
        for (size_t k = 0; k < chip->n && !a->dropped; k++) {
            const struct nrg_hwmon_attr *b = &chip->attrs[k];
            bool twin = !a->energy && b->energy && !strcmp(a->label, b->label) &&
                        (a->label[0] || a->number == b->number);
            a->dropped = twin || (pmbus_label(a->label, "pout") && pmbus_label(b->label, "pin"));
        }
    }
}

static void remove_dropped(struct nrg_hwmon_chip *chip)
{
    size_t kept = 0;
    for (size_t i = 0; i < chip->n; i++)
        if (!chip->attrs[i].dropped)
            chip->attrs[kept++] = chip->attrs[i];
    chip->n = kept;
}

/* Drops files that can't be read now and says why. */
static int drop_unreadable(struct nrg_probe *probe, struct nrg_hwmon_chip *chip, enum role role)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < chip->n; i++) {
        struct nrg_hwmon_attr *attr = &chip->attrs[i];
        char path[160], what[128], fix[NRG_FIX_BYTES] = "";
        int64_t value;
        bool part_of_socket = role == SOCKET_ENERGY && strncmp(attr->label, "Esocket", 7) != 0;
        attr->dropped |= part_of_socket;
        if (attr->dropped)
            continue;
        snprintf(path, sizeof path, "%s/%s", chip->dir, attr->file);
        int fault = nrg_root_read_i64(&probe->ctx->root, path, &value);
        bool dead = !fault && role == MACHINE && value <= 0;
        if (!fault && !dead)
            continue;
        attr->dropped = true;
        snprintf(what, sizeof what, "%s %s", chip->name,
                 attr->label[0] ? attr->label : nrg_hwmon_device_name(chip));
        if (fault == -EACCES)
            nrg_fix_file(path, fix);
        rc = nrg_probe_unavailable(probe, what, fix, "%s: %s", path,
                                   dead ? "the firmware says 0 W" : strerror(-fault));
    }
    return rc;
}

static void chip_name(const struct nrg_hwmon_chip *chip, char *buf, size_t size)
{
    if (chip->label[0])
        nrg_copy(buf, size, chip->label);
    else if (chip->alone)
        nrg_copy(buf, size, chip->name);
    else
        snprintf(buf, size, "%.30s-%u", chip->name, chip->index);
}

static struct nrg_channel *add_hwmon_channel(struct nrg_found *found,
                                             const struct nrg_hwmon_chip *chip,
                                             const struct nrg_hwmon_attr *attr, const char *name)
{
    struct nrg_channel *channel = nrg_found_channel(
        found, name, attr->energy ? NRG_ENERGY : NRG_POWER, attr->energy ? NRG_COUNTER : NRG_GAUGE);
    if (!channel)
        return NULL;
    channel->scale = 1e-6;
    snprintf(channel->source, sizeof channel->source, "%.90s/%s", chip->dir, attr->file);
    return channel;
}

/* A chip whose meaning is only in its labels. */
static int add_part(struct hwmon_probe *h, struct nrg_found *found,
                    const struct nrg_hwmon_chip *chip)
{
    char base[48], name[48], total[48] = "";
    chip_name(chip, base, sizeof base);
    for (size_t i = 0; i < chip->n; i++) {
        const struct nrg_hwmon_attr *attr = &chip->attrs[i];
        if (attr->label[0])
            snprintf(name, sizeof name, "%.24s.%.20s", base, attr->label);
        else if (chip->n == 1)
            nrg_copy(name, sizeof name, base);
        else
            snprintf(name, sizeof name, "%.24s.%s%u", base, attr->energy ? "energy" : "power",
                     attr->number);
        nrg_unique_name(h->probe, attr->energy ? NRG_ENERGY : NRG_POWER, name, sizeof name);
        struct nrg_channel *channel = add_hwmon_channel(found, chip, attr, name);
        if (!channel)
            return -ENOMEM;
        bool whole = is_total(attr->label[0] ? attr->label : chip->label);
        bool cpu = strcasestr(attr->label, "cpu") != NULL;
        channel->wide = whole || !cpu || h->cpu_covered;
        channel->covers_cpu = whole || cpu;
        if (whole)
            nrg_copy(total, sizeof total, name);
    }
    for (size_t c = 0; c < found->n_channels; c++)
        if (strcmp(found->channels[c].name, total) != 0)
            nrg_copy(found->channels[c].parent, sizeof found->channels[c].parent, total);
    return 0;
}

/* The kernel hides vddnb except on APUs, whose power figure includes the CPU. */
static bool is_apu(const struct nrg_root *root, const struct nrg_hwmon_chip *chip)
{
    char path[160], label[16];
    if (strcmp(chip->name, "amdgpu") != 0)
        return false;
    snprintf(path, sizeof path, "%s/in1_label", chip->dir);
    return !nrg_root_read_label(root, path, label, sizeof label) && !strcmp(label, "vddnb");
}

/* The board is the first file, or the one labelled "card"; others are parts of it. */
static size_t board_attr(const struct nrg_hwmon_chip *chip)
{
    size_t board = 0;
    for (size_t i = 0; i < chip->n; i++)
        if (!strcmp(chip->attrs[i].label, "card"))
            board = i;
    return board;
}

/* A board that AMD's library counts has its number there: power and counter are of one GPU. */
static bool known_gpu(const struct nrg_probe *probe, const char *device, unsigned *gpu)
{
    for (size_t f = 0; f < probe->n_found; f++) {
        const struct nrg_found *found = &probe->found[f];
        if (!strcmp(found->driver->name, "amd-smi") && !strcmp(found->locator, device))
            return sscanf(found->channels[0].name, "gpu-%u", gpu) == 1;
    }
    return false;
}

static int add_gpu(struct hwmon_probe *h, struct nrg_found *found,
                   const struct nrg_hwmon_chip *chip, unsigned *gpu)
{
    bool apu = is_apu(&h->probe->ctx->root, chip);
    size_t board = board_attr(chip);
    char board_name[48], name[48];
    if (apu || !known_gpu(h->probe, nrg_hwmon_device_name(chip), gpu))
        *gpu = apu ? h->next_apu++ : h->next_gpu++;
    snprintf(board_name, sizeof board_name, "%s-%u", apu ? "apu" : "gpu", *gpu);
    for (size_t i = 0; i < chip->n; i++) {
        const struct nrg_hwmon_attr *attr = &chip->attrs[i];
        if (attr->label[0])
            snprintf(name, sizeof name, "%.20s.%.24s", board_name, attr->label);
        else
            snprintf(name, sizeof name, "%.20s.%u", board_name, attr->number);
        struct nrg_channel *channel =
            add_hwmon_channel(found, chip, attr, i == board ? board_name : name);
        if (!channel)
            return -ENOMEM;
        channel->covers_cpu = apu;
        if (i != board)
            nrg_copy(channel->parent, sizeof channel->parent, board_name);
        else if (apu && nrg_find_channel(h->probe, "package-0", NRG_ENERGY))
            nrg_copy(channel->parent, sizeof channel->parent, "package-0");
    }
    return 0;
}

/* i915_gtN: a tile of the board whose chip hangs on the same device. */
static int add_tile(struct hwmon_probe *h, struct nrg_found *found, size_t index)
{
    const struct nrg_hwmon_chip *chip = &h->chips.items[index];
    char name[48], parent[48] = "";
    for (size_t i = 0; i < h->chips.n; i++)
        if (!strcmp(h->chips.items[i].name, "i915") &&
            !strcmp(h->chips.items[i].device, chip->device))
            snprintf(parent, sizeof parent, "gpu-%u", h->gpu_of_chip[i]);
    if (parent[0] && !nrg_find_channel(h->probe, parent, NRG_ENERGY))
        parent[0] = '\0';
    if (!parent[0])
        return add_gpu(h, found, chip, &h->gpu_of_chip[index]);
    for (size_t i = 0; i < chip->n; i++) {
        snprintf(name, sizeof name, "%.20s.%.20s", parent, chip->name + strlen("i915_"));
        nrg_unique_name(h->probe, chip->attrs[i].energy ? NRG_ENERGY : NRG_POWER, name,
                        sizeof name);
        struct nrg_channel *channel = add_hwmon_channel(found, chip, &chip->attrs[i], name);
        if (!channel)
            return -ENOMEM;
        nrg_copy(channel->parent, sizeof channel->parent, parent);
    }
    return 0;
}

static int add_machine(struct hwmon_probe *h, struct nrg_found *found,
                       const struct nrg_hwmon_chip *chip)
{
    for (size_t i = 0; i < chip->n; i++) {
        const struct nrg_hwmon_attr *attr = &chip->attrs[i];
        char name[48] = "machine", file[48];
        nrg_unique_name(h->probe, NRG_POWER, name, sizeof name);
        struct nrg_channel *channel = add_hwmon_channel(found, chip, attr, name);
        if (!channel)
            return -ENOMEM;
        channel->wide = true;
        channel->covers_cpu = true;
        snprintf(file, sizeof file, "power%u_average_interval", attr->number);
        channel->lag_ns = nrg_hwmon_interval_ns(&h->probe->ctx->root, chip->dir, file);
    }
    return 0;
}

/* Sockets carry RAPL's names, so that the same domain read another way is used once. */
static int add_sockets(struct nrg_found *found, const struct nrg_hwmon_chip *chip, enum role role)
{
    for (size_t i = 0; i < chip->n; i++) {
        const struct nrg_hwmon_attr *attr = &chip->attrs[i];
        char suffix[16];
        if (role == SOCKET_ENERGY)
            snprintf(suffix, sizeof suffix, "%u", (unsigned)strtoul(attr->label + 7, NULL, 10));
        else
            snprintf(suffix, sizeof suffix, "%u", chip->index);
        struct nrg_channel *channel = nrg_rapl_channel(found, "package", suffix);
        if (!channel)
            return -ENOMEM;
        channel->parent[0] = '\0';
        channel->scale = 1e-6;
        if (!attr->energy) {
            channel->quantity = NRG_POWER;
            channel->kind = NRG_GAUGE;
            channel->update_ns = 0;
        }
        snprintf(channel->source, sizeof channel->source, "%.90s/%s", chip->dir, attr->file);
    }
    return 0;
}

static int add_chip(struct hwmon_probe *h, size_t index)
{
    struct nrg_hwmon_chip *chip = &h->chips.items[index];
    enum role role = role_of(chip->name);
    char sensor[64];
    drop_repeated(chip);
    int rc = drop_unreadable(h->probe, chip, role);
    remove_dropped(chip);
    if (rc || !chip->n)
        return rc;
    snprintf(sensor, sizeof sensor, "%.30s %.30s", chip->name, nrg_hwmon_device_name(chip));
    struct nrg_found *found = nrg_probe_found(h->probe, sensor);
    if (!found)
        return -ENOMEM;
    nrg_copy(found->locator, sizeof found->locator, chip->dir);
    if (role == GPU)
        rc = add_gpu(h, found, chip, &h->gpu_of_chip[index]);
    else if (role == GPU_TILE)
        rc = add_tile(h, found, index);
    else if (role == MACHINE)
        rc = add_machine(h, found, chip);
    else if (role == PART)
        rc = add_part(h, found, chip);
    else
        rc = add_sockets(found, chip, role);
    int64_t update_ns = nrg_hwmon_interval_ns(&h->probe->ctx->root, chip->dir, "update_interval");
    for (size_t c = 0; update_ns && c < found->n_channels; c++)
        found->channels[c].update_ns = update_ns;
    return rc;
}

static int probe_hwmon(struct nrg_probe *probe, struct nrg_error *err)
{
    struct hwmon_probe h = {
        .probe = probe, .cpu_covered = nrg_cpu_is_covered(probe), .next_gpu = nrg_next_gpu(probe)};
    int rc = nrg_hwmon_scan(&probe->ctx->root, &h.chips);
    if (!rc) {
        h.gpu_of_chip = calloc(h.chips.n + 1, sizeof *h.gpu_of_chip);
        rc = h.gpu_of_chip ? 0 : -ENOMEM;
    }
    if (!rc)
        rc = nrg_grace_probe(probe, &h.chips);
    for (size_t i = 0; !rc && i < h.chips.n; i++)
        if (role_of(h.chips.items[i].name) != PART && !nrg_grace_is_meter(&h.chips.items[i]))
            rc = add_chip(&h, i);
    h.cpu_covered = nrg_cpu_is_covered(probe);
    for (size_t i = 0; !rc && i < h.chips.n; i++)
        if (role_of(h.chips.items[i].name) == PART)
            rc = add_chip(&h, i);
    free(h.gpu_of_chip);
    nrg_hwmon_chips_release(&h.chips);
    return rc == -ENOMEM ? rc : nrg_battery_probe(probe);
}

/* How a sensor is read: by its locator. */
static const struct way {
    const char *locator; /* NULL: all others, a chip's folder */
    int (*open)(const struct nrg_context *, const struct nrg_found *, void **, struct nrg_error *);
    int (*read)(void *state, struct nrg_sink *sink);
    int (*share)(void *state, enum nrg_share *how, int fds[NRG_SHARE_MAX]);
    void (*close)(void *state);
} ways[] = {
    {NRG_BATTERY_LOCATOR, nrg_battery_open, nrg_battery_read, NULL, nrg_battery_close},
    {NRG_GRACE_LOCATOR, nrg_grace_open, nrg_grace_read, NULL, nrg_grace_close},
    {NULL, nrg_files_open, nrg_files_read, nrg_files_share, nrg_files_close},
};

struct hwmon {
    const struct way *way;
    void *state;
};

static int hwmon_open(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                      struct nrg_error *err)
{
    struct hwmon *h = calloc(1, sizeof *h);
    if (!h)
        return nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    h->way = ways;
    while (h->way->locator && strcmp(h->way->locator, found->locator) != 0)
        h->way++;
    int rc = h->way->open(ctx, found, &h->state, err);
    if (rc)
        free(h);
    else
        *state = h;
    return rc;
}

static int hwmon_read(void *state, struct nrg_sink *sink)
{
    struct hwmon *h = state;
    return h->way->read(h->state, sink);
}

static int hwmon_share(void *state, enum nrg_share *how, int fds[NRG_SHARE_MAX])
{
    struct hwmon *h = state;
    return h->way->share ? h->way->share(h->state, how, fds) : -ENOTSUP;
}

static void hwmon_close(void *state)
{
    struct hwmon *h = state;
    h->way->close(h->state);
    free(h);
}

const struct nrg_driver nrg_driver_hwmon = {
    .name = "hwmon",
    .summary = "power and energy of chips that the kernel shows through hwmon, and the battery",
    .flags = NRG_MAY_BLOCK,
    .probe = probe_hwmon,
    .open = hwmon_open,
    .read = hwmon_read,
    .share = hwmon_share,
    .close = hwmon_close,
};
