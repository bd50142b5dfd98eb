/* See procfs.h. Every field is bounded by the length of the text: other programs choose the names.
 */
#include "record/sampler/procfs.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"

int nrg_proc_parse_stat(const char *text, size_t len, struct nrg_proc_stat *out)
{
    /* Fields after the name, numbered as in proc(5). */
    int64_t *const fields[] = {
        [14] = &out->user_ticks,         [15] = &out->system_ticks, [16] = &out->child_user_ticks,
        [17] = &out->child_system_ticks, [20] = &out->threads,      [22] = &out->start_ticks,
        [24] = &out->rss_pages};
    const char *open = memchr(text, '(', len), *close = open ? memrchr(text, ')', len) : NULL;
    if (!close || close < open)
        return -EINVAL;
    nrg_copy_clean(out->name, sizeof out->name, open + 1, (size_t)(close - open - 1));
    const char *p = close + 1, *end = text + len, *field;
    size_t field_len;
    for (size_t number = 3; number <= 24; number++) {
        if (!(field = nrg_next_field(&p, end, &field_len)))
            return -EINVAL;
        int64_t value = 0;
        if (number == 3) {
            out->state = *field;
        } else if (number == 4) {
            if (nrg_parse_i64(field, field_len, &value) || value < 0 || value > INT32_MAX)
                return -EINVAL;
            out->parent_pid = (int32_t)value;
        } else if (fields[number] && nrg_parse_i64(field, field_len, fields[number])) {
            return -EINVAL;
        }
    }
    return 0;
}

/* The text of [*p, end) up to a separator; NULL when there is none left. Advances *p. */
static const char *next_part(const char **p, const char *end, char separator, size_t *len)
{
    const char *part = *p;
    if (part >= end)
        return NULL;
    const char *stop = memchr(part, separator, (size_t)(end - part));
    *len = (size_t)((stop ? stop : end) - part);
    *p = part + *len + 1;
    return part;
}

static bool is_hex(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isxdigit((unsigned char)p[i]))
            return false;
    return true;
}

/* Known runtimes put a 64-digit id into one path element, with or without a prefix. */
static void find_container(const char *path, size_t len, char *out, size_t size)
{
    static const struct {
        const char *mark, *name;
    } runtimes[] = {{"docker", "docker"},
                    {"cri-containerd", "containerd"},
                    {"containerd", "containerd"},
                    {"crio", "cri-o"},
                    {"libpod", "podman"},
                    {"podman", "podman"},
                    {"lxc", "lxc"},
                    {"machine.slice", "machine"},
                    {"kubepods", "kubernetes"},
                    {"garden", "garden"}};
    for (size_t i = 0; i + 64 <= len; i++) {
        if (!is_hex(path + i, 64) || (i && isxdigit((unsigned char)path[i - 1])) ||
            (i + 64 < len && isxdigit((unsigned char)path[i + 64])))
            continue;
        const char *runtime = "container";
        for (size_t r = 0; r < sizeof runtimes / sizeof *runtimes; r++) {
            if (memmem(path, len, runtimes[r].mark, strlen(runtimes[r].mark))) {
                runtime = runtimes[r].name;
                break;
            }
        }
        snprintf(out, size, "%s:%.12s", runtime, path + i);
        return;
    }
    /* Names instead of ids: /lxc/NAME, /lxc.payload.NAME, /machine.slice/NAME. */
    static const char *const named[] = {"/lxc.payload.", "/lxc.payload/", "/lxc/",
                                        "/machine.slice/"};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        const char *at = memmem(path, len, named[i], strlen(named[i]));
        if (!at)
            continue;
        const char *name = at + strlen(named[i]), *end = path + len;
        const char *stop = memchr(name, '/', (size_t)(end - name));
        size_t n = (size_t)((stop ? stop : end) - name);
        char clean[64];
        nrg_copy_clean(clean, sizeof clean, name, n);
        snprintf(out, size, "%s:%s", i < 3 ? "lxc" : "machine", clean);
        return;
    }
}

