/* See machine_info.h. Only a live root has a TSC to ask: a captured tree shows another machine's.
 */
#include "record/machine_info.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <nrg/nrg.h>

#include "record/store/writer.h"
#include "sensors/machine/cpu_model.h"

bool nrg_machine_has_tsc(const struct nrg_root *root)
{
#if defined(__x86_64__)
    char text[32];
    return nrg_root_is_live(root) &&
           !nrg_root_read_label(root,
                                "/sys/devices/system/clocksource/clocksource0/current_clocksource",
                                text, sizeof text) &&
           !strcmp(text, "tsc");
#else
    return false;
#endif
}

/* "0.8 to 3.4 GHz, turbo off", of CPU 0. */
static void write_clock_limits(const struct nrg_root *root, struct nrg_store *store)
{
    static const struct {
        const char *path;
        int64_t on;
    } switches[] = {{"/sys/devices/system/cpu/cpufreq/boost", 1},
                    {"/sys/devices/system/cpu/intel_pstate/no_turbo", 0}};
    char text[64] = "";
    int64_t least_khz, most_khz, turbo;
    if (nrg_root_read_i64(root, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq",
                          &least_khz) ||
        nrg_root_read_i64(root, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq", &most_khz))
        return;
    int used = snprintf(text, sizeof text, "%.4g to %.4g GHz", (double)least_khz * 1e-6,
                        (double)most_khz * 1e-6);
    for (size_t i = 0; i < 2 && used > 0 && (size_t)used < sizeof text; i++)
        if (!nrg_root_read_i64(root, switches[i].path, &turbo)) {
            snprintf(text + used, sizeof text - (size_t)used, ", turbo %s",
                     turbo == switches[i].on ? "on" : "off");
            break;
        }
    nrg_store_text(store, "clock_limits", text);
}

/* What changes power without a change of the program: nrg compare looks at it. */
static void write_settings(const struct nrg_root *root, struct nrg_store *store)
{
    static const struct {
        const char *key, *path;
    } files[] = {
        {"governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"},
        {"gpu_driver", "/sys/module/nvidia/version"},
    };
    char text[64], limits[128] = "";
    write_clock_limits(root, store);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!nrg_root_read_label(root, files[i].path, text, sizeof text))
            nrg_store_text(store, files[i].key, text);
    for (int c = 0; c < 2; c++) {
        char path[96];
        int64_t limit_uw;
        size_t used = strlen(limits);
        snprintf(path, sizeof path, "/sys/class/powercap/intel-rapl:0/constraint_%d_power_limit_uw",
                 c);
        if (!nrg_root_read_i64(root, path, &limit_uw))
            snprintf(limits + used, sizeof limits - used, "%s%.3g W", used ? ", " : "",
                     (double)limit_uw * 1e-6);
    }
    if (limits[0])
        nrg_store_text(store, "power_limits", limits);
}

int nrg_machine_info_write(const struct nrg_context *ctx, struct nrg_store *store)
{
    char text[128];
    struct utsname uts;
    struct nrg_cpu_model cpu;
    nrg_store_text(store, "nrg_version", NRG_VERSION);
    if (!nrg_root_read_label(&ctx->root, "/proc/sys/kernel/random/boot_id", text, sizeof text))
        nrg_store_text(store, "boot_id", text);
    nrg_cpu_model_identify(&ctx->root, &cpu);
    if (cpu.name[0] || cpu.board[0])
        nrg_store_text(store, "cpu", cpu.name[0] ? cpu.name : cpu.board);
    if (!uname(&uts)) {
        nrg_store_text(store, "host", uts.nodename);
        nrg_store_text(store, "kernel", uts.release);
        nrg_store_text(store, "architecture", uts.machine);
    }
    nrg_store_integer(store, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
    write_settings(&ctx->root, store);
    return nrg_machine_has_tsc(&ctx->root);
}
