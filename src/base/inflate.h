/*
 * Deflate through zlib, loaded at run time: starting a measurement with `nrg run` never maps it.
 * The one place that loads it; archives of models (graph/torch/zip.h) and compressed logs (input.h)
 * use it. A loaded library is handed back with unload; NULL is accepted. Only zlib's header is used
 * at build time. A wheel has zlib inside (NRG_ZLIB_INSIDE): where it is installed there may be
 * none.
 */
#ifndef NRG_BASE_INFLATE_H
#define NRG_BASE_INFLATE_H

#include <stddef.h>
#include <stdint.h>

struct z_stream_s;

struct nrg_zlib {
    int (*init)(struct z_stream_s *, int window_bits, const char *version, int size);
    int (*step)(struct z_stream_s *, int flush);
    int (*end)(struct z_stream_s *);
};

void *nrg_inflate_load(void);
void nrg_inflate_unload(void *library);
/* Puts a function of the library into *function, NULL where it has none of that name. */
void nrg_inflate_find(void *library, const char *name, void *function, size_t size);
/* 0, or -ENOENT when the library lacks one of them. */
int nrg_inflate_functions(void *library, struct nrg_zlib *functions);

/*
 * A raw stream at once. `out` must have room for out_size + 1 bytes: the extra one shows a stream
 * that is longer than it says. 0 when exactly out_size bytes came out, -EBADMSG when not; -EFBIG
 * for sizes that zlib can't take, -ENOENT as above, -ENOMEM.
 */
int nrg_inflate(void *library, const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size);

/*
 * The other way: a gzip stream, handed out piece by piece. new, put as often as needed, finish,
 * free (NULL is accepted). `out` gets the bytes; a negative return of it stops and is returned.
 * new: NULL when zlib is not there or memory is not.
 */
struct nrg_gzip;
typedef int (*nrg_gzip_out)(void *arg, const uint8_t *bytes, size_t n);
struct nrg_gzip *nrg_gzip_new(nrg_gzip_out out, void *arg);
int nrg_gzip_put(struct nrg_gzip *gzip, const void *bytes, size_t n);
int nrg_gzip_finish(struct nrg_gzip *gzip);
void nrg_gzip_free(struct nrg_gzip *gzip);

#endif
