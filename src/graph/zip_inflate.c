/* See zip_inflate.h. Only zlib's header is used at build time. */
#include "graph/zip_inflate.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <zlib.h>

/* POSIX lets a symbol be read as a function; ISO C has no cast for it. */
static int find(void *zlib, const char *name, void *function, size_t size)
{
    void *symbol = dlsym(zlib, name);
    memcpy(function, &symbol, size);
    return symbol ? 0 : -ENOENT;
}

void *nrg_inflate_load(void)
{
    return dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
}

void nrg_inflate_unload(void *zlib)
{
    if (zlib)
        dlclose(zlib);
}

int nrg_inflate(void *zlib, const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size)
{
    int (*init)(z_streamp, int, const char *, int);
    int (*step)(z_streamp, int);
    int (*end)(z_streamp);
    if (find(zlib, "inflateInit2_", &init, sizeof init) ||
        find(zlib, "inflate", &step, sizeof step) || find(zlib, "inflateEnd", &end, sizeof end))
        return -ENOENT;
    z_stream stream = {0};
    if (in_size > UINT_MAX || out_size >= UINT_MAX)
        return -EFBIG;
    if (init(&stream, -MAX_WBITS, ZLIB_VERSION, (int)sizeof stream) != Z_OK)
        return -ENOMEM;
    /* One byte of room beyond the stated size shows a stream that is longer than it says. */
    stream.next_in = (Bytef *)(uintptr_t)in;
    stream.avail_in = (uInt)in_size;
    stream.next_out = out;
    stream.avail_out = (uInt)out_size + 1;
    int rc = step(&stream, Z_FINISH);
    size_t made = stream.total_out;
    end(&stream);
    return rc == Z_STREAM_END && made == out_size ? 0 : -EBADMSG;
}
