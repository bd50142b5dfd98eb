/*
 * ZIP archives in memory, read-only: .pt, .pt2 and .keras files. Sizes and offsets come from the
 * central directory alone (PyTorch leaves them 0 in the local headers); the local header only
 * tells where its own name and extra field end. ZIP64 is read. Stored entries are given out in
 * place, deflated ones are inflated into memory that the archive owns.
 *
 * Refused, because no model file that PyTorch writes has it: entries that overlap or reach beyond
 * the file, two entries of one name, names with "..", a leading slash, a backslash or control
 * characters, encryption, other methods, and bombs: an entry may unpack to NRG_ZIP_RATIO times its
 * packed size (above 1 MiB) and NRG_ZIP_ENTRY_MAX bytes, all of them together to NRG_ZIP_TOTAL_MAX.
 *
 * zlib is loaded when the first deflated entry is read, so that no other file needs it.
 * Functions return 0 or a negative errno. One thread per archive.
 */
#ifndef NRG_GRAPH_TORCH_ZIP_H
#define NRG_GRAPH_TORCH_ZIP_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

#define NRG_ZIP_RATIO     256
#define NRG_ZIP_ENTRY_MAX ((uint64_t)256 << 20)
#define NRG_ZIP_TOTAL_MAX ((uint64_t)512 << 20)

struct nrg_zip_entry {
    const char *name;   /* whole path, terminated, checked */
    const char *inside; /* without the root folder */
    uint64_t size, packed, header_at;
    uint64_t end_at; /* where the next entry or the directory begins */
    uint16_t method, flags;
};

struct nrg_zip {
    const uint8_t *bytes;
    size_t size;
    const char *where;             /* file name for messages */
    struct nrg_zip_entry *entries; /* sorted by `inside` */
    size_t n_entries;
    struct nrg_arena arena;
    void *zlib; /* dlopen handle, NULL until needed */
    uint64_t unpacked;
};

/* True when the bytes begin like an archive. */
int nrg_zip_looks_like(const uint8_t *bytes, size_t size);

/* The bytes must stay while the archive is open. 0 or -errno; release either way. */
int nrg_zip_open(struct nrg_zip *zip, const uint8_t *bytes, size_t size, const char *where,
                 struct nrg_error *err);
void nrg_zip_release(struct nrg_zip *zip);

/* By path inside the root folder; NULL when there is none. */
const struct nrg_zip_entry *nrg_zip_find(const struct nrg_zip *zip, const char *inside);

/* The first entry whose path inside begins so; entries that follow it in the list may, too. */
const struct nrg_zip_entry *nrg_zip_first(const struct nrg_zip *zip, const char *prefix);

/* The entry's bytes, good until release. */
int nrg_zip_read(struct nrg_zip *zip, const struct nrg_zip_entry *entry, const uint8_t **bytes,
                 size_t *size, struct nrg_error *err);

#endif
