/*
 * Which process uses how much of an AMD GPU, from the kernel's compute driver (KFD), which is where
 * AMD's libraries have it from: /sys/class/kfd/kfd/proc/PID/vram_GPU is its memory, stats_GPU/
 * cu_occupancy how many compute units it occupies now. Of all units of the GPU that is its share: a
 * glance, ten times a second, not a mean. Without that file the share is missing, not 0.
 *
 * Pids are those of the initial namespace. In another one they say nothing, and are -1.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dir.h"
#include "base/mem.h"
#include "base/parse.h"
#include "sensors/amd/internal.h"

#define KFD_DIR   "/sys/class/kfd/kfd"
#define PERIOD_NS (100 * NRG_NS_PER_MS)

struct nrg_kfd {
    const struct nrg_root *root;
    unsigned gpu;
    uint64_t id;    /* the kernel's name of the GPU */
    uint64_t units; /* compute units */
    bool foreign;   /* pids of another namespace */
    int64_t next_ns;
    struct nrg_sink *sink; /* of this reading */
    int64_t t_ns;
};

/* The number after `key` in a file of lines "key number". */
static bool property(const char *text, const char *key, uint64_t *value)
{
    size_t len = strlen(key);
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (!strncmp(line, key, len) && line[len] == ' ')
            return !nrg_parse_u64(line + len, strcspn(line + len, "\n"), value);
    return false;
}

/* Whether node N of the topology is the device, and its properties. */
static bool is_node(const struct nrg_root *root, const char *node, const char *bdf,
                    struct nrg_kfd *kfd)
{
    char path[96], text[4096], name[32];
    uint64_t location, domain = 0, simds = 0, per_unit = 0;
    int64_t id;
    snprintf(path, sizeof path, KFD_DIR "/topology/nodes/%.20s/properties", node);
    if (nrg_root_read_head(root, path, text, sizeof text) < 0 ||
        !property(text, "location_id", &location))
        return false;
    property(text, "domain", &domain);
    nrg_amd_bdf_name((domain & 0xffffffff) << 32 | (location & 0xffff), name, sizeof name);
    snprintf(path, sizeof path, KFD_DIR "/topology/nodes/%.20s/gpu_id", node);
    if (strcmp(name, bdf) != 0 || nrg_root_read_i64(root, path, &id) || id <= 0)
        return false;
    property(text, "simd_count", &simds);
    property(text, "simd_per_cu", &per_unit);
    kfd->id = (uint64_t)id;
    kfd->units = per_unit ? simds / per_unit : 0;
    return true;
}

static bool is_initial_namespace(const struct nrg_root *root)
{
    char link[64];
    ssize_t len = nrg_root_readlink(root, "/proc/self/ns/pid", link, sizeof link);
    return len < 0 || !strcmp(link, NRG_INITIAL_PID_NAMESPACE);
}

struct nrg_kfd *nrg_kfd_new(const struct nrg_root *root, const char *bdf, unsigned gpu, int *rc)
{
    struct nrg_names nodes;
    struct nrg_kfd found = {.root = root, .gpu = gpu};
    bool any = false;
    *rc = 0;
    if (!nrg_root_exists(root, KFD_DIR "/proc") ||
        nrg_root_list(root, KFD_DIR "/topology/nodes", &nodes))
        return NULL;
    for (size_t i = 0; !any && i < nodes.n; i++)
        any = is_node(root, nodes.items[i], bdf, &found);
    nrg_names_release(&nodes);
    if (!any)
        return NULL;
    found.foreign = !is_initial_namespace(root);
    struct nrg_kfd *kfd = nrg_calloc(1, sizeof *kfd);
    *rc = kfd ? 0 : -ENOMEM;
    if (kfd)
        *kfd = found;
    return kfd;
}

void nrg_kfd_free(struct nrg_kfd *kfd)
{
    free(kfd);
}

static bool look_at_process(void *arg, int fd, const char *name)
{
    struct nrg_kfd *kfd = arg;
    uint64_t pid;
    int64_t memory = NRG_MISSING, units = NRG_MISSING;
    char path[128];
    (void)fd;
    if (nrg_parse_u64(name, strlen(name), &pid) || !pid || pid > INT32_MAX)
        return true;
    snprintf(path, sizeof path, KFD_DIR "/proc/%u/vram_%llu", (unsigned)pid,
             (unsigned long long)kfd->id);
    if (nrg_root_read_i64(kfd->root, path, &memory) || memory < 0)
        return true; /* it does not use this GPU */
    snprintf(path, sizeof path, KFD_DIR "/proc/%u/stats_%llu/cu_occupancy", (unsigned)pid,
             (unsigned long long)kfd->id);
    if (nrg_root_read_i64(kfd->root, path, &units) || units < 0 || !kfd->units ||
        (uint64_t)units > kfd->units)
        units = NRG_MISSING;
    snprintf(path, sizeof path, "/proc/%u", (unsigned)pid);
    bool ours = !kfd->foreign && nrg_root_exists(kfd->root, path);
    struct nrg_gpu_process sample = {
        .t_ns = kfd->t_ns,
        .gpu = kfd->gpu,
        .pid = ours ? (int32_t)pid : -1,
        .device_pid = (int32_t)pid,
        .size_ppm = NRG_MISSING,
        .sm_ppm = units == NRG_MISSING ? NRG_MISSING : units * 1000000 / (int64_t)kfd->units,
        .memory_bytes = memory};
    kfd->sink->gpu_process(kfd->sink, &sample);
    return true;
}

void nrg_kfd_read(struct nrg_kfd *kfd, struct nrg_sink *sink)
{
    int64_t now = nrg_now_ns();
    if (now < kfd->next_ns || !sink->gpu_process)
        return;
    kfd->next_ns = now + PERIOD_NS;
    kfd->sink = sink;
    kfd->t_ns = now;
    int fd = nrg_root_open(kfd->root, KFD_DIR "/proc", O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return;
    nrg_dir_each(fd, look_at_process, kfd);
    close(fd);
}
