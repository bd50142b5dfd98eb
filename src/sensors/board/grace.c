/*
 * See internal.h. NVIDIA Grace superchips have up to four ACPI power meters per socket, told apart
 * by powerN_oem_info alone, "WORD Power Socket N" (as NVIDIA's firmware and tuning guide have
 * them):
 *
 *   module-N   Module: the whole module, with regulators, GPU and HBM. It contains what nobody
 *              else sees: wide. Grace without a GPU has none.
 *   grace-N    Grace: the processor's socket with its memory
 *   cpu-N      CPU: rail of the cores, in grace-N
 *   sysio-N    SysIO: rail of the rest of the chip, in grace-N
 * What the memory takes is grace minus cpu and sysio, and is not a channel. All meters are one
 * sensor, so that the modules of a machine are the lines of one meter (total.h). With one module
 * its GPUs are known to be in it.
 *
 * The firmware keeps a socket's values for 50 ms. NVIDIA's published tables then renew the one that
 * is asked for alone: of meters that are read in a burst only the first would ever change. So the
 * meters of a burst take turns at being first, and bursts are 50 ms apart or more.
 *
 * Refuses: meters that say 0 W, and a power that no module draws: it is the firmware's word for "no
 * value" (2^32 - 1 mW), which older kernels pass on.
 */
#include "sensors/board/internal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "sensors/files.h"
#include "sensors/fixes.h"

#define MIDDLE      " Power Socket "
#define BURST_NS    (50 * NRG_NS_PER_MS)
#define MOST_UW     INT64_C(100000000000) /* 100 kW */
#define MOST_METERS 64
#define MOST_SOCKET 15

struct label {
    char word[16]; /* in lower case */
    unsigned socket;
};

static bool parse_label(const char *text, struct label *label)
{
    const char *middle = strcasestr(text, MIDDLE);
    size_t len = middle ? (size_t)(middle - text) : 0;
    uint64_t socket;
    if (!len || len >= sizeof label->word)
        return false;
    const char *number = middle + strlen(MIDDLE);
    if (nrg_parse_u64(number, strlen(number), &socket) || socket > MOST_SOCKET)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!isalnum((unsigned char)text[i]))
            return false;
        label->word[i] = (char)tolower((unsigned char)text[i]);
    }
    label->word[len] = '\0';
    label->socket = (unsigned)socket;
    return true;
}

bool nrg_grace_is_meter(const struct nrg_hwmon_chip *chip)
{
    struct label label;
    return !strcmp(chip->name, "power_meter") && chip->n &&
           parse_label(chip->attrs[0].label, &label);
}

static int check_power(int64_t power_uw)
{
    return power_uw <= 0 ? -ENODATA : power_uw > MOST_UW ? -ERANGE : 0;
}

static int add_meter(struct nrg_probe *probe, size_t sensor, const struct nrg_hwmon_chip *chip,
                     const struct nrg_hwmon_attr *attr)
{
    struct label label;
    char path[160], name[48], file[48], fix[NRG_FIX_BYTES] = "";
    int64_t power_uw;
    struct nrg_found *found = &probe->found[sensor];
    if (!parse_label(attr->label, &label) || found->n_channels == MOST_METERS)
        return 0;
    snprintf(path, sizeof path, "%s/%s", chip->dir, attr->file);
    int rc = nrg_root_read_i64(&probe->ctx->root, path, &power_uw);
    if (rc == -EACCES)
        nrg_fix_file(path, fix);
    if (rc || check_power(power_uw))
        return nrg_probe_unavailable(probe, attr->label, fix, "%s: %s", path,
                                     rc             ? strerror(-rc)
                                     : power_uw > 0 ? "the firmware has no value"
                                                    : "the firmware says 0 W");
    snprintf(name, sizeof name, "%s-%u", label.word, label.socket);
    struct nrg_channel *channel = nrg_found_channel(found, name, NRG_POWER, NRG_GAUGE);
    if (!channel)
        return -ENOMEM;
    nrg_copy(channel->source, sizeof channel->source, path);
    snprintf(file, sizeof file, "power%u_average_interval", attr->number);
    channel->lag_ns = nrg_hwmon_interval_ns(&probe->ctx->root, chip->dir, file);
    channel->group = (unsigned)found->n_channels - 1;
    channel->scale = 1e-6;
    channel->resolution = 1e-3;
    channel->update_ns = BURST_NS;
    return 0;
}

static bool has_channel(const struct nrg_found *found, const char *name)
{
    for (size_t c = 0; c < found->n_channels; c++)
        if (!strcmp(found->channels[c].name, name))
            return true;
    return false;
}

static bool is_word(const struct nrg_channel *channel, const char *word)
{
    size_t len = strlen(word);
    return !strncmp(channel->name, word, len) && channel->name[len] == '-';
}

/* The narrowest channel of the socket that contains this one. */
static void set_parent(const struct nrg_found *found, struct nrg_channel *channel)
{
    static const char *const wholes[] = {"grace", "module"};
    const char *dash = strrchr(channel->name, '-');
    size_t first = is_word(channel, "grace") ? 1 : 0;
    for (size_t i = first; dash && i < 2 && !is_word(channel, "module"); i++) {
        snprintf(channel->parent, sizeof channel->parent, "%s%.8s", wholes[i], dash);
        if (has_channel(found, channel->parent))
            return;
    }
    channel->parent[0] = '\0';
}

