/* See mem.h. */
#include "base/mem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local bool lacking;

void nrg_memory_lacked(void)
{
    lacking = true;
}

bool nrg_memory_is_lacking(void)
{
    return lacking;
}

void *nrg_calloc(size_t n, size_t size)
{
    void *memory = calloc(n, size);
    if (!memory)
        nrg_memory_lacked();
    return memory;
}

int nrg_reserve(void *items, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap)
        return 0;
    size_t want = *cap ? *cap : 8;
    while (want < need) {
        if (want > SIZE_MAX / 2 / size)
            return -ENOMEM;
        want *= 2;
    }
    void *old, *grown;
    memcpy(&old, items, sizeof old);
    grown = realloc(old, want * size);
    if (!grown) {
        nrg_memory_lacked();
        return -ENOMEM;
    }
    memcpy(items, &grown, sizeof grown);
    *cap = want;
    return 0;
}

int nrg_str_add(struct nrg_str *s, const char *text, size_t len)
{
    int rc = nrg_reserve(&s->text, &s->cap, s->len + len + 1, 1);
    if (rc)
        return rc;
    memcpy(s->text + s->len, text, len);
    s->len += len;
    s->text[s->len] = '\0';
    return 0;
}

int nrg_str_addf(struct nrg_str *s, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int len = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    int rc = len < 0 ? -EINVAL : nrg_reserve(&s->text, &s->cap, s->len + (size_t)len + 1, 1);
    if (!rc) {
        vsnprintf(s->text + s->len, (size_t)len + 1, fmt, again);
        s->len += (size_t)len;
    }
    va_end(again);
    return rc;
}

void nrg_str_release(struct nrg_str *s)
{
    free(s->text);
    *s = (struct nrg_str){0};
}

void nrg_copy(char *dst, size_t size, const char *src)
{
    size_t len = strnlen(src, size - 1);
    memmove(dst, src, len);
    dst[len] = '\0';
}

size_t nrg_utf8_len(const unsigned char *p, size_t left, unsigned *code)
{
    static const unsigned min_of[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = p[0] < 0x80 ? 1 : p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc2 ? 2 : 0;
    *code = p[0];
    if (len < 2)
        return len;
    if (len > left || p[0] > 0xf4)
        return 0;
    *code = p[0] & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (p[i] & 0x3fu);
    }
    return *code < min_of[len] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000) ? 0 : len;
}

bool nrg_is_control(unsigned code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e ||
           code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

int nrg_copy_whole(char *dst, size_t size, const char *src)
{
    bool fits = strlen(src) < size;
    nrg_copy(dst, size, fits ? src : "");
    return fits ? 0 : -ENAMETOOLONG;
}

void nrg_copy_clean(char *dst, size_t size, const char *src, size_t len)
{
    size_t out = 0;
    for (size_t i = 0; i < len;) {
        const unsigned char *p = (const unsigned char *)src + i;
        unsigned code;
        size_t n = nrg_utf8_len(p, len - i, &code);
        bool bad = !n || nrg_is_control(code);
        if (out + (bad ? 1 : n) >= size)
            break;
        if (bad)
            dst[out++] = n && (*p == '\n' || *p == '\t' || *p == '\0') ? ' ' : '?';
        else
            memmove(dst + out, p, n);
        out += bad ? 0 : n;
        i += n ? n : 1;
    }
    while (out && dst[out - 1] == ' ')
        out--;
    dst[out] = '\0';
}
