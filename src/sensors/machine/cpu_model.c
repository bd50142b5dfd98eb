/*
 * See cpu_model.h. Numbers decide, not names: virtual machines cut the model name ("AMD EPYC")
 * but pass vendor, family, model and stepping through. The name only excludes: a Ryzen
 * Threadripper shares its numbers with an EPYC and is run differently.
 *
 * Threads are counted in /proc/stat, because utilisation is taken from the same file: in a
 * container whose /proc is narrowed (lxcfs) both then speak of the same CPUs.
 *
 * Only the head of /proc/cpuinfo is read: the first CPU's block is a few kB, the file of a large
 * machine half a MB.
 */
#include "sensors/cpu_model.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "sensors/machine/files.h"

#define CPUINFO_HEAD   8192
#define PROC_STAT_MAX  ((size_t)16 << 20)
#define GENERIC_ARM    (nrg_cpu_n_families - 2)
#define GENERIC_SERVER (nrg_cpu_n_families - 1)

static void parse_number(const char *text, size_t len, unsigned *out)
{
    char buf[24], *end;
    if (!len || len >= sizeof buf)
        return;
    memcpy(buf, text, len);
    buf[len] = '\0';
    unsigned long number = strtoul(buf, &end, 0); /* ARM writes 0x41, x86 decimals */
    if (end != buf && !*end && number <= UINT32_MAX)
        *out = (unsigned)number;
}

static bool has_word(const char *text, size_t len, const char *word)
{
    const char *end = text + len, *field;
    size_t n;
    while ((field = nrg_next_field(&text, end, &n)))
        if (n == strlen(word) && !memcmp(field, word, n))
            return true;
    return false;
}

static void take_field(struct nrg_cpu_model *m, const char *key, const char *value, size_t len)
{
    const struct {
        const char *key;
        unsigned *number;
    } numbers[] = {
        {"cpu family", &m->family},      {"model", &m->model},     {"stepping", &m->stepping},
        {"siblings", &m->siblings},      {"cpu cores", &m->cores}, {"CPU part", &m->model},
        {"CPU implementer", &m->family},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(key, numbers[i].key))
            parse_number(value, len, numbers[i].number);
    if (!strcmp(key, "CPU implementer"))
        nrg_copy(m->vendor, sizeof m->vendor, "ARM");
    else if (!strcmp(key, "vendor_id"))
        nrg_copy_clean(m->vendor, sizeof m->vendor, value, len);
    else if (!strcmp(key, "model name"))
        nrg_copy_clean(m->name, sizeof m->name, value, len);
    else if (!strcmp(key, "flags") && has_word(value, len, "hypervisor"))
        m->virtual_machine = true;
}

/* "key<blanks>: value" */
static void take_line(struct nrg_cpu_model *m, const char *line, const char *stop)
{
    char key[32];
    const char *colon = memchr(line, ':', (size_t)(stop - line));
    if (!colon)
        return;
    nrg_copy_clean(key, sizeof key, line, (size_t)(colon - line));
    const char *value = colon + 1;
    while (value < stop && *value == ' ')
        value++;
    take_field(m, key, value, (size_t)(stop - value));
}

static void read_cpuinfo(const struct nrg_root *root, struct nrg_cpu_model *m)
{
    char text[CPUINFO_HEAD];
    ssize_t len = nrg_root_read(root, "/proc/cpuinfo", text, sizeof text);
    if (len < 0 && len != -EFBIG)
        return;
    const char *p = text, *end = text + (len < 0 ? sizeof text - 1 : (size_t)len);
    /* An empty line ends the first CPU; old ARM kernels tell the implementer after one. */
    while (p < end && !(*p == '\n' && m->vendor[0])) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop && len < 0)
            break; /* cut in the middle: no value to trust */
        take_line(m, p, stop ? stop : end);
        p = stop ? stop + 1 : end;
    }
}

static unsigned count_in_stat(const struct nrg_root *root)
{
    char *text;
    struct nrg_cpu_ticks ticks;
    unsigned n = 0;
    int cpu;
    ssize_t len = nrg_root_read_all(root, "/proc/stat", PROC_STAT_MAX, &text);
    if (len < 0)
        return 0;
    const char *p = text, *end = text + len;
    while (p < end && nrg_proc_stat_line(&p, end, &cpu, &ticks) != -ENOENT)
        n += cpu != NRG_CPU_ALL;
    free(text);
    return n;
}

static int count_one(unsigned cpu, void *arg)
{
    (void)cpu;
    ++*(unsigned *)arg;
    return 0;
}

static unsigned count_online(const struct nrg_root *root)
{
    char text[4096];
    unsigned n = 0;
    ssize_t len = nrg_root_read(root, "/sys/devices/system/cpu/online", text, sizeof text);
    return len > 0 && !nrg_parse_cpulist(text, count_one, &n) ? n : 0;
}

/* Firmware tables name the hypervisor where CPUID has no say (ARM). */
static bool firmware_is_virtual(const struct nrg_root *root)
{
    static const char *const marks[] = {"QEMU",       "KVM",        "VMware",
                                        "VirtualBox", "Xen",        "Virtual Machine",
                                        "HVM domU",   "Amazon EC2", "Google Compute Engine",
                                        "OpenStack",  "Bochs",      "Firecracker"};
    static const char *const files[] = {"/sys/class/dmi/id/sys_vendor",
                                        "/sys/class/dmi/id/product_name"};
    char text[128];
    /* EC2 says "Amazon EC2" on its metal machines too; there the product name ends in .metal */
    if (!nrg_root_read_label(root, files[1], text, sizeof text) && strstr(text, ".metal"))
        return false;
    for (size_t f = 0; f < 2; f++) {
        if (nrg_root_read_label(root, files[f], text, sizeof text))
            continue;
        for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
            if (strstr(text, marks[i]))
                return true;
    }
    return nrg_root_exists(root, "/sys/hypervisor/type") ||
           nrg_root_exists(root, "/proc/device-tree/hypervisor");
}

void nrg_cpu_model_read(const struct nrg_root *root, struct nrg_cpu_model *m)
{
    *m = (struct nrg_cpu_model){0};
    read_cpuinfo(root, m);
    m->threads = count_in_stat(root);
    if (!m->threads)
        m->threads = count_online(root);
    if (!m->virtual_machine)
        m->virtual_machine = firmware_is_virtual(root);
}

static bool matches(const struct nrg_cpu_id *id, const struct nrg_cpu_model *m)
{
    enum nrg_cpu_where here = m->virtual_machine ? NRG_CPU_VIRTUAL : NRG_CPU_BARE_METAL;
    return !strcmp(id->vendor, m->vendor) && id->family == m->family && m->model >= id->model &&
           m->model <= id->model_to && m->stepping >= id->stepping &&
           m->stepping <= id->stepping_to && (id->where == NRG_CPU_ANYWHERE || id->where == here) &&
           !(*id->unless && strstr(m->name, id->unless));
}

const struct nrg_cpu_family *nrg_cpu_family_of(const struct nrg_cpu_model *m, bool *known)
{
    *known = true;
    for (size_t i = 0; i < nrg_cpu_n_ids; i++)
        if (matches(&nrg_cpu_ids[i], m))
            return &nrg_cpu_families[nrg_cpu_ids[i].row];
    *known = false;
    return &nrg_cpu_families[strcmp(m->vendor, "ARM") ? GENERIC_SERVER : GENERIC_ARM];
}
