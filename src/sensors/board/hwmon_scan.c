/*
 * See internal.h. Old drivers (acpi_power_meter still) register their files on the parent
 * device: then hwmonN has neither name nor power files and hwmonN/device has both.
 */
#include "sensors/board/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"

#define HWMON_DIR "/sys/class/hwmon"

/* "power12_average" with kind "power" -> 12, and what follows the number. */
static const char *after_number(const char *file, const char *kind, unsigned *number)
{
    size_t len = strlen(kind), digits = 0;
    uint64_t value;
    if (strncmp(file, kind, len))
        return NULL;
    digits = strspn(file + len, "0123456789");
    if (nrg_parse_u64(file + len, digits, &value) || value > 9999)
        return NULL;
    *number = (unsigned)value;
    return file + len + digits;
}

/* Is this a file that we read? An average integrates better than an instant, so it is preferred. */
static bool wanted_file(const char *file, bool *energy, unsigned *number, bool *average)
{
    const char *rest = after_number(file, "energy", number);
    *energy = rest && !strcmp(rest, "_input");
    *average = false;
    if (*energy)
        return true;
    rest = after_number(file, "power", number);
    *average = rest && !strcmp(rest, "_average");
    return rest && (*average || !strcmp(rest, "_input"));
}

static struct nrg_hwmon_attr *find_attr(struct nrg_hwmon_chip *chip, bool energy, unsigned number)
{
    for (size_t i = 0; i < chip->n; i++)
        if (chip->attrs[i].energy == energy && chip->attrs[i].number == number)
            return &chip->attrs[i];
    return NULL;
}

static int scan_attrs(const struct nrg_root *root, struct nrg_hwmon_chip *chip)
{
    struct nrg_names names;
    int rc = nrg_root_list(root, chip->dir, &names);
    if (rc)
        return rc == -ENOMEM ? rc : 0;
    for (size_t i = 0; !rc && i < names.n; i++) {
        char path[160];
        bool energy, average;
        unsigned number;
        if (strlen(names.items[i]) >= sizeof chip->attrs->file ||
            !wanted_file(names.items[i], &energy, &number, &average))
            continue;
        struct nrg_hwmon_attr *attr = find_attr(chip, energy, number);
        if (attr && !average)
            continue;
        if (!attr) {
            rc = nrg_reserve(&chip->attrs, &chip->cap, chip->n + 1, sizeof *chip->attrs);
            if (rc)
                break;
            attr = &chip->attrs[chip->n++];
        }
        *attr = (struct nrg_hwmon_attr){.energy = energy, .number = number};
        nrg_copy(attr->file, sizeof attr->file, names.items[i]);
        snprintf(path, sizeof path, "%s/%s%u_label", chip->dir, energy ? "energy" : "power",
                 number);
        if (nrg_root_read_label(root, path, attr->label, sizeof attr->label) && !energy) {
            snprintf(path, sizeof path, "%s/power%u_oem_info", chip->dir, number);
            nrg_root_read_label(root, path, attr->label, sizeof attr->label);
        }
    }
    nrg_names_release(&names);
    return rc;
}

/* The kernel shows each battery and charger as a hwmon chip too. */
static bool is_power_supply(const struct nrg_root *root, const struct nrg_hwmon_chip *chip)
{
    char path[192], text[160];
    snprintf(path, sizeof path, HWMON_DIR "/%s/device/subsystem", chip->hwmon);
    if (nrg_root_readlink(root, path, text, sizeof text) > 0) {
        const char *slash = strrchr(text, '/');
        if (slash && !strcmp(slash + 1, "power_supply"))
            return true;
    }
    snprintf(path, sizeof path, "/sys/class/power_supply/%s", chip->name);
    return strchr(chip->name, '/') == NULL && nrg_root_exists(root, path);
}

