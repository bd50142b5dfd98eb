/* See screen.h: a filter behind glibc's fopencookie. */
#include "cli/screen.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/secret.h"

enum { OUT_BYTES = 4096, SHOWN_BYTES = 8 };

struct guard {
    int fd;
    bool colour;          /* our own colours and progress lines pass */
    unsigned char cut[4]; /* the beginning of a character whose rest was not written yet */
    size_t n_cut;
    char out[OUT_BYTES];
    size_t n_out;
};

static int send_out(struct guard *g)
{
    for (size_t done = 0; done < g->n_out;) {
        ssize_t n = write(g->fd, g->out + done, g->n_out - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        done += (size_t)n;
    }
    g->n_out = 0;
    return 0;
}

static int put(struct guard *g, const void *bytes, size_t len)
{
    if (g->n_out + len > OUT_BYTES && send_out(g))
        return -1;
    memcpy(g->out + g->n_out, bytes, len);
    g->n_out += len;
    return 0;
}

/* Bytes of a sequence that nrg itself prints; `first`: at the beginning of what is printed. */
static size_t own_sequence(const unsigned char *p, size_t left, bool first)
{
    static const char *const sequences[] = {"\r\033[K", "\r",       "\033[1m",
                                            "\033[2m",  "\033[33m", "\033[0m"};
    for (size_t i = first ? 0 : 2; i < sizeof sequences / sizeof *sequences; i++) {
        size_t len = strlen(sequences[i]);
        if (len <= left && !memcmp(p, sequences[i], len))
            return len;
    }
    return 0;
}

/* True when the bytes may be the beginning of a character that goes on in the next write. */
static bool is_cut(const unsigned char *p, size_t left)
{
    size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc2 ? 2 : 1;
    if (left >= len)
        return false;
    for (size_t i = 1; i < left; i++)
        if ((p[i] & 0xc0) != 0x80)
            return false;
    return true;
}

/* One character or sequence at p: how many bytes it took, 0 when it is cut, -1 with errno. */
static int put_next(struct guard *g, const unsigned char *p, size_t left, bool first)
{
    char shown[SHOWN_BYTES];
    unsigned code;
    size_t own = g->colour ? own_sequence(p, left, first) : 0;
    size_t n = own ? own : nrg_utf8_len(p, left, &code);
    if (own || (n && (!nrg_is_control(code) || *p == '\n' || *p == '\t')))
        return put(g, p, n) ? -1 : (int)n;
    if (!n && is_cut(p, left))
        return 0;
    int len = n ? snprintf(shown, sizeof shown, "\\u%04x", code & 0xffff)
                : snprintf(shown, sizeof shown, "\\x%02x", *p);
    return put(g, shown, (size_t)len) ? -1 : n ? (int)n : 1;
}

static int put_all(struct guard *g, const unsigned char *bytes, size_t size)
{
    size_t at = 0;
    while (at < size) {
        size_t plain = at;
        while (plain < size && plain - at < OUT_BYTES && bytes[plain] >= 0x20 &&
               bytes[plain] < 0x7f)
            plain++;
        if (plain > at && put(g, bytes + at, plain - at))
            return -1;
        at = plain;
        int n = at < size ? put_next(g, bytes + at, size - at, !at) : 0;
        if (n < 0)
            return -1;
        if (!n && at < size) {
            g->n_cut = size - at;
            memcpy(g->cut, bytes + at, g->n_cut);
            return 0;
        }
        at += (size_t)n;
    }
    return 0;
}

/* Completes a character that was cut; how many bytes of `bytes` that took, or -1. */
static int join_cut(struct guard *g, const unsigned char *bytes, size_t size)
{
    unsigned char whole[sizeof g->cut];
    size_t had = g->n_cut, used = 0;
    memcpy(whole, g->cut, had);
    while (used < size && had + used < sizeof whole && (bytes[used] & 0xc0) == 0x80)
        whole[had + used] = bytes[used], used++;
    g->n_cut = 0;
    return put_all(g, whole, had + used) ? -1 : (int)used;
}

/* What could not be written is the stream's error, as with any other: 0 written. */
static ssize_t guard_write(void *cookie, const char *buf, size_t size)
{
    struct guard *g = cookie;
    const unsigned char *bytes = (const unsigned char *)buf;
    int used = g->n_cut ? join_cut(g, bytes, size) : 0;
    if (used < 0 || put_all(g, bytes + used, size - (size_t)used) || send_out(g)) {
        g->n_out = 0;
        return 0;
    }
    return (ssize_t)size;
}

/* Without memory for it the stream stays as it is: a run must not fail for that. */
static FILE *guarded(FILE *stream, int fd, struct guard *g)
{
    static const cookie_io_functions_t functions = {.write = guard_write};
    FILE *made = fopencookie(g, "w", functions);
    if (!made)
        return stream;
    g->fd = fd;
    g->colour = isatty(fd);
    setvbuf(made, NULL, fd == STDERR_FILENO ? _IONBF : g->colour ? _IOLBF : _IOFBF, BUFSIZ);
    return made;
}

/* The standard streams are one of each for the process and live to its end, and so do these. */
void nrg_screen_guard(void)
{
    static struct guard out, err;
    stdout = guarded(stdout, STDOUT_FILENO, &out);
    stderr = guarded(stderr, STDERR_FILENO, &err);
}

int nrg_screen_fd(FILE *stream)
{
    return stream == stdout ? STDOUT_FILENO : stream == stderr ? STDERR_FILENO : fileno(stream);
}

/*
 * Passwords go before anything is cut, because half of one is not recognised any more. Only what
 * is long needs memory for that: a message that there is none must come through.
 */
void nrg_say_as(const char *who, const char *format, va_list args)
{
    char text[4600], clean[sizeof text], *whole = NULL;
    va_list again;
    va_copy(again, args);
    bool cut = vsnprintf(text, sizeof text, format, args) >= (int)sizeof text;
    if (cut && vasprintf(&whole, format, again) < 0)
        whole = NULL;
    va_end(again);
    nrg_mask_text(clean, sizeof clean, whole ? whole : text);
    nrg_copy_clean(text, sizeof text, clean, strlen(clean));
    fprintf(stderr, "%s: %s\n", who, text);
    free(whole);
}

void nrg_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    nrg_say_as("nrg", format, args);
    va_end(args);
}