/* Slurm's job, or the innermost systemd .service or .scope. */
static void find_unit(const char *path, size_t len, char *out, size_t size)
{
    const char *job = memmem(path, len, "/job_", 5);
    if (job && memmem(path, len, "slurm", 5)) {
        size_t n = 0;
        while (job + 5 + n < path + len && isdigit((unsigned char)job[5 + n]))
            n++;
        if (n) {
            snprintf(out, size, "slurm:job_%.*s", (int)(n > 20 ? 20 : n), job + 5);
            return;
        }
    }
    size_t n;
    for (const char *p = path, *part; (part = next_part(&p, path + len, '/', &n));)
        if ((n > 8 && !memcmp(part + n - 8, ".service", 8)) ||
            (n > 6 && !memcmp(part + n - 6, ".scope", 6)))
            nrg_copy_clean(out, size, part, n);
}

void nrg_proc_parse_cgroup(const char *text, size_t len, char *container, size_t container_size,
                           char *unit, size_t unit_size)
{
    size_t n;
    for (const char *p = text, *line; (line = next_part(&p, text + len, '\n', &n));) {
        const char *stop = line + n, *path = memchr(line, ':', n);
        path = path ? memchr(path + 1, ':', (size_t)(stop - path - 1)) : NULL;
        if (path && !container[0])
            find_container(path + 1, (size_t)(stop - path - 1), container, container_size);
        if (path && !unit[0])
            find_unit(path + 1, (size_t)(stop - path - 1), unit, unit_size);
    }
}

/* Adds up the numbers of all lines that start with `key`. Lines are "Key:   123 kB". */
static int sum_lines(const char *text, size_t len, const char *key, int64_t *sum)
{
    size_t key_len = strlen(key), line_len, n;
    int rc = -EINVAL;
    for (const char *p = text, *line; (line = next_part(&p, text + len, '\n', &line_len));) {
        const char *colon = memchr(line, ':', line_len);
        if (!colon || line_len <= key_len || memcmp(line, key, key_len))
            continue;
        int64_t value;
        const char *q = colon + 1, *field = nrg_next_field(&q, line + line_len, &n);
        /* With these bounds a sum of kB can be turned into bytes without overflow. */
        if (field && !nrg_parse_i64(field, n, &value) && value >= 0 && value < INT64_MAX / 4096 &&
            *sum < INT64_MAX / 4096) {
            *sum += value;
            rc = 0;
        }
    }
    return rc;
}

int nrg_proc_parse_smaps(const char *text, size_t len, int64_t *pss_bytes, int64_t *uss_bytes)
{
    int64_t pss_kb = 0, uss_kb = 0;
    int rc = sum_lines(text, len, "Pss:", &pss_kb);
    if (!rc)
        rc = sum_lines(text, len, "Private_", &uss_kb);
    *pss_bytes = pss_kb * 1024;
    *uss_bytes = uss_kb * 1024;
    return rc;
}

int nrg_proc_parse_io(const char *text, size_t len, int64_t *read_bytes, int64_t *written_bytes)
{
    *read_bytes = *written_bytes = 0;
    int rc = sum_lines(text, len, "read_bytes:", read_bytes);
    return rc ? rc : sum_lines(text, len, "write_bytes:", written_bytes);
}

static ssize_t read_proc(const struct nrg_root *root, int32_t pid, const char *file, char *buf,
                         size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    return nrg_root_read(root, path, buf, size);
}

int nrg_proc_read_stat(const struct nrg_root *root, int32_t pid, struct nrg_proc_stat *out)
{
    char buf[1024];
    ssize_t len = read_proc(root, pid, "stat", buf, sizeof buf);
    return len < 0 ? (int)len : nrg_proc_parse_stat(buf, (size_t)len, out);
}

bool nrg_proc_is_ours(const struct nrg_root *root)
{
    char self[24], own[24];
    snprintf(own, sizeof own, "%d", (int)getpid());
    return !nrg_root_is_live(root) ||
           (nrg_root_readlink(root, "/proc/self", self, sizeof self) > 0 && !strcmp(self, own));
}

int64_t nrg_proc_last_pid(int loadavg_fd)
{
    char buf[128];
    ssize_t len = nrg_pread_text(loadavg_fd, buf, sizeof buf);
    const char *blank = len > 0 ? memrchr(buf, ' ', (size_t)len) : NULL;
    int64_t pid;
    if (!blank || nrg_parse_i64(blank, (size_t)(buf + len - blank), &pid) || pid < 0)
        return -EINVAL;
    return pid;
}

