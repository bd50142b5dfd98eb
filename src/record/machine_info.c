/* See machine_info.h. */
#include "record/machine_info.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/store/writer.h"

/* The first "model name" (x86) or "Model" (ARM boards) line. */
static void cpu_model(const struct nrg_root *root, char *out, size_t size)
{
    char buf[4096];
    out[0] = '\0';
    nrg_root_read(root, "/proc/cpuinfo", buf, sizeof buf);
    const char *line = strstr(buf, "model name");
    if (!line)
        line = strstr(buf, "Model");
    const char *colon = line ? strchr(line, ':') : NULL;
    if (colon) {
        colon += strspn(colon, ": \t");
        nrg_copy_clean(out, size, colon, strcspn(colon, "\n"));
    }
}

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
    (void)root;
    return false;
#endif
}

int nrg_machine_info_write(const struct nrg_context *ctx, struct nrg_store *store)
{
    char text[128];
    struct utsname uts;
    nrg_store_text(store, "nrg_version", NRG_VERSION);
    if (!nrg_root_read_label(&ctx->root, "/proc/sys/kernel/random/boot_id", text, sizeof text))
        nrg_store_text(store, "boot_id", text);
    cpu_model(&ctx->root, text, sizeof text);
    if (text[0])
        nrg_store_text(store, "cpu", text);
    if (!uname(&uts)) {
        nrg_store_text(store, "host", uts.nodename);
        nrg_store_text(store, "kernel", uts.release);
        nrg_store_text(store, "architecture", uts.machine);
    }
    nrg_store_integer(store, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
    return nrg_machine_has_tsc(&ctx->root);
}
