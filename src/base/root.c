/* See root.h. */
#include "base/root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/parse.h"

#define HIGH_FD 4096

static const struct part {
    unsigned bit;
    const char *name;
} parts_of_root[] = {{NRG_PART_PROC, "/proc"}, {NRG_PART_SYS, "/sys"}, {NRG_PART_DEV, "/dev"}};

#define PARTS (sizeof parts_of_root / sizeof *parts_of_root)

/* True when `path` is the part's directory or below it. */
static bool is_below(const char *path, const struct part *part)
{
    size_t len = strlen(part->name);
    return !strncmp(path, part->name, len) && (!path[len] || path[len] == '/');
}

int nrg_root_init(struct nrg_root *root, const char *path, struct nrg_error *err)
{
    *root = (struct nrg_root){.fd = -1};
    if (nrg_copy_whole(root->path, sizeof root->path, path && *path ? path : "/"))
        return nrg_fail(err, -ENAMETOOLONG, path, "cannot use this as root: longer than %zu bytes",
                        sizeof root->path - 1);
    if (!strcmp(root->path, "/"))
        return 0;
    root->fd = open(root->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root->fd < 0)
        return nrg_fail(err, -errno, root->path, "cannot use this as root: %s", strerror(errno));
    for (size_t i = 0; i < PARTS; i++) {
        char target[16];
        ssize_t len = readlinkat(root->fd, parts_of_root[i].name + 1, target, sizeof target - 1);
        if (len > 0 && (size_t)len == strlen(parts_of_root[i].name) &&
            !memcmp(target, parts_of_root[i].name, (size_t)len))
            root->live |= parts_of_root[i].bit;
    }
    return 0;
}

void nrg_root_complete(struct nrg_root *root, unsigned parts)
{
    for (size_t i = 0; root->fd >= 0 && i < PARTS; i++)
        if (parts & parts_of_root[i].bit && !nrg_root_exists(root, parts_of_root[i].name))
            root->live |= parts_of_root[i].bit;
}

void nrg_root_release(struct nrg_root *root)
{
    if (root->fd >= 0)
        close(root->fd);
    root->fd = -1;
}

bool nrg_root_is_live(const struct nrg_root *root)
{
    return root->fd < 0 || root->live == NRG_PART_ALL;
}

bool nrg_root_part_is_live(const struct nrg_root *root, unsigned part)
{
    return root->fd < 0 || (root->live & part) == part;
}

bool nrg_root_is_one_machine(const struct nrg_root *root, unsigned parts)
{
    return root->fd < 0 || !(root->live & parts) || (root->live & parts) == parts;
}

void nrg_root_stay_high(struct nrg_root *root)
{
    struct rlimit limit;
    bool limited = !getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < 2 * HIGH_FD;
    root->lowest_fd = limited ? (int)(limit.rlim_cur / 2) : HIGH_FD;
    if (root->fd >= 0)
        root->fd = nrg_root_lift(root, root->fd);
}

bool nrg_root_is_inside(const struct nrg_root *root)
{
    return root->lowest_fd > 0;
}

int nrg_root_lift(const struct nrg_root *root, int fd)
{
    int high = root->lowest_fd && fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, root->lowest_fd) : -1;
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

int nrg_root_open(const struct nrg_root *root, const char *path, int flags)
{
    int fd;
    flags |= O_CLOEXEC;
    /* A FIFO in a hand-made tree must not stop us; the kernel's own files ignore it. */
    if (!(flags & O_PATH))
        flags |= O_NONBLOCK | O_NOCTTY;
    bool live = root->fd < 0;
    for (size_t i = 0; !live && i < PARTS; i++)
        live = root->live & parts_of_root[i].bit && is_below(path, &parts_of_root[i]);
    if (live) {
        fd = open(path, flags);
        return fd < 0 ? -errno : nrg_root_lift(root, fd);
    }
    while (*path == '/')
        path++;
    if (!*path)
        path = ".";
    struct open_how how = {.flags = (unsigned)flags, .resolve = RESOLVE_IN_ROOT};
    fd = (int)syscall(SYS_openat2, root->fd, path, &how, sizeof how);
    /* Old kernels and some container filters have no openat2; a captured tree still opens. */
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        fd = openat(root->fd, path, flags);
    return fd < 0 ? -errno : nrg_root_lift(root, fd);
}

