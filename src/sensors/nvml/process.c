/*
 * Which process uses how much of a GPU: the share of its processors since the last call
 * (nvmlDeviceGetProcessUtilization) and the memory it holds (nvmlDeviceGetComputeRunning-
 * Processes), one record per pid. Shares are for splitting energy, so they need an interval: it
 * ends at the newest stamp among the shares. A process that runs but has no share gets 0 if others
 * have one; if none has, its share is missing, not 0.
 *
 * With MIG there are no shares. A process then counts with the part of the processors that its
 * instance has, divided by the processes in it: what it may use, not what it did. Where the
 * performance monitor tells how busy instances were (gpm.c), that part counts by this much, and the
 * size goes along. Whoever divides energy says so and widens the interval (energy/gpu_shares.c).
 *
 * Clients of CUDA's MPS compute side by side, each on a part of the processors. A client's share is
 * the time in which it computed: it counts with the part of the processors that it may use (mps.c),
 * and the time goes along as the size. What is booked on the server instead is divided among those
 * of its clients that have no share of their own, by these parts, and all of it is the size: how
 * long any of them may have computed. With no client listed it is nobody's.
 *
 * Entries of the process list have had three sizes, one of them under an unchanged name. The
 * buffer is made for the largest and filled with a pattern; how far the library wrote tells the
 * size. Shares above 100 % and pid 0 are uninitialised entries, a known driver fault: skipped.
 *
 * Pids are the host's, except that drivers since about 550 translate the process list (and not
 * the shares) into the caller's namespace. In a container we therefore trust a pid only when
 * /proc shows outer ids (NSpid) and the process is in our namespace, or when the process of that
 * number has an NVIDIA device open. All others are -1: the GPU's energy is then not split.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/parse.h"
#include "sensors/nvml/internal.h"

#define MAX_PROCESSES   512u
#define MAX_ENTRY_BYTES 32u
#define MAX_SHARES      4096u
#define MIN_SHARES      128u
#define MAX_NESTING     32u /* the kernel's MAX_PID_NS_LEVEL */
#define PERIOD_NS       (100 * NRG_NS_PER_MS)
#define MAP_NS          NRG_NS_PER_S
#define PATTERN         0xA5

struct process {
    unsigned device_pid;
    int64_t sm_ppm, memory_bytes;
    int64_t size_ppm; /* see struct nrg_gpu_process */
    bool crowded;     /* others are in its GPU instance */
    bool client;      /* of MPS */
    bool divided;     /* an MPS server whose share its clients have */
};

struct mapped {
    unsigned device_pid;
    int32_t pid;
    int64_t until_ns;
};

struct limit {
    unsigned device_pid;
    double part; /* of the processors */
};

struct nrg_nvml_processes {
    const struct nrg_nvml *api;
    struct nvml_device *device;
    unsigned gpu;
    const struct nrg_root *root;
    enum nrg_nvml_pids view;
    int64_t next_ns, last_t_ns;
    unsigned long long last_seen_us;
    bool has_memory;
    unsigned n_shares_max;
    struct nvml_process_utilization *shares; /* NULL: the device has none */
    struct nrg_nvml_slices slices;           /* of a board in MIG mode */
    struct nrg_nvml_activity activity;
    bool active; /* activity has the instances' values for this reading */
    struct process table[MAX_PROCESSES];
    size_t n;
    size_t n_clients;
    struct mapped mapped[64];
    struct limit limits[64];
    unsigned char entries[MAX_PROCESSES * MAX_ENTRY_BYTES] __attribute__((aligned(8)));
};

/* The numbers of the NSpid line of /proc/WHO/status, outermost first; how many, or -errno. */
static int read_nspid(const struct nrg_root *root, const char *who, uint64_t *pids)
{
    char path[48], text[4096];
    snprintf(path, sizeof path, "/proc/%s/status", who);
    ssize_t len = nrg_root_read_head(root, path, text, sizeof text);
    if (len < 0)
        return (int)len;
    const char *p = strstr(text, "\nNSpid:");
    if (!p)
        return -ENODATA;
    p += strlen("\nNSpid:");
    const char *end = p + strcspn(p, "\n"), *field;
    size_t width;
    int n = 0;
    while (n < (int)MAX_NESTING && (field = nrg_next_field(&p, end, &width)))
        if (nrg_parse_u64(field, width, &pids[n++]))
            return -EINVAL;
    return n;
}

