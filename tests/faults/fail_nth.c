/*
 * LD_PRELOAD for tests: the nth call that asks the system for something fails, as on a machine
 * without memory or with a dying disk. tests/faults/faults.py drives it.
 *
 *   NRG_FAULT_KINDS   letters: m memory, o open, r read, w write, s sync and truncate, p mmap,
 *                     c close, t thread
 *   NRG_FAULT_N       which call fails, from 1; 0: none
 *   NRG_FAULT_ALL     set: all from there on fail
 *   NRG_FAULT_ERRNO   the error of reads, writes and opens (memory is always ENOMEM)
 *   NRG_FAULT_SHORT   set: reads and writes do at most this many bytes instead
 *   NRG_FAULT_SHOW    set: the first call that fails shows on stderr from where it was made
 *   NRG_FAULT_SITES   a file that gets one line per call: its number, its kind, its place
 *
 * Only the process that was started counts: the variables and LD_PRELOAD are gone for its children,
 * and a copy made by fork() passes everything through. Streams of fopen() are made of counted
 * calls, because libc's own calls can't be seen from here. malloc() inside of libc (strdup, qsort,
 * open_memstream, fopen) can.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FRAMES = 10, EARLY_BYTES = 65536 };

static struct {
    char kinds[16];
    long n, short_bytes;
    int error, all, sites, show;
    pid_t owner; /* 0: nothing is counted (yet) */
    atomic_long calls;
} state = {.sites = -1};

static _Thread_local int inside; /* own calls and those of backtrace() are not counted */

/* dlsym() may ask for memory before malloc() is known. */
static char early[EARLY_BYTES];
static atomic_size_t early_used;

static void *real(const char *name)
{
    inside++;
    void *found = dlsym(RTLD_NEXT, name);
    inside--;
    return found;
}