static ssize_t read_full(int fd, char *buf, size_t size)
{
    size_t len = 0;
    while (len < size - 1) {
        ssize_t n = read(fd, buf + len, size - 1 - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    buf[len] = '\0';
    return (ssize_t)len;
}

ssize_t nrg_root_read(const struct nrg_root *root, const char *path, char *buf, size_t size)
{
    buf[0] = '\0';
    int fd = nrg_root_open(root, path, O_RDONLY);
    if (fd < 0)
        return fd;
    ssize_t len = read_full(fd, buf, size);
    if (len == (ssize_t)size - 1) {
        char more;
        if (read(fd, &more, 1) == 1)
            len = -EFBIG;
    }
    close(fd);
    return len;
}

ssize_t nrg_root_read_head(const struct nrg_root *root, const char *path, char *buf, size_t size)
{
    ssize_t len = nrg_root_read(root, path, buf, size);
    return len == -EFBIG ? (ssize_t)size - 1 : len;
}

int nrg_root_read_i64(const struct nrg_root *root, const char *path, int64_t *out)
{
    char buf[64];
    ssize_t len = nrg_root_read(root, path, buf, sizeof buf);
    return len < 0 ? (int)len : nrg_parse_i64(buf, (size_t)len, out);
}

int nrg_root_read_label(const struct nrg_root *root, const char *path, char *buf, size_t size)
{
    char raw[512];
    buf[0] = '\0';
    ssize_t len = nrg_root_read_head(root, path, raw, sizeof raw);
    if (len < 0)
        return (int)len;
    const char *end = memchr(raw, '\n', (size_t)len);
    nrg_copy_clean(buf, size, raw, end ? (size_t)(end - raw) : (size_t)len);
    return buf[0] ? 0 : -ENODATA;
}

ssize_t nrg_root_read_all(const struct nrg_root *root, const char *path, size_t limit, char **text)
{
    struct nrg_str s = {0};
    char buf[4096];
    ssize_t n;
    *text = NULL;
    struct stat st;
    int fd = nrg_root_open(root, path, O_RDONLY);
    if (fd < 0)
        return fd;
    ssize_t rc = fstat(fd, &st) || S_ISREG(st.st_mode) ? nrg_str_add(&s, "", 0) : -EINVAL;
    while (!rc && (n = read_full(fd, buf, sizeof buf)) != 0) {
        if (n < 0)
            rc = n;
        else if (s.len + (size_t)n > limit)
            rc = -EFBIG;
        else
            rc = nrg_str_add(&s, buf, (size_t)n);
    }
    close(fd);
    if (rc) {
        nrg_str_release(&s);
        return rc;
    }
    *text = s.text;
    return (ssize_t)s.len;
}

bool nrg_root_exists(const struct nrg_root *root, const char *path)
{
    struct stat st;
    return !nrg_root_stat(root, path, &st);
}

int nrg_root_stat(const struct nrg_root *root, const char *path, struct stat *out)
{
    if (root->fd < 0)
        return stat(path, out) ? -errno : 0;
    int fd = nrg_root_open(root, path, O_PATH);
    if (fd < 0)
        return fd;
    int rc = fstat(fd, out) ? -errno : 0;
    close(fd);
    return rc;
}

int nrg_root_access(const struct nrg_root *root, const char *path, int mode)
{
    int fd = nrg_root_open(root, path, O_PATH);
    if (fd < 0)
        return fd;
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    int rc = faccessat(AT_FDCWD, self, mode, AT_EACCESS) ? -errno : 0;
    close(fd);
    return rc;
}

ssize_t nrg_root_readlink(const struct nrg_root *root, const char *path, char *buf, size_t size)
{
    int fd = nrg_root_open(root, path, O_PATH | O_NOFOLLOW);
    if (fd < 0)
        return fd;
    ssize_t len = readlinkat(fd, "", buf, size - 1);
    len = len < 0 ? -errno : len;
    close(fd);
    if (len >= 0)
        buf[len] = '\0';
    return len;
}

static int by_version(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

int nrg_root_list(const struct nrg_root *root, const char *path, struct nrg_names *out)
{
    *out = (struct nrg_names){0};
    int fd = nrg_root_open(root, path, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return fd;
    DIR *dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return -ENOMEM;
    }
    int rc = 0;
    struct dirent *entry;
    while (!rc && (entry = readdir(dir))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        char *name = strdup(entry->d_name);
        rc = name ? nrg_append(&out->items, &out->n, &out->cap, &name, sizeof name) : -ENOMEM;
        if (rc)
            free(name);
    }
    closedir(dir);
    if (rc)
        nrg_names_release(out);
    else if (out->n)
        qsort(out->items, out->n, sizeof *out->items, by_version);
    return rc;
}

void nrg_names_release(struct nrg_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->items[i]);
    free(names->items);
    *names = (struct nrg_names){0};
}

ssize_t nrg_pread_text(int fd, char *buf, size_t size)
{
    ssize_t len = pread(fd, buf, size - 1, 0);
    if (len < 0)
        return -errno;
    buf[len] = '\0';
    return len;
}

int nrg_pread_i64(int fd, int64_t *out)
{
    char buf[48];
    ssize_t len = nrg_pread_text(fd, buf, sizeof buf);
    return len < 0 ? (int)len : nrg_parse_i64(buf, (size_t)len, out);
}