/* Fills one chip; chip->n stays 0 when it has nothing for us. */
static int scan_chip(const struct nrg_root *root, const char *hwmon, struct nrg_hwmon_chip *chip)
{
    char path[160];
    *chip = (struct nrg_hwmon_chip){0};
    nrg_copy(chip->hwmon, sizeof chip->hwmon, hwmon);
    snprintf(chip->dir, sizeof chip->dir, HWMON_DIR "/%s", chip->hwmon);
    int rc = scan_attrs(root, chip);
    if (!rc && !chip->n) {
        snprintf(chip->dir, sizeof chip->dir, HWMON_DIR "/%s/device", chip->hwmon);
        rc = scan_attrs(root, chip);
    }
    if (rc || !chip->n)
        return rc;
    snprintf(path, sizeof path, "%s/name", chip->dir);
    if (nrg_root_read_label(root, path, chip->name, sizeof chip->name))
        nrg_copy(chip->name, sizeof chip->name, "hwmon");
    snprintf(path, sizeof path, "%s/label", chip->dir);
    nrg_root_read_label(root, path, chip->label, sizeof chip->label);
    snprintf(path, sizeof path, HWMON_DIR "/%s/device", chip->hwmon);
    if (nrg_root_readlink(root, path, chip->device, sizeof chip->device) < 0)
        chip->device[0] = '\0';
    if (!strcmp(chip->name, "ina3221") || is_power_supply(root, chip))
        chip->n = 0;
    return 0;
}

/* hwmon numbers are dealt out anew at each boot; devices stay where they are. */
static int by_name_and_device(const void *a, const void *b)
{
    const struct nrg_hwmon_chip *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    if (!order)
        order = strcmp(x->device, y->device);
    return order ? order : strverscmp(x->hwmon, y->hwmon);
}

static void number_chips(struct nrg_hwmon_chips *chips)
{
    if (chips->n)
        qsort(chips->items, chips->n, sizeof *chips->items, by_name_and_device);
    for (size_t i = 0; i < chips->n; i++) {
        struct nrg_hwmon_chip *chip = &chips->items[i];
        bool same_before = i && !strcmp(chips->items[i - 1].name, chip->name);
        bool same_after = i + 1 < chips->n && !strcmp(chips->items[i + 1].name, chip->name);
        chip->index = same_before ? chips->items[i - 1].index + 1 : 0;
        chip->alone = !same_before && !same_after;
    }
}

int nrg_hwmon_scan(const struct nrg_root *root, struct nrg_hwmon_chips *out)
{
    struct nrg_names names;
    *out = (struct nrg_hwmon_chips){0};
    int rc = nrg_root_list(root, HWMON_DIR, &names);
    if (rc)
        return rc;
    for (size_t i = 0; !rc && i < names.n; i++) {
        struct nrg_hwmon_chip chip;
        if (strlen(names.items[i]) >= sizeof chip.hwmon)
            continue;
        rc = scan_chip(root, names.items[i], &chip);
        if (!rc && chip.n)
            rc = nrg_reserve(&out->items, &out->cap, out->n + 1, sizeof *out->items);
        if (!rc && chip.n)
            out->items[out->n++] = chip;
        else
            free(chip.attrs);
    }
    nrg_names_release(&names);
    if (rc)
        nrg_hwmon_chips_release(out);
    else
        number_chips(out);
    return rc;
}

void nrg_hwmon_chips_release(struct nrg_hwmon_chips *chips)
{
    for (size_t i = 0; i < chips->n; i++)
        free(chips->items[i].attrs);
    free(chips->items);
    *chips = (struct nrg_hwmon_chips){0};
}

const char *nrg_hwmon_device_name(const struct nrg_hwmon_chip *chip)
{
    const char *slash = strrchr(chip->device, '/');
    return slash && slash[1] ? slash + 1 : chip->device[0] ? chip->device : chip->hwmon;
}

int64_t nrg_hwmon_interval_ns(const struct nrg_root *root, const char *dir, const char *name)
{
    char path[192];
    int64_t ms;
    snprintf(path, sizeof path, "%.128s/%.60s", dir, name);
    return !nrg_root_read_i64(root, path, &ms) && ms > 0 && ms <= 3600000 ? ms * NRG_NS_PER_MS : 0;
}