/* The value of clock_getcpuclockid, without its system call. It is part of the kernel's ABI. */
static clockid_t cpu_clock_of(int32_t pid)
{
    return (clockid_t)(~(uint32_t)pid << 3 | 2);
}

int nrg_proc_cpu_ns(const struct nrg_root *root, int32_t pid, const struct nrg_proc_stat *stat,
                    int64_t *cpu_ns)
{
    struct timespec ts;
    if (nrg_root_is_live(root)) {
        if (clock_gettime(cpu_clock_of(pid), &ts))
            return -ESRCH;
        *cpu_ns = (int64_t)ts.tv_sec * NRG_NS_PER_S + ts.tv_nsec;
        return 0;
    }
    if (!stat)
        return -ESRCH;
    *cpu_ns = (stat->user_ticks + stat->system_ticks) * (NRG_NS_PER_S / sysconf(_SC_CLK_TCK));
    return 0;
}

void nrg_proc_describe(const struct nrg_root *root, int32_t pid, const struct nrg_proc_stat *stat,
                       struct nrg_process_info *info)
{
    char buf[4096], path[64];
    struct stat st;
    struct nrg_proc_stat own;
    if (!stat && !nrg_proc_read_stat(root, pid, &own))
        stat = &own;
    if (stat)
        nrg_copy(info->name, sizeof info->name, stat->name);
    ssize_t len = read_proc(root, pid, "cmdline", buf, sizeof buf);
    if (len == -EFBIG)
        len = sizeof buf - 1;
    if (len > 0)
        nrg_copy_clean(info->command, sizeof info->command, buf, (size_t)len);
    len = read_proc(root, pid, "cgroup", buf, sizeof buf);
    if (len > 0) {
        info->container[0] = info->unit[0] = '\0';
        nrg_proc_parse_cgroup(buf, (size_t)len, info->container, sizeof info->container, info->unit,
                              sizeof info->unit);
    }
    snprintf(path, sizeof path, "/proc/%d", pid);
    info->uid = nrg_root_stat(root, path, &st) ? -1 : (int32_t)st.st_uid;
}

int nrg_proc_memory(const struct nrg_root *root, int32_t pid, int64_t *pss_bytes,
                    int64_t *uss_bytes)
{
    char buf[2048];
    ssize_t len = read_proc(root, pid, "smaps_rollup", buf, sizeof buf);
    return len < 0 ? (int)len : nrg_proc_parse_smaps(buf, (size_t)len, pss_bytes, uss_bytes);
}

int nrg_proc_io(const struct nrg_root *root, int32_t pid, int64_t *read_bytes,
                int64_t *written_bytes)
{
    char buf[512];
    ssize_t len = read_proc(root, pid, "io", buf, sizeof buf);
    return len < 0 ? (int)len : nrg_proc_parse_io(buf, (size_t)len, read_bytes, written_bytes);
}

static void each_child_of_thread(const struct nrg_root *root, int32_t pid, const char *tid,
                                 void (*each)(int32_t, void *), void *arg)
{
    char path[80], *text;
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/children", pid, tid);
    ssize_t len = nrg_root_read_all(root, path, 1 << 20, &text);
    if (len <= 0) {
        free(text);
        return;
    }
    const char *p = text, *end = text + len, *field;
    size_t n;
    int64_t child;
    while ((field = nrg_next_field(&p, end, &n)))
        if (!nrg_parse_i64(field, n, &child) && child > 0 && child <= INT32_MAX)
            each((int32_t)child, arg);
    free(text);
}

void nrg_proc_children(const struct nrg_root *root, int32_t pid, int64_t threads,
                       void (*each)(int32_t child, void *arg), void *arg)
{
    char path[64];
    struct nrg_names tasks;
    snprintf(path, sizeof path, "%d", pid);
    if (threads <= 1) {
        each_child_of_thread(root, pid, path, each, arg);
        return;
    }
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    if (nrg_root_list(root, path, &tasks))
        return;
    for (size_t i = 0; i < tasks.n; i++)
        each_child_of_thread(root, pid, tasks.items[i], each, arg);
    nrg_names_release(&tasks);
}
