/*
 * See bundle.h. The format is ustar, written here: a header of 512 bytes per file and two empty
 * blocks at the end, which every tar reads; a library for that would be larger than nrg doctor.
 */
#include "cli/doctor/bundle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "cli/doctor/redact.h"

#define BLOCK     512
#define MAX_BYTES 16384 /* of one file */

static const char *const files[] = {
    "/etc/os-release",
    "/etc/debian_version",
    "/proc/version",
    "/proc/cpuinfo",
    "/proc/self/status",
    "/proc/self/cgroup",
    "/proc/sys/kernel/perf_event_paranoid",
    "/proc/sys/kernel/yama/ptrace_scope",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/cpufreq/policy0/scaling_driver",
    "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/dmi/id/product_name",
    "/sys/bus/event_source/devices/power/type",
    "/sys/bus/event_source/devices/power/cpumask",
};

/* Folders whose entries are listed, two levels deep, with modes and sizes: what is there at all. */
static const char *const folders[] = {
    "/sys/class/powercap",           "/sys/class/hwmon", "/sys/class/power_supply",
    "/sys/bus/event_source/devices", "/dev/cpu",         "/run/nrg"};

struct bundle {
    const struct nrg_root *root;
    struct nrg_identity identity;
    FILE *out;
};

static int put_member(FILE *out, const char *name, const char *text, size_t len)
{
    char head[BLOCK] = {0};
    unsigned sum = 0;
    snprintf(head, 100, "nrg-doctor/%.88s", *name == '/' ? name + 1 : name);
    memcpy(head + 100,
           "0000600\0"
           "0000000\0"
           "0000000\0",
           24);
    snprintf(head + 124, 12, "%011o", (unsigned)len);
    memcpy(head + 136, "00000000000\0", 12);
    memset(head + 148, ' ', 8);
    head[156] = '0';
    memcpy(head + 257,
           "ustar\0"
           "00",
           8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)head[i];
    snprintf(head + 148, 8, "%06o", sum);
    static const char zeros[BLOCK];
    fwrite(head, 1, BLOCK, out);
    fwrite(text, 1, len, out);
    fwrite(zeros, 1, (BLOCK - len % BLOCK) % BLOCK, out);
    return ferror(out) ? -EIO : 0;
}

static int put_redacted(struct bundle *b, const char *name, const char *text, size_t len)
{
    char *clean = nrg_redact(&b->identity, text, len);
    if (!clean)
        return -ENOMEM;
    int rc = put_member(b->out, name, clean, strlen(clean));
    free(clean);
    return rc;
}

static int put_file(struct bundle *b, const char *path)
{
    char text[MAX_BYTES];
    ssize_t len = nrg_root_read_head(b->root, path, text, sizeof text);
    if (len < 0)
        len = snprintf(text, sizeof text, "(%s)\n", strerror((int)-len));
    /* One processor is enough, and the machine's serial number stands behind the last. */
    char *second = strcmp(path, "/proc/cpuinfo") ? NULL : strstr(text, "\n\n");
    if (second)
        len = second + 1 - text;
    return put_redacted(b, path, text, (size_t)len);
}

static int list_folder(const struct nrg_root *root, const char *path, int depth,
                       struct nrg_str *out)
{
    struct nrg_names names;
    int rc = nrg_root_list(root, path, &names);
    if (rc)
        return depth ? 0 : nrg_str_addf(out, "%s (%s)\n", path, strerror(-rc));
    for (size_t i = 0; !rc && i < names.n && i < 200; i++) {
        char inner[512];
        struct stat st = {0};
        snprintf(inner, sizeof inner, "%s/%.100s", path, names.items[i]);
        nrg_root_stat(root, inner, &st);
        rc = nrg_str_addf(out, "%06o %s\n", (unsigned)st.st_mode, inner);
        if (!rc && depth < 1 && S_ISDIR(st.st_mode))
            rc = list_folder(root, inner, depth + 1, out);
    }
    nrg_names_release(&names);
    return rc;
}

static int put_folders(struct bundle *b)
{
    struct nrg_str text = {0};
    int rc = 0;
    for (size_t i = 0; !rc && i < sizeof folders / sizeof *folders; i++)
        rc = list_folder(b->root, folders[i], 0, &text);
    if (!rc)
        rc = put_redacted(b, "folders.txt", text.text ? text.text : "", text.len);
    nrg_str_release(&text);
    return rc;
}

static int put_all(struct bundle *b, json_t *doctor)
{
    static const char end[2 * BLOCK];
    char *text = json_dumps(doctor, JSON_INDENT(1));
    int rc = text ? put_redacted(b, "doctor.json", text, strlen(text)) : -ENOMEM;
    free(text);
    for (size_t i = 0; !rc && i < sizeof files / sizeof *files; i++)
        rc = put_file(b, files[i]);
    if (!rc)
        rc = put_folders(b);
    return !rc && fwrite(end, 1, sizeof end, b->out) != sizeof end ? -EIO : rc;
}

int nrg_bundle_write(const struct nrg_context *ctx, json_t *doctor, FILE *out,
                     struct nrg_error *err)
{
    struct bundle b = {.root = &ctx->root, .out = out};
    int rc = nrg_identity_learn(&b.identity, b.root);
    rc = rc ? rc : put_all(&b, doctor);
    nrg_identity_release(&b.identity);
    return rc ? nrg_fail(err, rc, NULL, "the archive can't be written: %s", strerror(-rc)) : 0;
}
