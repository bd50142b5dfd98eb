/*
 * Columns of int64 as bytes: the codec of everything that a recording stores in bulk.
 *
 * A chunk is a table of n rows; each column is coded on its own:
 *
 *   column    := mode u8, [presence bitmap, (n+7)/8 bytes, if mode & 0x80], body
 *   body      := varint list      mode 0: zigzag differences, for few rows
 *              | first i64, step i64, width u8, plane * width      modes 1, 2, 3
 *   mode 1      difference to the row before + step      (counters)
 *   mode 2      difference of differences
 *   mode 3      difference to the line first + i * step  (time stamps on a grid)
 *   plane     := kind u8 (0 raw, 1 zstd, 2 one repeated byte), length u32, bytes
 *
 * Planes are the bytes of equal significance of all zigzag differences, compressed apart: the
 * low one is close to noise and the high ones close to constant, and one entropy table would suit
 * neither. The encoder tries the three modes and takes the one with the fewest bits.
 * All integers are little endian. A row without a value (NRG_MISSING) is a 0 bit in the bitmap.
 *
 * The decoder trusts nothing: every length is checked, and its memory is bounded by
 * NRG_CHUNK_MAX_ROWS. Ownership: codec new, free. Errors: a negative errno.
 */
#ifndef NRG_RECORD_STORE_COLUMN_H
#define NRG_RECORD_STORE_COLUMN_H

#include <stddef.h>
#include <stdint.h>

#define NRG_CHUNK_MAX_ROWS    ((size_t)1 << 20)
#define NRG_CHUNK_MAX_COLUMNS ((size_t)4096)
/* Rows times columns: larger chunks are never written. */
#define NRG_CHUNK_MAX_CELLS ((size_t)1 << 24)

/* Keeps the compressor's memory between calls. One per thread. */
struct nrg_codec;
struct nrg_codec *nrg_codec_new(void); /* NULL when out of memory */
void nrg_codec_free(struct nrg_codec *codec);
/* Gives its memory back; it can be used again. */
void nrg_codec_trim(struct nrg_codec *codec);

/*
 * Codes n rows of n_columns columns. The result stays valid until the next call with the same
 * codec. 0 or -ENOMEM.
 */
int nrg_columns_encode(struct nrg_codec *codec, const int64_t *const *columns, size_t n_columns,
                       size_t n, const uint8_t **bytes, size_t *len);

/* Fills columns[0..n_columns), each of n elements. 0, -EBADMSG, -ENOMEM. */
int nrg_columns_decode(struct nrg_codec *codec, const uint8_t *bytes, size_t len,
                       int64_t *const *columns, size_t n_columns, size_t n);

#endif
