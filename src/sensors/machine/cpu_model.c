/*
 * See cpu_model.h. Threads are counted in /proc/stat, because utilisation is taken from the same
 * file: in a container whose /proc is narrowed (lxcfs) both then speak of the same CPUs.
 *
 * Only the head of /proc/cpuinfo is read: the first CPU's block is a few kB, the file of a large
 * machine half a MB.
 */
#include "sensors/machine/cpu_model.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "sensors/machine/files.h"

#define CPUINFO_HEAD  8192
#define PROC_STAT_MAX ((size_t)16 << 20)
#define CPU0          "/sys/devices/system/cpu/cpu0"
#define SENSIBLE_MHZ  20000

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

/* 0 when it is no clock */
static unsigned sensible_mhz(double mhz)
{
    return mhz >= 1 && mhz < SENSIBLE_MHZ ? (unsigned)(mhz + 0.5) : 0;
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

static void take_mhz(struct nrg_cpu_model *m, const char *value, size_t len)
{
    char buf[24];
    nrg_copy_clean(buf, sizeof buf, value, len);
    m->told_mhz = sensible_mhz(strtod(buf, NULL));
}

/* With aperfmperf the kernel shows the clock that the CPU runs at just now. It comes before. */
static void take_flags(struct nrg_cpu_model *m, const char *value, size_t len)
{
    if (has_word(value, len, "hypervisor"))
        m->virtual_machine = true;
    if (has_word(value, len, "aperfmperf"))
        m->told_mhz = 0;
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
    else if (!strcmp(key, "cpu MHz"))
        take_mhz(m, value, len);
    else if (!strcmp(key, "flags"))
        take_flags(m, value, len);
}

/* "key<blanks>: value". Boards have a line of their own after those of the CPUs. */
static void take_line(struct nrg_cpu_model *m, const char *line, const char *stop, bool first_cpu)
{
    char key[32];
    const char *colon = memchr(line, ':', (size_t)(stop - line));
    if (!colon)
        return;
    nrg_copy_clean(key, sizeof key, line, (size_t)(colon - line));
    const char *value = colon + 1;
    while (value < stop && *value == ' ')
        value++;
    if (first_cpu)
        take_field(m, key, value, (size_t)(stop - value));
    if (!strcmp(key, "Model"))
        nrg_copy_clean(m->board, sizeof m->board, value, (size_t)(stop - value));
}

int nrg_cpu_model_identify(const struct nrg_root *root, struct nrg_cpu_model *m)
{
    char text[CPUINFO_HEAD];
    bool first = true;
    *m = (struct nrg_cpu_model){0};
    ssize_t len = nrg_root_read(root, "/proc/cpuinfo", text, sizeof text);
    if (len < 0 && len != -EFBIG)
        return (int)len;
    const char *p = text, *end = text + (len < 0 ? sizeof text - 1 : (size_t)len);
    while (p < end) {
        /* An empty line ends the first CPU; old ARM kernels have the implementer after one. */
        first &= !(*p == '\n' && m->vendor[0]);
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop && len < 0)
            break; /* the buffer cut this line */
        take_line(m, p, stop ? stop : end, first);
        p = stop ? stop + 1 : end;
    }
    return 0;
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

static unsigned count_online(const struct nrg_root *root)
{
    char text[4096];
    ssize_t len = nrg_root_read(root, "/sys/devices/system/cpu/online", text, sizeof text);
    return len > 0 ? nrg_count_cpulist(text) : 0;
}

/* Firmware tables name the hypervisor where there is no CPUID (ARM). */
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

/* Types of virtual machines of SMT processors whose CPUs are cores. EC2 names the type. */
static bool type_sells_cores(const struct nrg_root *root)
{
    static const char *const types[] = {"m7a.", "c7a.",   "r7a.",   "m8a.",  "c8a.",
                                        "r8a.", "hpc6a.", "hpc7a.", "hpc8a."};
    char text[128];
    if (nrg_root_read_label(root, "/sys/class/dmi/id/product_name", text, sizeof text))
        return false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strncmp(text, types[i], strlen(types[i])))
            return true;
    return false;
}

/*
 * The clock that is printed on the box: in the name, or in what the firmware tells cpufreq. What
 * the CPU runs at now is not it, except in virtual machines, which are told the nominal one.
 */
static unsigned read_clock_mhz(const struct nrg_root *root, const struct nrg_cpu_model *m)
{
    static const struct {
        const char *path;
        double unit;
    } files[] = {{CPU0 "/cpufreq/base_frequency", 1e-3},
                 {CPU0 "/acpi_cppc/nominal_freq", 1},
                 {CPU0 "/cpufreq/cpuinfo_max_freq", 1e-3}};
    bool arm = !strcmp(m->vendor, "ARM"); /* there the highest clock is the nominal one */
    const char *at = strchr(m->name, '@');
    unsigned mhz = at && strstr(at, "GHz") ? sensible_mhz(strtod(at + 1, NULL) * 1e3) : 0;
    for (size_t i = 0; !mhz && i < (arm ? 3 : 2); i++) {
        int64_t value;
        if (!nrg_root_read_i64(root, files[i].path, &value))
            mhz = sensible_mhz((double)value * files[i].unit);
    }
    return mhz || !m->virtual_machine ? mhz : m->told_mhz;
}

static unsigned read_chip_cores(const struct nrg_root *root, const struct nrg_cpu_model *m)
{
    char text[4096];
    if (m->virtual_machine)
        return 0;
    if (m->cores || strcmp(m->vendor, "ARM"))
        return m->cores;
    ssize_t len = nrg_root_read(root, CPU0 "/topology/package_cpus_list", text, sizeof text);
    if (len <= 0)
        len = nrg_root_read(root, CPU0 "/topology/core_siblings_list", text, sizeof text);
    return len > 0 ? nrg_count_cpulist(text) : 0;
}

void nrg_cpu_model_read(const struct nrg_root *root, struct nrg_cpu_model *m)
{
    nrg_cpu_model_identify(root, m);
    m->threads = count_in_stat(root);
    if (!m->threads)
        m->threads = count_online(root);
    if (!m->virtual_machine)
        m->virtual_machine = firmware_is_virtual(root);
    m->whole_cores = m->virtual_machine && type_sells_cores(root);
    m->device_tree = nrg_root_exists(root, "/proc/device-tree/model");
    m->clock_mhz = read_clock_mhz(root, m);
    m->chip_cores = read_chip_cores(root, m);
}

enum nrg_cpu_vendor nrg_cpu_vendor_of(const struct nrg_cpu_model *m)
{
    if (!strcmp(m->vendor, "GenuineIntel"))
        return NRG_VENDOR_INTEL;
    return !strcmp(m->vendor, "AuthenticAMD") || !strcmp(m->vendor, "HygonGenuine")
               ? NRG_VENDOR_AMD
               : NRG_VENDOR_OTHER;
}
