/*
 * ADCs of the kernel's industrial I/O: what their buffer holds, from sysfs below a root, written
 * as keys of a URI. So the decoder knows nothing of sysfs, and users can give the same keys by
 * hand. nrg changes nothing: the user chooses channels and sampling rate, and when nothing is set
 * up the message says how to do it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "sensors/waveform/internal.h"

#define DEVICE_DIR "/dev/"
#define SYSFS_DIR  "/sys/bus/iio/devices/"

struct element {
    int64_t index;
    char name[NRG_WAVE_NAME], type[32];
};

struct scan {
    const struct nrg_root *root;
    char dir[128]; /* of the device in sysfs */
    struct element elements[NRG_FRAME_CHANNELS];
    unsigned n;
};

static int read_number(const struct scan *scan, const char *name, int64_t *out)
{
    char path[320];
    snprintf(path, sizeof path, "%s/%s", scan->dir, name);
    return nrg_root_read_i64(scan->root, path, out);
}

static int by_index(const void *a, const void *b)
{
    int64_t x = ((const struct element *)a)->index, y = ((const struct element *)b)->index;
    return (x > y) - (x < y);
}

/* `stem`: in_voltage0, from in_voltage0_en. */
static int add_element(struct scan *scan, const char *stem, struct nrg_error *err)
{
    char name[128], path[256];
    struct nrg_sample_type type;
    if (scan->n == NRG_FRAME_CHANNELS)
        return nrg_fail(err, -E2BIG, scan->dir, "more than %d channels are on", NRG_FRAME_CHANNELS);
    struct element *e = &scan->elements[scan->n];
    snprintf(name, sizeof name, "scan_elements/%.64s_index", stem);
    int rc = read_number(scan, name, &e->index);
    snprintf(path, sizeof path, "%s/scan_elements/%.64s_type", scan->dir, stem);
    if (!rc)
        rc = nrg_root_read_label(scan->root, path, e->type, sizeof e->type);
    if (rc)
        return nrg_fail(err, rc, path, "cannot be read: %s", strerror(-rc));
    if (nrg_sample_type_parse(e->type, strlen(e->type), &type))
        return nrg_fail(err, -EINVAL, path, "'%s' is not a type of samples", e->type);
    nrg_copy(e->name, sizeof e->name, strncmp(stem, "in_", 3) ? stem : stem + 3);
    scan->n++;
    return 0;
}

static int scan_elements(struct scan *scan, struct nrg_error *err)
{
    char path[192];
    struct nrg_names names;
    snprintf(path, sizeof path, "%s/scan_elements", scan->dir);
    int rc = nrg_root_list(scan->root, path, &names);
    if (rc)
        return nrg_fail(err, rc, path, "no buffer of samples: %s", strerror(-rc));
    for (size_t i = 0; !rc && i < names.n; i++) {
        char *name = names.items[i], file[160];
        size_t len = strlen(name);
        int64_t on = 0;
        if (len < 4 || len > 64 || !nrg_ends_with(name, "_en"))
            continue;
        snprintf(file, sizeof file, "scan_elements/%s", name);
        if (read_number(scan, file, &on) || !on)
            continue;
        name[len - 3] = '\0';
        rc = add_element(scan, name, err);
    }
    nrg_names_release(&names);
    qsort(scan->elements, scan->n, sizeof *scan->elements, by_index);
    return rc;
}

/* The device's own rate, that of all its voltages, or that of its trigger. */
static bool find_rate(const struct scan *scan, double *rate_hz)
{
    static const char *const files[] = {"sampling_frequency", "in_voltage_sampling_frequency",
                                        "buffer/sampling_frequency"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[256], text[64];
        snprintf(path, sizeof path, "%s/%s", scan->dir, files[i]);
        ssize_t len = nrg_root_read(scan->root, path, text, sizeof text);
        if (len > 0 && !nrg_parse_double(text, (size_t)len, rate_hz) && *rate_hz > 0)
            return true;
    }
    return false;
}

static int check_on(const struct scan *scan, struct nrg_error *err)
{
    int64_t on = 0;
    if (!scan->n)
        return nrg_fail(err, -ENODATA, scan->dir,
                        "no channel is on: echo 1 | sudo tee %s/scan_elements/in_voltage{0,1}_en, "
                        "then echo 1 | sudo tee %s/buffer/enable",
                        scan->dir, scan->dir);
    if (!read_number(scan, "buffer/enable", &on) && !on)
        return nrg_fail(err, -ENODATA, scan->dir,
                        "its buffer is off: echo 1 | sudo tee %s/buffer/enable", scan->dir);
    return 0;
}

static int write_keys(const struct scan *scan, struct nrg_uri *uri, char *keys, size_t size,
                      struct nrg_error *err)
{
    struct nrg_str text = {0};
    double rate_hz;
    int rc = 0;
    bool format = !nrg_uri_text(uri, "format"), names = !nrg_uri_text(uri, "names");
    for (unsigned i = 0; !rc && format && i < scan->n; i++)
        rc = nrg_str_addf(&text, "%s%s", i ? "," : "format=", scan->elements[i].type);
    for (unsigned i = 0; !rc && names && i < scan->n; i++)
        rc = nrg_str_addf(&text, "%s%s", i ? "," : "&names=", scan->elements[i].name);
    if (!rc && !nrg_uri_text(uri, "rate") && find_rate(scan, &rate_hz))
        rc = nrg_str_addf(&text, "&rate=%.10g", rate_hz);
    if (!rc && text.len >= size)
        rc = -E2BIG;
    nrg_copy(keys, size, text.text ? text.text : "");
    nrg_str_release(&text);
    return rc ? nrg_fail(err, rc, scan->dir, "too many channels are on") : 0;
}

int nrg_wave_iio_keys(const struct nrg_root *root, struct nrg_uri *uri, char *keys, size_t size,
                      struct nrg_error *err)
{
    static const char prefix[] = DEVICE_DIR "iio:device";
    if (strncmp(uri->place, prefix, sizeof prefix - 1))
        return 1;
    struct scan *scan = calloc(1, sizeof *scan);
    if (!scan)
        return nrg_fail(err, -ENOMEM, uri->text, "out of memory");
    scan->root = root;
    int n = snprintf(scan->dir, sizeof scan->dir, SYSFS_DIR "%s", uri->place + strlen(DEVICE_DIR));
    if (n >= (int)sizeof scan->dir) {
        free(scan);
        return nrg_fail(err, -ENAMETOOLONG, uri->text, "%s", strerror(ENAMETOOLONG));
    }
    int rc = scan_elements(scan, err);
    rc = rc ? rc : check_on(scan, err);
    rc = rc ? rc : write_keys(scan, uri, keys, size, err);
    free(scan);
    return rc;
}
