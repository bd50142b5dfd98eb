/*
 * Raw deflate streams through zlib, loaded at run time: starting a measurement with `nrg run`
 * never maps it (see zip.h). A loaded library is handed back with unload; NULL is accepted.
 */
#ifndef NRG_GRAPH_ZIP_INFLATE_H
#define NRG_GRAPH_ZIP_INFLATE_H

#include <stddef.h>
#include <stdint.h>

void *nrg_inflate_load(void);
void nrg_inflate_unload(void *zlib);

/* 0 when exactly out_size bytes came out, -EBADMSG otherwise, -ENOMEM. */
int nrg_inflate(void *zlib, const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size);

#endif
