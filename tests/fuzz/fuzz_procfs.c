/*
 * Fuzz target: the parsers of /proc/PID files and of a control group's cpu.stat. The text is
 * exactly as long as its length says, without a zero byte behind it; results must be terminated and
 * numbers not negative.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "record/sampler/procfs.h"
#include "sensors/machine/files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct nrg_proc_stat stat;
    struct nrg_cpu_stat group;
    char container[80] = "", unit[128] = "";
    int64_t a, b;
    if (!nrg_proc_parse_stat(text, size, &stat) &&
        (stat.parent_pid < 0 || !memchr(stat.name, '\0', sizeof stat.name)))
        abort();
    nrg_proc_parse_cgroup(text, size, container, sizeof container, unit, sizeof unit);
    if (!memchr(container, '\0', sizeof container) || !memchr(unit, '\0', sizeof unit))
        abort();
    if (!nrg_proc_parse_smaps(text, size, &a, &b) && (a < 0 || b < 0))
        abort();
    if (!nrg_proc_parse_io(text, size, &a, &b) && (a < 0 || b < 0))
        abort();
    if (!nrg_cgroup_cpu_stat(text, size, &group) &&
        (group.usage_us < 0 || group.user_us < 0 || group.system_us < 0))
        abort();
    return 0;
}
