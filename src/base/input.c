/* See input.h: zlib behind glibc's fopencookie. */
#include "base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <zlib.h>

#include "base/inflate.h"
#include "base/mem.h"
#include "base/read_at.h"

#define IN_BYTES 65536

struct nrg_gunzip {
    int fd;
    void *library;
    struct nrg_zlib zlib;
    z_stream stream;
    bool running; /* the stream must be ended */
    bool ended;
    uint64_t done_bytes, made_bytes;
    uint8_t in[IN_BYTES];
};

static int start_member(struct nrg_gunzip *z)
{
    if (z->running)
        z->zlib.end(&z->stream);
    const Bytef *next = z->stream.next_in;
    uInt left = z->stream.avail_in;
    z->stream = (z_stream){.next_in = (Bytef *)(uintptr_t)next, .avail_in = left};
    /* 16: with gzip's header and checksum */
    z->running =
        z->zlib.init(&z->stream, 16 + MAX_WBITS, ZLIB_VERSION, (int)sizeof z->stream) == Z_OK;
    return z->running ? 0 : -ENOMEM;
}

/* Appends compressed bytes to those that are left; 0 at the end of the file. */
static ssize_t read_compressed(struct nrg_gunzip *z)
{
    ssize_t n;
    memmove(z->in, z->stream.next_in, z->stream.avail_in);
    z->stream.next_in = z->in;
    do
        n = read(z->fd, z->in + z->stream.avail_in, IN_BYTES - z->stream.avail_in);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        z->stream.avail_in += (uInt)n;
        z->done_bytes += (uint64_t)n;
    }
    return n;
}

/* Files made by appending have several members; anything else after a member is padding. */
static int next_member(struct nrg_gunzip *z)
{
    while (z->stream.avail_in < 2) {
        ssize_t n = read_compressed(z);
        if (n <= 0)
            return (int)n;
    }
    if (z->stream.next_in[0] != 0x1f || z->stream.next_in[1] != 0x8b)
        return 0;
    if (start_member(z)) {
        errno = ENOMEM;
        return -1;
    }
    return 1;
}

static ssize_t gunzip_read(void *cookie, char *buf, size_t size)
{
    struct nrg_gunzip *z = cookie;
    z->stream.next_out = (Bytef *)buf;
    z->stream.avail_out = size < 1u << 30 ? (uInt)size : 1u << 30;
    const uInt room = z->stream.avail_out;
    while (!z->ended && z->stream.avail_out == room) {
        ssize_t n = z->stream.avail_in ? 1 : read_compressed(z);
        if (n < 0)
            return -1;
        z->ended = n == 0;
        int rc = n ? z->zlib.step(&z->stream, Z_NO_FLUSH) : Z_OK;
        if (rc == Z_STREAM_END) {
            Bytef *out = z->stream.next_out;
            uInt left = z->stream.avail_out;
            int more = next_member(z);
            if (more < 0)
                return -1;
            z->ended = !more;
            z->stream.next_out = out;
            z->stream.avail_out = left;
        } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
            errno = EBADMSG;
            return -1;
        }
    }
    z->made_bytes += room - z->stream.avail_out;
    if (z->made_bytes > NRG_UNPACK_FREE && z->made_bytes / NRG_UNPACK_RATIO > z->done_bytes) {
        errno = EFBIG;
        return -1;
    }
    return (ssize_t)(room - z->stream.avail_out);
}

static int gunzip_seek(void *cookie, off64_t *offset, int whence)
{
    struct nrg_gunzip *z = cookie;
    if (whence != SEEK_SET || *offset != 0 || lseek(z->fd, 0, SEEK_SET) < 0) {
        errno = ESPIPE;
        return -1;
    }
    z->stream.avail_in = 0;
    z->done_bytes = z->made_bytes = 0;
    z->ended = false;
    return start_member(z) ? -1 : 0;
}

static int gunzip_close(void *cookie)
{
    struct nrg_gunzip *z = cookie;
    if (z->running)
        z->zlib.end(&z->stream);
    nrg_inflate_unload(z->library);
    close(z->fd);
    free(z);
    return 0;
}