enum nrg_nvml_pids nrg_nvml_pid_view(const struct nrg_root *root)
{
    char link[64];
    uint64_t pids[MAX_NESTING];
    ssize_t len = nrg_root_readlink(root, "/proc/self/ns/pid", link, sizeof link);
    /* A kernel without namespaces has no such file. */
    if (len < 0 || !strcmp(link, NRG_INITIAL_PID_NAMESPACE))
        return NRG_NVML_PIDS_OURS;
    int n = read_nspid(root, "self", pids);
    return n == 1 ? NRG_NVML_PIDS_FOREIGN : NRG_NVML_PIDS_OUTER;
}

/* True unless /proc says that the process lives in a namespace other than ours. */
static bool same_namespace(const struct nrg_root *root, const char *who)
{
    char path[48], ours[64], theirs[64];
    snprintf(path, sizeof path, "/proc/%s/ns/pid", who);
    ssize_t len = nrg_root_readlink(root, path, theirs, sizeof theirs);
    if (len == -ENOENT)
        return true; /* a captured tree */
    return len > 0 && nrg_root_readlink(root, "/proc/self/ns/pid", ours, sizeof ours) > 0 &&
           !strcmp(ours, theirs);
}

static bool look_at_fd(void *arg, int fd, const char *name)
{
    bool *found = arg;
    char target[64];
    ssize_t len = readlinkat(fd, name, target, sizeof target);
    *found = len > 11 && !memcmp(target, "/dev/nvidia", 11);
    return !*found;
}

