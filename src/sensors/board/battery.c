/*
 * See internal.h. A battery's power is the machine's only while it discharges: on mains it is what
 * goes into the cells, or nothing. So `status` is read each time, and while no battery discharges
 * (or one charges) the value is missing: a gap, never 0. Laptops with two batteries drain one
 * after the other or both: the channel is the sum of those that discharge now.
 *
 * power_now is in uW; where there is none, voltage_now (uV) times current_now (uA). Signs differ
 * between drivers, so only the magnitude counts. A discharging battery that says 0 has no value
 * yet.
 *
 * covers_cpu is set only when the battery discharges at probe time: on mains, a channel that stays
 * empty must not suppress the estimate.
 *
 * Refuses: batteries of mice, headsets and USB UPSes (scope Device), supplies of other types.
 */
#include "sensors/board/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define SUPPLY_DIR    "/sys/class/power_supply"
#define MAX_BATTERIES 8

enum status { IDLE, DISCHARGING, CHARGING };

struct battery {
    int status_fd, power_fd;    /* power_fd -1: from the two below */
    int voltage_fd, current_fd; /* -1 when there is power_now */
};

struct batteries {
    char names[64]; /* "BAT0+BAT1" */
    char mute[64];  /* one that has no power reading, "" */
    size_t n;
    struct battery items[MAX_BATTERIES];
};

