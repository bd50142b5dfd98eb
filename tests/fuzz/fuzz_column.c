/*
 * Fuzz target: the chunk decoder on anything, and the codec on its own output. The first two
 * bytes say how many columns and rows are claimed; whatever decodes must survive a round trip.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "record/store/column.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_COLUMNS 4
#define MAX_ROWS    1024

static void again(const int64_t *const *columns, size_t n_columns, size_t n)
{
    static int64_t cells[MAX_COLUMNS][MAX_ROWS];
    int64_t *out[MAX_COLUMNS];
    struct nrg_codec *codec = nrg_codec_new(), *reader = nrg_codec_new();
    const uint8_t *bytes;
    size_t len;
    for (size_t c = 0; c < MAX_COLUMNS; c++)
        out[c] = cells[c];
    if (nrg_columns_encode(codec, columns, n_columns, n, &bytes, &len) ||
        nrg_columns_decode(reader, bytes, len, out, n_columns, n))
        abort();
    for (size_t c = 0; c < n_columns; c++)
        if (memcmp(out[c], columns[c], n * sizeof **out))
            abort();
    nrg_codec_free(codec);
    nrg_codec_free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int64_t cells[MAX_COLUMNS][MAX_ROWS];
    int64_t *out[MAX_COLUMNS];
    if (size < 2)
        return 0;
    size_t n_columns = data[0] % MAX_COLUMNS + 1, n = data[1] * 4u % MAX_ROWS;
    struct nrg_codec *codec = nrg_codec_new();
    for (size_t c = 0; c < MAX_COLUMNS; c++)
        out[c] = cells[c];
    if (codec && !nrg_columns_decode(codec, data + 2, size - 2, out, n_columns, n))
        again((const int64_t *const *)out, n_columns, n);
    nrg_codec_free(codec);
    return 0;
}