static bool holds_device(const struct nrg_root *root, const char *who)
{
    char path[48];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%s/fd", who);
    int fd = nrg_root_open(root, path, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return false;
    nrg_dir_each(fd, look_at_fd, &found);
    close(fd);
    return found;
}

/* A device's pid in our namespace, -1 when it is unknown. */
static int32_t map_pid(const struct nrg_root *root, enum nrg_nvml_pids view, unsigned device_pid)
{
    char who[16], path[32];
    uint64_t pids[MAX_NESTING];
    if (device_pid > INT32_MAX)
        return -1;
    snprintf(who, sizeof who, "%u", device_pid);
    snprintf(path, sizeof path, "/proc/%s", who);
    if (!nrg_root_exists(root, path) || nrg_nvml_is_mps_server(root, device_pid))
        return -1;
    if (view == NRG_NVML_PIDS_OURS)
        return (int32_t)device_pid;
    int n = view == NRG_NVML_PIDS_OUTER ? read_nspid(root, who, pids) : 0;
    if (n > 1 && pids[0] == device_pid && pids[n - 1] <= INT32_MAX)
        return same_namespace(root, who) ? (int32_t)pids[n - 1] : -1;
    return view == NRG_NVML_PIDS_FOREIGN && holds_device(root, who) ? (int32_t)device_pid : -1;
}

/* A lookup costs system calls: in a container its result is kept for a second. */
static int32_t map_remembered(struct nrg_nvml_processes *p, unsigned device_pid, int64_t now_ns)
{
    if (p->view == NRG_NVML_PIDS_OURS)
        return map_pid(p->root, p->view, device_pid);
    struct mapped *m = &p->mapped[device_pid % (sizeof p->mapped / sizeof *p->mapped)];
    if (m->device_pid != device_pid || now_ns >= m->until_ns)
        *m = (struct mapped){device_pid, map_pid(p->root, p->view, device_pid), now_ns + MAP_NS};
    return m->pid;
}

static bool is_unsupported(int result)
{
    return result == NVML_NOT_SUPPORTED || result == NVML_FUNCTION_NOT_FOUND;
}

/* The library may refuse a buffer that is smaller than it asked for, even if less would do. */
static int prepare_shares(struct nrg_nvml_processes *p)
{
    unsigned count = 0;
    if (!p->api->process_utilization ||
        is_unsupported(p->api->process_utilization(p->device, NULL, &count, 0)))
        return 0;
    p->n_shares_max = count < MIN_SHARES ? MIN_SHARES : count > MAX_SHARES ? MAX_SHARES : count;
    p->shares = calloc(p->n_shares_max, sizeof *p->shares);
    return p->shares ? 0 : -ENOMEM;
}

struct nrg_nvml_processes *nrg_nvml_processes_new(const struct nrg_nvml *api,
                                                  struct nvml_device *device, unsigned gpu,
                                                  const struct nrg_root *root, int *rc)
{
    struct nrg_nvml_processes *p = calloc(1, sizeof *p);
    *rc = p ? 0 : -ENOMEM;
    if (!p)
        return NULL;
    p->api = api;
    p->device = device;
    p->gpu = gpu;
    p->root = root;
    p->view = nrg_nvml_pid_view(root);
    p->last_seen_us = (unsigned long long)nrg_realtime_ns() / 1000;
    unsigned count = MAX_PROCESSES;
    p->has_memory = api->processes && !is_unsupported(api->processes(device, &count, p->entries));
    *rc = prepare_shares(p);
    if (!p->shares)
        nrg_nvml_slices_read(api, device, &p->slices);
    nrg_nvml_activity_init(&p->activity, api, device, &p->slices);
    nrg_nvml_activity_read(&p->activity, nrg_now_ns());
    if (*rc || (!p->has_memory && !p->shares)) {
        nrg_nvml_processes_free(p);
        return NULL;
    }
    return p;
}

void nrg_nvml_processes_free(struct nrg_nvml_processes *p)
{
    if (!p)
        return;
    nrg_nvml_activity_release(&p->activity);
    free(p->shares);
    free(p);
}

/* NULL when the table is full: further processes are left out. */
static struct process *process_of(struct nrg_nvml_processes *p, unsigned device_pid)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->table[i].device_pid == device_pid)
            return &p->table[i];
    if (p->n == MAX_PROCESSES)
        return NULL;
    p->table[p->n] =
        (struct process){device_pid, NRG_MISSING, NRG_MISSING, NRG_MISSING, .crowded = false};
    return &p->table[p->n++];
}

/* How far the library wrote gives the size of its entries; without an answer, its version's. */
static size_t entry_bytes(const struct nrg_nvml_processes *p, size_t n)
{
    size_t end = sizeof p->entries;
    while (end > 0 && p->entries[end - 1] == PATTERN)
        end--;
    for (size_t bytes = 16; bytes <= MAX_ENTRY_BYTES; bytes += 8)
        if (end > n * (bytes - 8) && end <= n * bytes)
            return bytes;
    return p->api->process_bytes;
}

struct entry {
    unsigned pid, gpu_instance, compute_instance;
    unsigned long long used;
};

static struct entry entry_at(const struct nrg_nvml_processes *p, size_t i, size_t bytes)
{
    const unsigned char *at = p->entries + i * bytes;
    struct entry e = {.gpu_instance = UINT_MAX};
    memcpy(&e.pid, at, sizeof e.pid);
    memcpy(&e.used, at + 8, sizeof e.used);
    if (bytes >= 24) {
        memcpy(&e.gpu_instance, at + 16, sizeof e.gpu_instance);
        memcpy(&e.compute_instance, at + 20, sizeof e.compute_instance);
    }
    return e;
}

/* Adds to what may be missing so far. */
static void add_ppm(int64_t *sum, int64_t ppm)
{
    *sum = (*sum == NRG_MISSING ? 0 : *sum) + ppm;
}