#define REAL(type, name, ...)                                                                      \
    static type (*real_##name)(__VA_ARGS__);                                                       \
    if (!real_##name)                                                                              \
    *(void **)&real_##name = real(#name)

static void write_site(long n, char kind)
{
    void *frames[FRAMES];
    char line[64];
    uint64_t hash = 1469598103934665603u;
    int got = backtrace(frames, FRAMES);
    for (int i = 2; i < got; i++)
        hash = (hash ^ (uint64_t)(uintptr_t)frames[i]) * 1099511628211u;
    int len = snprintf(line, sizeof line, "%ld %c %016llx\n", n, kind, (unsigned long long)hash);
    REAL(ssize_t, write, int, const void *, size_t);
    if (real_write(state.sites, line, (size_t)len) != len)
        abort();
}

static void show_place(void)
{
    void *frames[3 * FRAMES];
    backtrace_symbols_fd(frames, backtrace(frames, 3 * FRAMES), STDERR_FILENO);
}

/* True when this call has to fail. errno stays as it was. */
static int due(char kind)
{
    if (!state.owner || inside || !strchr(state.kinds, kind) || getpid() != state.owner)
        return 0;
    int kept = errno;
    inside++;
    long n = atomic_fetch_add(&state.calls, 1) + 1;
    if (state.sites >= 0)
        write_site(n, kind);
    if (state.show && n == state.n)
        show_place();
    inside--;
    errno = kept;
    return state.n && (n == state.n || (state.all && n > state.n));
}

static int fails(char kind)
{
    int now = due(kind);
    if (now)
        errno = state.error;
    return now;
}

/* How much a read or write may do: all, or a part where parts are asked for. */
static size_t share(char kind, size_t size)
{
    return state.short_bytes && size > (size_t)state.short_bytes && due(kind)
               ? (size_t)state.short_bytes
               : size;
}

static int refused(char kind)
{
    return !state.short_bytes && fails(kind);
}

static long number(const char *name)
{
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

__attribute__((constructor)) static void begin(void)
{
    static const char *const variables[] = {"NRG_FAULT_KINDS", "NRG_FAULT_N",     "NRG_FAULT_ALL",
                                            "NRG_FAULT_ERRNO", "NRG_FAULT_SHORT", "NRG_FAULT_SITES",
                                            "NRG_FAULT_SHOW",  "LD_PRELOAD"};
    const char *kinds = getenv("NRG_FAULT_KINDS"), *sites = getenv("NRG_FAULT_SITES");
    void *frame;
    if (!kinds)
        return;
    inside++;
    backtrace(&frame, 1); /* loads libgcc */
    snprintf(state.kinds, sizeof state.kinds, "%s", kinds);
    state.n = number("NRG_FAULT_N");
    state.all = number("NRG_FAULT_ALL") != 0;
    state.short_bytes = number("NRG_FAULT_SHORT");
    state.error = number("NRG_FAULT_ERRNO") ? (int)number("NRG_FAULT_ERRNO") : EIO;
    state.show = getenv("NRG_FAULT_SHOW") != NULL;
    if (sites)
        state.sites = fcntl(open(sites, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600),
                            F_DUPFD_CLOEXEC, 900);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    inside--;
    state.owner = getpid();
}

/* ---- memory ---- */

static void *early_memory(size_t size)
{
    size_t at = atomic_fetch_add(&early_used, (size + 31) / 16 * 16);
    return at + size <= EARLY_BYTES ? early + at : NULL;
}

static int is_early(const void *p)
{
    return (const char *)p >= early && (const char *)p < early + EARLY_BYTES;
}

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t size)
{
    static void *(*next)(size_t);
    static _Thread_local int looking;
    if (!next) {
        if (looking)
            return early_memory(size);
        looking = 1;
        *(void **)&next = real("malloc");
        looking = 0;
    }
    return due('m') ? no_memory() : next(size);
}

void *calloc(size_t n, size_t size)
{
    static void *(*next)(size_t, size_t);
    static _Thread_local int looking;
    if (!next) {
        if (looking)
            return early_memory(n * size); /* zero: it is static and never given back */
        looking = 1;
        *(void **)&next = real("calloc");
        looking = 0;
    }
    return due('m') ? no_memory() : next(n, size);
}

void *realloc(void *p, size_t size)
{
    REAL(void *, realloc, void *, size_t);
    if (is_early(p)) {
        void *copy = malloc(size);
        return copy ? memcpy(copy, p, size) : NULL;
    }
    return due('m') ? no_memory() : real_realloc(p, size);
}

void *reallocarray(void *p, size_t n, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(n, size, &bytes) ? no_memory() : realloc(p, bytes);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    REAL(void *, aligned_alloc, size_t, size_t);
    return due('m') ? no_memory() : real_aligned_alloc(alignment, size);
}

int posix_memalign(void **p, size_t alignment, size_t size)
{
    REAL(int, posix_memalign, void **, size_t, size_t);
    return due('m') ? ENOMEM : real_posix_memalign(p, alignment, size);
}

void free(void *p)
{
    REAL(void, free, void *);
    if (!is_early(p))
        real_free(p);
}

/* ---- files ---- */

static int open_mode(int flags, va_list args)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, int) : 0;
}

#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        int mode = open_mode(flags, args);                                                         \
        va_end(args);                                                                              \
        REAL(int, openat, int, const char *, int, ...);                                            \
        return fails('o') ? -1 : real_openat(AT_FDCWD, path, flags, mode);                         \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                               \
    int name(int dir, const char *path, int flags, ...)                                            \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        int mode = open_mode(flags, args);                                                         \
        va_end(args);                                                                              \
        REAL(int, openat, int, const char *, int, ...);                                            \
        return fails('o') ? -1 : real_openat(dir, path, flags, mode);                              \
    }
OPENAT(openat)
OPENAT(openat64)

int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
    return open(path, flags);
}

int __open64_2(const char *path, int flags);
int __open64_2(const char *path, int flags)
{
    return open(path, flags);
}

int __openat_2(int dir, const char *path, int flags);
int __openat_2(int dir, const char *path, int flags)
{
    return openat(dir, path, flags);
}

int __openat64_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags)
{
    return openat(dir, path, flags);
}

ssize_t read(int fd, void *buf, size_t size)
{
    REAL(ssize_t, read, int, void *, size_t);
    return refused('r') ? -1 : real_read(fd, buf, share('r', size));
}

ssize_t __read_chk(int fd, void *buf, size_t size, size_t room);
ssize_t __read_chk(int fd, void *buf, size_t size, size_t room)
{
    (void)room;
    return read(fd, buf, size);
}

ssize_t write(int fd, const void *buf, size_t size)
{
    REAL(ssize_t, write, int, const void *, size_t);
    return fd > 2 && refused('w') ? -1 : real_write(fd, buf, fd > 2 ? share('w', size) : size);
}

