/* See inflate.h: the side that packs. Few programs need it, so its functions are looked up here. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/inflate.h"
#include "base/mem.h"

#define LEVEL        6
#define MEMORY_LEVEL 8
#define PIECE        (64 * 1024)

struct nrg_gzip {
    void *library;
    int (*step)(z_stream *, int flush);
    int (*end)(z_stream *);
    z_stream stream;
    nrg_gzip_out out;
    void *arg;
    uint8_t piece[PIECE];
};

struct nrg_gzip *nrg_gzip_new(nrg_gzip_out out, void *arg)
{
    int (*init)(z_stream *, int, int, int, int, int, const char *, int) = NULL;
    struct nrg_gzip *g = nrg_calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->out = out;
    g->arg = arg;
    g->library = nrg_inflate_load();
    if (g->library) {
        nrg_inflate_find(g->library, "deflateInit2_", &init, sizeof init);
        nrg_inflate_find(g->library, "deflate", &g->step, sizeof g->step);
        nrg_inflate_find(g->library, "deflateEnd", &g->end, sizeof g->end);
    }
    if (init && g->step && g->end &&
        init(&g->stream, LEVEL, Z_DEFLATED, 16 + MAX_WBITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY,
             ZLIB_VERSION, (int)sizeof g->stream) == Z_OK)
        return g;
    g->end = NULL;
    nrg_gzip_free(g);
    return NULL;
}

/* Until all input is taken, or at the end all output given. */
static int run(struct nrg_gzip *g, int flush)
{
    int done = Z_OK, rc = 0;
    do {
        g->stream.next_out = g->piece;
        g->stream.avail_out = PIECE;
        done = g->step(&g->stream, flush);
        if (done != Z_OK && done != Z_STREAM_END && done != Z_BUF_ERROR)
            return -EIO;
        size_t n = PIECE - g->stream.avail_out;
        rc = n ? g->out(g->arg, g->piece, n) : 0;
    } while (!rc && (g->stream.avail_in || (flush == Z_FINISH && done != Z_STREAM_END)));
    return rc;
}

int nrg_gzip_put(struct nrg_gzip *g, const void *bytes, size_t n)
{
    const uint8_t *at = bytes;
    int rc = 0;
    while (!rc && n) {
        size_t part = n < (1u << 30) ? n : 1u << 30;
        g->stream.next_in = (Bytef *)(uintptr_t)at;
        g->stream.avail_in = (uInt)part;
        rc = run(g, Z_NO_FLUSH);
        at += part;
        n -= part;
    }
    return rc;
}

int nrg_gzip_finish(struct nrg_gzip *g)
{
    g->stream.next_in = NULL;
    g->stream.avail_in = 0;
    return run(g, Z_FINISH);
}

void nrg_gzip_free(struct nrg_gzip *g)
{
    if (!g)
        return;
    if (g->end)
        g->end(&g->stream);
    nrg_inflate_unload(g->library);
    free(g);
}