/* A process's part of its instance, for each instance that it is in. */
static void divide_slices(struct nrg_nvml_processes *p, size_t n, size_t bytes)
{
    for (size_t i = 0; i < n && p->slices.n; i++) {
        struct entry e = entry_at(p, i, bytes);
        int64_t ppm = nrg_nvml_slice_ppm(&p->slices, e.gpu_instance, e.compute_instance);
        struct process *process = e.pid && ppm != NRG_MISSING ? process_of(p, e.pid) : NULL;
        int64_t together = 0, in_gpu_instance = 0;
        for (size_t k = 0; k < n; k++) {
            struct entry other = entry_at(p, k, bytes);
            in_gpu_instance += other.gpu_instance == e.gpu_instance;
            together += other.gpu_instance == e.gpu_instance &&
                        other.compute_instance == e.compute_instance;
        }
        if (!process)
            continue;
        int64_t busy = p->active ? nrg_nvml_activity_of(&p->activity, e.gpu_instance) : 1000000;
        add_ppm(&process->sm_ppm, ppm / together * busy / 1000000);
        if (p->active)
            add_ppm(&process->size_ppm, ppm / together);
        process->crowded |= in_gpu_instance > 1;
    }
}

/* Calls `list` and adds what processes of it hold; n and the size of its entries. */
static size_t read_list(struct nrg_nvml_processes *p,
                        int (*list)(struct nvml_device *, unsigned *, void *), bool clients,
                        size_t *bytes)
{
    unsigned n = MAX_PROCESSES;
    memset(p->entries, PATTERN, sizeof p->entries);
    if (list(p->device, &n, p->entries))
        return 0;
    if (n > MAX_PROCESSES)
        n = MAX_PROCESSES;
    *bytes = n ? entry_bytes(p, n) : 0;
    for (size_t i = 0; i < n; i++) {
        struct entry e = entry_at(p, i, *bytes);
        struct process *process = e.pid ? process_of(p, e.pid) : NULL;
        if (process)
            process->client |= clients;
        if (!process || e.used == NVML_VALUE_NOT_AVAILABLE || e.used > INT64_MAX / 2)
            continue;
        /* With MIG a process is listed once per instance that it uses. */
        bool first = process->memory_bytes == NRG_MISSING;
        process->memory_bytes = (int64_t)e.used + (first ? 0 : process->memory_bytes);
        if (process->memory_bytes > INT64_MAX / 2)
            process->memory_bytes = NRG_MISSING;
    }
    return n;
}

static void read_memory(struct nrg_nvml_processes *p)
{
    size_t bytes = 0, n = p->has_memory ? read_list(p, p->api->processes, false, &bytes) : 0;
    divide_slices(p, n, bytes);
    p->n_clients = p->api->mps_clients ? read_list(p, p->api->mps_clients, true, &bytes) : 0;
}

/*
 * Returns the newest stamp, 0 when there is no share at all. Where the two calls may number
 * processes differently (see above), a process without a share has an unknown one.
 */
static unsigned long long read_shares(struct nrg_nvml_processes *p, unsigned long long limit_us)
{
    unsigned n = p->n_shares_max;
    unsigned long long newest_us = 0;
    size_t listed = p->n;
    if (!p->shares || p->api->process_utilization(p->device, p->shares, &n, p->last_seen_us))
        return 0;
    for (size_t i = 0; i < n && i < p->n_shares_max; i++) {
        const struct nvml_process_utilization *share = &p->shares[i];
        if (!share->pid || share->sm > 100 || share->stamp_us <= p->last_seen_us ||
            share->stamp_us > limit_us)
            continue;
        struct process *process = process_of(p, share->pid);
        if (process)
            process->sm_ppm = (int64_t)share->sm * 10000;
        if (share->stamp_us > newest_us)
            newest_us = share->stamp_us;
    }
    bool complete = newest_us && p->view != NRG_NVML_PIDS_FOREIGN;
    for (size_t i = 0; complete && i < listed; i++)
        if (p->table[i].sm_ppm == NRG_MISSING)
            p->table[i].sm_ppm = 0;
    return newest_us;
}