static int open_gunzip(struct nrg_input *input, int fd, const char *path, struct nrg_error *err)
{
    static const cookie_io_functions_t functions = {
        .read = gunzip_read, .seek = gunzip_seek, .close = gunzip_close};
    struct nrg_gunzip *z = nrg_calloc(1, sizeof *z);
    if (!z) {
        close(fd);
        return nrg_fail(err, -ENOMEM, path, "out of memory");
    }
    z->fd = fd;
    z->stream.next_in = z->in;
    z->library = nrg_inflate_load();
    int rc = z->library ? nrg_inflate_functions(z->library, &z->zlib) : -ENOENT;
    if (rc)
        nrg_fail(err, rc, path, "needs libz.so.1 to be unpacked: install zlib1g");
    else if ((rc = start_member(z)))
        nrg_fail(err, rc, path, "out of memory");
    if (!rc && !(input->in = fopencookie(z, "r", functions)))
        rc = nrg_fail(err, -ENOMEM, path, "out of memory");
    if (rc)
        gunzip_close(z);
    else
        input->gunzip = z;
    return rc;
}

/* Without O_NONBLOCK a FIFO would hang here, before it could be refused. */
int nrg_open_regular(const char *path, struct stat *st, struct nrg_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, st)) {
        int code = -errno;
        if (fd >= 0)
            close(fd);
        return nrg_fail(err, code, path, "cannot open: %s", strerror(-code));
    }
    if (!S_ISREG(st->st_mode)) {
        close(fd);
        return nrg_fail(err, -EINVAL, path, "is not a regular file");
    }
    return fd;
}

/* A pipe of a shell's <(command) or of /dev/stdin has a writer; a FIFO may never get one. */
static bool is_open_pipe(int fd, const struct stat *st)
{
    struct statfs fs;
    return S_ISFIFO(st->st_mode) && !fstatfs(fd, &fs) && fs.f_type == PIPEFS_MAGIC;
}

int nrg_open_readable(const char *path, struct stat *st, struct nrg_error *err)
{
    /* Opening a device may already do something: a tape rewinds, a watchdog starts. */
    bool device = !stat(path, st) && (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode));
    int fd = device && strcmp(path, "/dev/stdin") != 0
                 ? -1
                 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && device)
        return nrg_fail(err, -EINVAL, path, "is a device, not a file");
    if (fd < 0 || fstat(fd, st)) {
        int code = -errno;
        if (fd >= 0)
            close(fd);
        return nrg_fail(err, code, path, "%s", strerror(-code));
    }
    if (S_ISFIFO(st->st_mode) && !is_open_pipe(fd, st)) {
        close(fd);
        return nrg_fail(err, -EINVAL, path, "is a FIFO, not a file");
    }
    if (!S_ISREG(st->st_mode))
        fcntl(fd, F_SETFL, 0); /* reads wait for the writer */
    return fd;
}

/* Devices are not opened, and of a pipe, bytes that are read would be missing later. */
bool nrg_is_database(const char *path)
{
    static const char magic[] = "SQLite format 3"; /* with its NUL */
    char head[sizeof magic];
    struct stat st;
    int fd = stat(path, &st) || !S_ISREG(st.st_mode)
                 ? -1
                 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n = fd < 0 ? 0 : nrg_read_at(fd, head, sizeof head, 0);
    if (fd >= 0)
        close(fd);
    return n == sizeof head && !memcmp(head, magic, sizeof magic);
}

int nrg_input_open(struct nrg_input *input, const char *path, struct nrg_error *err)
{
    struct stat st;
    uint8_t magic[2] = {0};
    *input = (struct nrg_input){0};
    int fd = nrg_open_regular(path, &st, err);
    if (fd < 0)
        return fd;
    input->size_bytes = (uint64_t)st.st_size;
    if (nrg_read_at(fd, magic, sizeof magic, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b)
        return open_gunzip(input, fd, path, err);
    input->in = fdopen(fd, "r");
    if (input->in)
        return 0;
    close(fd);
    return nrg_fail(err, -ENOMEM, path, "out of memory");
}

const char *nrg_input_why(int error)
{
    switch (error) {
    case EFBIG:
        return "it unpacks to hundreds of times its size: refused (unpack it first if it is what "
               "it "
               "says)";
    case EBADMSG:
        return "the compressed data are damaged";
    default:
        return strerror(error);
    }
}

uint64_t nrg_input_done_bytes(const struct nrg_input *input)
{
    if (input->gunzip)
        return input->gunzip->done_bytes;
    off_t at = input->in ? ftello(input->in) : -1;
    return at > 0 ? (uint64_t)at : 0;
}

void nrg_input_close(struct nrg_input *input)
{
    if (input->in)
        fclose(input->in);
    *input = (struct nrg_input){0};
}
