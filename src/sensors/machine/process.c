/*
 * What can be measured of single processes: CPU time, memory, and whether short-lived ones are
 * seen. This driver only describes; the values are read by the recorder's process tree
 * (record/sampler/proctree.c), which has to follow forks and exits and writes rows, not channels.
 * That is why it has no open and no read.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sensors/drivers.h"
#include "sensors/fixes.h"
#include "sensors/machine/connector.h"

static const char fix_hidden[] =
    "processes of other users are hidden (hidepid): run as their user, or mount /proc with gid=";

static int add_channels(struct nrg_probe *probe)
{
    struct nrg_found *found = nrg_probe_found(probe, "processes of the workload");
    struct nrg_channel *c =
        found ? nrg_found_channel(found, "process.cpu", NRG_SECONDS, NRG_COUNTER) : NULL;
    if (!c)
        return -ENOMEM;
    bool live = nrg_root_is_live(&probe->ctx->root);
    c->scale = 1e-9;
    c->resolution = live ? 1e-9 : 1.0 / (double)sysconf(_SC_CLK_TCK);
    nrg_copy(c->source, sizeof c->source,
             live ? "the process's CPU clock, all threads" : "/proc/PID/stat");
    c = nrg_found_channel(found, "process.rss", NRG_BYTES, NRG_GAUGE);
    if (!c)
        return -ENOMEM;
    c->resolution = (double)sysconf(_SC_PAGESIZE);
    nrg_copy(c->source, sizeof c->source, "/proc/PID/stat");
    c = nrg_found_channel(found, "process.pss", NRG_BYTES, NRG_GAUGE);
    if (!c)
        return -ENOMEM;
    c->update_ns = 10 * NRG_NS_PER_S;
    c->resolution = 1024;
    nrg_copy(c->source, sizeof c->source, "/proc/PID/smaps_rollup");
    return 0;
}

static int probe_process(struct nrg_probe *probe, struct nrg_error *err)
{
    char text[NRG_FIX_BYTES];
    if (!nrg_root_exists(&probe->ctx->root, "/proc/stat"))
        return nrg_probe_unavailable(probe, "processes", "mount -t proc proc /proc",
                                     "/proc is not there");
    int rc = add_channels(probe);
    if (rc || !nrg_root_is_live(&probe->ctx->root))
        return rc;
    int fd = nrg_connector_open(&probe->ctx->root);
    if (fd >= 0)
        close(fd);
    else
        rc = nrg_probe_unavailable(
            probe, "processes that live a few milliseconds",
            fd == -EPERM ? nrg_fixes(&probe->ctx->root, NRG_CONNECTOR_DENIED, text) : NULL,
            "proc connector: %s",
            fd == -EXDEV ? "not in a pid namespace (container)" : strerror(-fd));
    if (!rc && nrg_root_read(&probe->ctx->root, "/proc/1/stat", text, sizeof text) == -ENOENT)
        rc = nrg_probe_unavailable(probe, "processes of other users", fix_hidden,
                                   "/proc does not show them");
    return rc;
}

const struct nrg_driver nrg_driver_process = {
    .name = "process",
    .summary = "CPU time and memory of each process of the workload",
    .probe = probe_process,
};