/* A process keeps its environment: it is read once. */
static double limit_of(struct nrg_nvml_processes *p, unsigned device_pid, int64_t now_ns)
{
    struct limit *l = &p->limits[device_pid % (sizeof p->limits / sizeof *p->limits)];
    if (l->device_pid != device_pid)
        *l = (struct limit){device_pid,
                            nrg_nvml_mps_limit(p->root, map_remembered(p, device_pid, now_ns))};
    return l->part;
}

static bool needs_share(const struct process *process)
{
    return process->client && (process->sm_ppm == NRG_MISSING || process->sm_ppm == 0);
}

/* Time in which clients of MPS computed becomes use of the processors. */
static void weigh_clients(struct nrg_nvml_processes *p, int64_t now_ns)
{
    for (size_t i = 0; i < p->n && p->n_clients && !p->slices.n; i++) {
        struct process *process = &p->table[i];
        if (!process->client || process->sm_ppm == NRG_MISSING || process->sm_ppm <= 0)
            continue;
        process->size_ppm = process->sm_ppm;
        process->sm_ppm =
            (int64_t)((double)process->sm_ppm * limit_of(p, process->device_pid, now_ns));
    }
}

/* What is booked on servers of MPS, to their clients that have nothing of their own. */
static void divide_servers(struct nrg_nvml_processes *p, int64_t now_ns)
{
    int64_t booked_ppm = 0;
    double limits = 0;
    for (size_t i = 0; i < p->n && p->n_clients; i++)
        limits += needs_share(&p->table[i]) ? limit_of(p, p->table[i].device_pid, now_ns) : 0;
    for (size_t i = 0; i < p->n && limits > 0; i++) {
        struct process *process = &p->table[i];
        if (process->client || process->sm_ppm <= 0 || process->sm_ppm == NRG_MISSING ||
            !nrg_nvml_is_mps_server(p->root, process->device_pid))
            continue;
        booked_ppm += process->sm_ppm;
        process->divided = true;
    }
    for (size_t i = 0; i < p->n && booked_ppm; i++) {
        struct process *process = &p->table[i];
        if (!needs_share(process))
            continue;
        double part = limit_of(p, process->device_pid, now_ns) / limits;
        process->sm_ppm = (int64_t)((double)booked_ppm * part);
        process->size_ppm = p->slices.n ? NRG_MISSING : booked_ppm;
    }
}

void nrg_nvml_processes_read(struct nrg_nvml_processes *p, const struct nrg_nvml_clock *clock,
                             bool stepped, struct nrg_sink *sink)
{
    int64_t t_ns = clock->now_ns;
    unsigned long long now_us = (unsigned long long)(clock->now_ns + clock->offset_ns) / 1000;
    if (stepped) /* old stamps are meaningless now: begin a new interval */
        p->last_seen_us = now_us;
    if (clock->now_ns < p->next_ns || !sink->gpu_process)
        return;
    p->next_ns = clock->now_ns + PERIOD_NS;
    p->n = 0;
    p->active = nrg_nvml_activity_read(&p->activity, clock->now_ns);
    read_memory(p);
    unsigned long long newest_us = read_shares(p, now_us + 1000000);
    weigh_clients(p, clock->now_ns);
    divide_servers(p, clock->now_ns);
    if (newest_us)
        p->last_seen_us = newest_us;
    if (!newest_us || !nrg_nvml_place(clock, newest_us, p->last_t_ns, &t_ns))
        t_ns = clock->now_ns;
    p->last_t_ns = t_ns;
    for (size_t i = 0; i < p->n; i++) {
        const struct process *process = &p->table[i];
        if (process->divided)
            continue;
        struct nrg_gpu_process sample = {
            .t_ns = t_ns,
            .gpu = p->gpu,
            .pid = map_remembered(p, process->device_pid, clock->now_ns),
            .device_pid = (int32_t)process->device_pid,
            .sm_ppm = process->sm_ppm,
            .memory_bytes = process->memory_bytes,
            .size_ppm = process->crowded ? NRG_MISSING : process->size_ppm};
        sink->gpu_process(sink, &sample);
    }
}