#define PREAD(name)                                                                                \
    ssize_t name(int fd, void *buf, size_t size, off_t at)                                         \
    {                                                                                              \
        REAL(ssize_t, pread64, int, void *, size_t, off_t);                                        \
        return refused('r') ? -1 : real_pread64(fd, buf, share('r', size), at);                    \
    }
PREAD(pread)
PREAD(pread64)

#define PREAD_CHK(name)                                                                            \
    ssize_t name(int fd, void *buf, size_t size, off_t at, size_t room);                           \
    ssize_t name(int fd, void *buf, size_t size, off_t at, size_t room)                            \
    {                                                                                              \
        (void)room;                                                                                \
        return pread(fd, buf, size, at);                                                           \
    }
PREAD_CHK(__pread_chk)
PREAD_CHK(__pread64_chk)

#define PWRITE(name)                                                                               \
    ssize_t name(int fd, const void *buf, size_t size, off_t at)                                   \
    {                                                                                              \
        REAL(ssize_t, pwrite64, int, const void *, size_t, off_t);                                 \
        return refused('w') ? -1 : real_pwrite64(fd, buf, share('w', size), at);                   \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

int fsync(int fd)
{
    REAL(int, fsync, int);
    return refused('s') ? -1 : real_fsync(fd);
}

int fdatasync(int fd)
{
    REAL(int, fdatasync, int);
    return refused('s') ? -1 : real_fdatasync(fd);
}

int ftruncate(int fd, off_t size)
{
    REAL(int, ftruncate64, int, off_t);
    return refused('s') ? -1 : real_ftruncate64(fd, size);
}

int ftruncate64(int fd, off_t size)
{
    return ftruncate(fd, size);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    REAL(void *, mmap64, void *, size_t, int, int, int, off_t);
    if (refused('p')) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return real_mmap64(at, size, protection, flags, fd, offset);
}

void *mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return mmap(at, size, protection, flags, fd, offset);
}

/* A close that fails has closed. */
int close(int fd)
{
    REAL(int, close, int);
    int failed = refused('c'), rc = real_close(fd);
    if (failed)
        errno = state.error;
    return failed ? -1 : rc;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    REAL(int, pthread_create, pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    return refused('t') ? EAGAIN : real_pthread_create(thread, attr, run, arg);
}

/* ---- streams ---- */

static int cookie_fd(void *cookie)
{
    return (int)(intptr_t)cookie - 1;
}

static ssize_t stream_read(void *cookie, char *buf, size_t size)
{
    return read(cookie_fd(cookie), buf, size);
}

/* All of it, as libc's own streams do: parts are no errors. */
static ssize_t stream_write(void *cookie, const char *buf, size_t size)
{
    size_t done = 0;
    ssize_t n = 0;
    while (done < size && (n = write(cookie_fd(cookie), buf + done, size - done)) >= 0)
        done += (size_t)n;
    return n < 0 ? 0 : (ssize_t)size;
}

static int stream_seek(void *cookie, off64_t *at, int whence)
{
    off64_t now = lseek64(cookie_fd(cookie), *at, whence);
    *at = now < 0 ? *at : now;
    return now < 0 ? -1 : 0;
}

static int stream_close(void *cookie)
{
    return close(cookie_fd(cookie));
}

FILE *fdopen(int fd, const char *mode)
{
    static const cookie_io_functions_t functions = {stream_read, stream_write, stream_seek,
                                                    stream_close};
    return fopencookie((void *)(intptr_t)(fd + 1), mode, functions);
}

FILE *fopen(const char *path, const char *mode)
{
    int flags = strchr(mode, '+') ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
    flags |= mode[0] == 'w' ? O_CREAT | O_TRUNC : mode[0] == 'a' ? O_CREAT | O_APPEND : 0;
    flags |= strchr(mode, 'e') ? O_CLOEXEC : 0;
    flags |= strchr(mode, 'x') ? O_EXCL : 0;
    int fd = open(path, flags, 0666);
    if (fd < 0)
        return NULL;
    FILE *stream = fdopen(fd, mode);
    if (!stream)
        close(fd);
    return stream;
}

FILE *fopen64(const char *path, const char *mode)
{
    return fopen(path, mode);
}
