/* See inflate.h. */
#include "base/inflate.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <zlib.h>

#ifdef NRG_ZLIB_INSIDE
typedef void (*any_function)(void);
static const struct inside {
    const char *name;
    any_function function;
} inside[] = {
    {"inflateInit2_", (any_function)inflateInit2_},
    {"inflate", (any_function)inflate},
    {"inflateEnd", (any_function)inflateEnd},
    {"deflateInit2_", (any_function)deflateInit2_},
    {"deflate", (any_function)deflate},
    {"deflateEnd", (any_function)deflateEnd},
    {"zlibVersion", (any_function)zlibVersion},
};

void *nrg_inflate_load(void)
{
    return (void *)(uintptr_t)inside;
}

void nrg_inflate_unload(void *library)
{
    (void)library;
}

void nrg_inflate_find(void *library, const char *name, void *function, size_t size)
{
    const struct inside *table = library;
    memset(function, 0, size);
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        if (!strcmp(table[i].name, name))
            memcpy(function, &table[i].function, size);
}
#else
void *nrg_inflate_load(void)
{
    return dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
}

void nrg_inflate_unload(void *library)
{
    if (library)
        dlclose(library);
}

/* POSIX lets a symbol be read as a function; ISO C has no cast for it. */
void nrg_inflate_find(void *library, const char *name, void *function, size_t size)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, size);
}
#endif

int nrg_inflate_functions(void *library, struct nrg_zlib *z)
{
    nrg_inflate_find(library, "inflateInit2_", &z->init, sizeof z->init);
    nrg_inflate_find(library, "inflate", &z->step, sizeof z->step);
    nrg_inflate_find(library, "inflateEnd", &z->end, sizeof z->end);
    return z->init && z->step && z->end ? 0 : -ENOENT;
}

int nrg_inflate(void *library, const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size)
{
    struct nrg_zlib z;
    if (nrg_inflate_functions(library, &z))
        return -ENOENT;
    z_stream stream = {0};
    if (in_size > UINT_MAX || out_size >= UINT_MAX)
        return -EFBIG;
    if (z.init(&stream, -MAX_WBITS, ZLIB_VERSION, (int)sizeof stream) != Z_OK)
        return -ENOMEM;
    /* One byte of room beyond the stated size shows a stream that is longer than it says. */
    stream.next_in = (Bytef *)(uintptr_t)in;
    stream.avail_in = (uInt)in_size;
    stream.next_out = out;
    stream.avail_out = (uInt)out_size + 1;
    int rc = z.step(&stream, Z_FINISH);
    size_t made = stream.total_out;
    z.end(&stream);
    return rc == Z_STREAM_END && made == out_size ? 0 : -EBADMSG;
}