static void close_battery(struct battery *b)
{
    const int fds[] = {b->status_fd, b->power_fd, b->voltage_fd, b->current_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

void nrg_battery_close(void *state)
{
    struct batteries *all = state;
    for (size_t i = 0; i < all->n; i++)
        close_battery(&all->items[i]);
    free(all);
}

static bool supply_says(const struct nrg_root *root, const char *supply, const char *file,
                        const char *word)
{
    char path[160], text[32];
    snprintf(path, sizeof path, SUPPLY_DIR "/%.60s/%s", supply, file);
    return !nrg_root_read_label(root, path, text, sizeof text) && !strcmp(text, word);
}

static int open_file(const struct nrg_root *root, const char *supply, const char *file)
{
    char path[160];
    snprintf(path, sizeof path, SUPPLY_DIR "/%.60s/%s", supply, file);
    int fd = nrg_root_open(root, path, O_RDONLY);
    return fd < 0 ? -1 : fd;
}

/* 0 when the supply is a battery of this machine that reports its power. */
static int open_battery(const struct nrg_root *root, const char *supply, struct battery *b)
{
    int64_t power_uw;
    if (!supply_says(root, supply, "type", "Battery") ||
        supply_says(root, supply, "scope", "Device") || supply_says(root, supply, "present", "0"))
        return -ENODEV;
    *b = (struct battery){.voltage_fd = -1, .current_fd = -1};
    b->status_fd = open_file(root, supply, "status");
    b->power_fd = open_file(root, supply, "power_now");
    /* Some drivers have the file but do not support it. ENODATA while idle is fine. */
    if (b->power_fd >= 0 && nrg_pread_i64(b->power_fd, &power_uw) == -ENOTSUP) {
        close(b->power_fd);
        b->power_fd = -1;
    }
    if (b->power_fd < 0) {
        b->voltage_fd = open_file(root, supply, "voltage_now");
        b->current_fd = open_file(root, supply, "current_now");
    }
    if (b->status_fd >= 0 && (b->power_fd >= 0 || (b->voltage_fd >= 0 && b->current_fd >= 0)))
        return 0;
    close_battery(b);
    return -ENOENT;
}

static int open_all(const struct nrg_root *root, struct batteries *all)
{
    struct nrg_names supplies;
    int rc = nrg_root_list(root, SUPPLY_DIR, &supplies);
    if (rc)
        return rc;
    for (size_t i = 0; i < supplies.n && all->n < MAX_BATTERIES; i++) {
        rc = open_battery(root, supplies.items[i], &all->items[all->n]);
        if (rc == -ENOENT)
            nrg_copy(all->mute, sizeof all->mute, supplies.items[i]);
        if (rc)
            continue;
        all->n++;
        size_t len = strlen(all->names);
        snprintf(all->names + len, sizeof all->names - len, "%s%.20s", len ? "+" : "",
                 supplies.items[i]);
    }
    nrg_names_release(&supplies);
    return 0;
}

static int read_status(const struct battery *b, enum status *status)
{
    char text[32];
    ssize_t len = nrg_pread_text(b->status_fd, text, sizeof text);
    if (len < 0)
        return (int)len;
    *status = !strncmp(text, "Discharging", 11) ? DISCHARGING
              : !strncmp(text, "Charging", 8)   ? CHARGING
                                                : IDLE;
    return 0;
}

static int read_power_uw(const struct battery *b, int64_t *power_uw)
{
    int64_t voltage_uv, current_ua, product;
    int rc;
    if (b->power_fd >= 0) {
        rc = nrg_pread_i64(b->power_fd, power_uw);
    } else {
        rc = nrg_pread_i64(b->voltage_fd, &voltage_uv);
        if (!rc)
            rc = nrg_pread_i64(b->current_fd, &current_ua);
        if (!rc && __builtin_mul_overflow(voltage_uv, current_ua, &product))
            rc = -ERANGE;
        if (!rc)
            *power_uw = product / 1000000;
    }
    if (!rc && *power_uw == INT64_MIN)
        rc = -ERANGE;
    if (!rc && *power_uw < 0)
        *power_uw = -*power_uw;
    return rc;
}

/* Sum over the batteries that discharge. A battery that was taken out does not count. */
static int read_sum(const struct batteries *all, int64_t *sum_uw)
{
    size_t gone = 0;
    int64_t sum = 0;
    bool charging = false;
    *sum_uw = NRG_MISSING;
    for (size_t i = 0; i < all->n; i++) {
        enum status status;
        int64_t power_uw = 0;
        int rc = read_status(&all->items[i], &status);
        if (!rc && status == DISCHARGING)
            rc = read_power_uw(&all->items[i], &power_uw);
        if (rc == -ENODEV)
            gone++;
        else if (rc)
            return rc;
        else if (__builtin_add_overflow(sum, power_uw, &sum))
            return -ERANGE;
        charging |= !rc && status == CHARGING;
    }
    if (gone == all->n)
        return -ENODEV;
    if (!charging && sum > 0)
        *sum_uw = sum;
    return 0;
}

int nrg_battery_read(void *state, struct nrg_sink *sink)
{
    int64_t raw;
    int64_t before = nrg_now_ns();
    int rc = read_sum(state, &raw);
    int64_t after = nrg_now_ns();
    nrg_sink_row(sink, 0, before + (after - before) / 2, after - before, &raw);
    nrg_sink_fault(sink, 0, rc);
    return rc == -ENODEV ? rc : 0;
}

int nrg_battery_open(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                     struct nrg_error *err)
{
    struct batteries *all = calloc(1, sizeof *all);
    if (!all)
        return nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    int rc = open_all(&ctx->root, all);
    if (!rc && !all->n)
        rc = -ENODEV;
    if (rc) {
        nrg_battery_close(all);
        return nrg_fail(err, rc, found->sensor, "no battery can be read: %s", strerror(-rc));
    }
    *state = all;
    return 0;
}

static int add_sensor(struct nrg_probe *probe, const struct batteries *all)
{
    char sensor[64];
    bool discharging = false;
    for (size_t i = 0; i < all->n; i++) {
        enum status status;
        discharging |= !read_status(&all->items[i], &status) && status == DISCHARGING;
    }
    snprintf(sensor, sizeof sensor, "battery %.50s", all->names);
    struct nrg_found *found = nrg_probe_found(probe, sensor);
    struct nrg_channel *channel =
        found ? nrg_found_channel(found, "battery", NRG_POWER, NRG_GAUGE) : NULL;
    if (!channel)
        return -ENOMEM;
    nrg_copy(found->locator, sizeof found->locator, NRG_BATTERY_LOCATOR);
    snprintf(channel->source, sizeof channel->source, SUPPLY_DIR "/%.50s", all->names);
    channel->scale = 1e-6;
    channel->wide = true;
    channel->covers_cpu = discharging;
    for (size_t i = 0; i < all->n; i++)
        if (all->items[i].power_fd < 0)
            channel->provenance = NRG_DERIVED; /* voltage times current */
    if (discharging)
        return 0;
    return nrg_probe_unavailable(probe, sensor,
                                 "unplug the mains: the machine's own power then "
                                 "comes from the battery and is measured",
                                 "it is not discharging now: until it does, its channel is a gap");
}

int nrg_battery_probe(struct nrg_probe *probe)
{
    struct batteries *all = calloc(1, sizeof *all);
    if (!all)
        return -ENOMEM;
    int rc = open_all(&probe->ctx->root, all);
    if (rc != -ENOMEM)
        rc = 0;
    if (!rc && all->n)
        rc = add_sensor(probe, all);
    if (!rc && all->mute[0])
        rc = nrg_probe_unavailable(probe, all->mute, NULL,
                                   "this battery tells neither power_now nor voltage_now and "
                                   "current_now");
    nrg_battery_close(all);
    return rc;
}