/* A word that is not known may be in any other: beside the total. */
static void describe(struct nrg_found *found, bool cpu_covered)
{
    for (size_t c = 0; c < found->n_channels; c++) {
        struct nrg_channel *channel = &found->channels[c];
        bool cpu = is_word(channel, "cpu"), grace = is_word(channel, "grace");
        bool part = cpu || grace || is_word(channel, "sysio");
        channel->covers_cpu = cpu || grace || is_word(channel, "module");
        channel->wide = !part || cpu_covered;
        set_parent(found, channel);
    }
}

/* Parts of a GPU are not in the way: they have a parent already. */
static void place_gpus(struct nrg_probe *probe, const char *module)
{
    for (size_t f = 0; f < probe->n_found; f++)
        for (size_t c = 0; c < probe->found[f].n_channels; c++) {
            struct nrg_channel *channel = &probe->found[f].channels[c];
            bool watts = channel->quantity == NRG_ENERGY || channel->quantity == NRG_POWER;
            if (watts && is_word(channel, "gpu") && !channel->parent[0])
                nrg_copy(channel->parent, sizeof channel->parent, module);
        }
}

static void place_in_one_module(struct nrg_probe *probe, const struct nrg_found *found)
{
    const char *module = NULL;
    for (size_t c = 0; c < found->n_channels; c++) {
        if (!is_word(&found->channels[c], "module"))
            continue;
        if (module)
            return; /* which GPU is in which is not known */
        module = found->channels[c].name;
    }
    if (module)
        place_gpus(probe, module);
}

int nrg_grace_probe(struct nrg_probe *probe, const struct nrg_hwmon_chips *chips)
{
    bool any = false, cpu_covered = nrg_cpu_is_covered(probe);
    for (size_t i = 0; i < chips->n; i++)
        any |= nrg_grace_is_meter(&chips->items[i]);
    if (!any)
        return 0;
    size_t sensor = probe->n_found;
    struct nrg_found *found = nrg_probe_found(probe, "NVIDIA Grace");
    int rc = found ? 0 : -ENOMEM;
    if (found)
        nrg_copy(found->locator, sizeof found->locator, NRG_GRACE_LOCATOR);
    for (size_t i = 0; !rc && i < chips->n; i++) {
        const struct nrg_hwmon_chip *chip = &chips->items[i];
        for (size_t k = 0; !rc && nrg_grace_is_meter(chip) && k < chip->n; k++)
            rc = add_meter(probe, sensor, chip, &chip->attrs[k]);
    }
    if (rc)
        return rc;
    describe(&probe->found[sensor], cpu_covered);
    place_in_one_module(probe, &probe->found[sensor]);
    if (!probe->found[sensor].n_channels)
        probe->n_found--; /* it owns nothing yet */
    return 0;
}

/* --- reading --- */

struct grace {
    size_t n, first; /* first: whose turn it is */
    int64_t next_ns;
    int fds[MOST_METERS]; /* -1: not wanted */
};

void nrg_grace_close(void *state)
{
    struct grace *g = state;
    for (size_t i = 0; i < g->n; i++)
        if (g->fds[i] >= 0)
            close(g->fds[i]);
    free(g);
}

int nrg_grace_open(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                   struct nrg_error *err)
{
    struct grace *g = nrg_calloc(1, sizeof *g);
    if (!g)
        return nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    for (size_t c = 0; c < found->n_channels && c < MOST_METERS; c++) {
        const char *path = found->channels[c].source;
        int fd = found->wanted[c] ? nrg_root_open(&ctx->root, path, O_RDONLY) : -1;
        g->fds[g->n++] = fd < 0 ? -1 : fd;
        if (found->wanted[c] && fd < 0) {
            nrg_grace_close(g);
            return nrg_fail(err, fd, path, "cannot open: %s", strerror(-fd));
        }
    }
    *state = g;
    return 0;
}

int nrg_grace_read(void *state, struct nrg_sink *sink)
{
    struct grace *g = state;
    size_t asked = 0, gone = 0;
    int64_t now = nrg_now_ns();
    if (now < g->next_ns)
        return 0;
    g->next_ns = now + BURST_NS;
    for (size_t k = 0; k < g->n; k++) {
        size_t i = (g->first + k) % g->n;
        int64_t raw = NRG_MISSING, before = nrg_now_ns();
        if (g->fds[i] < 0)
            continue;
        int rc = nrg_pread_i64(g->fds[i], &raw);
        int64_t after = nrg_now_ns();
        if (!rc)
            rc = check_power(raw);
        if (rc)
            raw = NRG_MISSING;
        asked++;
        gone += rc == -ENODEV;
        nrg_sink_row(sink, (unsigned)i, before + (after - before) / 2, after - before, &raw);
        nrg_sink_fault(sink, (unsigned)i, rc);
    }
    g->first = g->n ? (g->first + 1) % g->n : 0;
    return asked && gone == asked ? -ENODEV : 0;
}
