/*
 * Fuzz target: torch.export programs. Input that begins like a ZIP archive is read as it is;
 * any other is taken for the JSON and gets the smallest archive around it, so that the fuzzer
 * need not find ways through ZIP and deflate.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "graph/reader.h"
#include "graph/torch/zip.h"

#define NAME "models/m.json"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(uint8_t **at, uint64_t value, size_t width)
{
    for (size_t i = 0; i < width; i++)
        *(*at)++ = i < 8 ? (uint8_t)(value >> (8 * i)) : 0;
}

static void put_bytes(uint8_t **at, const void *bytes, size_t n)
{
    memcpy(*at, bytes, n);
    *at += n;
}

/* One stored entry: local header, data, central directory, end record. */
static uint8_t *wrap(const uint8_t *data, size_t size, size_t *whole)
{
    size_t name = strlen(NAME), directory = 30 + name + size;
    uint8_t *zip = calloc(1, directory + 46 + name + 22), *at = zip;
    if (!zip)
        abort();
    put(&at, 0x04034b50, 26); /* sizes stay 0, as PyTorch writes them */
    put(&at, name, 4);
    put_bytes(&at, NAME, name);
    put_bytes(&at, data, size);
    put(&at, 0x02014b50, 20);
    put(&at, size, 4);
    put(&at, size, 4);
    put(&at, name, 18);
    put_bytes(&at, NAME, name);
    put(&at, 0x06054b50, 8);
    put(&at, 1, 2);
    put(&at, 1, 2);
    put(&at, 46 + name, 4);
    put(&at, directory, 6);
    *whole = (size_t)(at - zip);
    return zip;
}

static void read_model(const uint8_t *data, size_t size)
{
    struct nrg_source source = {.bytes = data, .size = size, .name = "fuzz"};
    struct nrg_model model;
    struct nrg_error err;
    if (!nrg_model_read_bytes(&source, "pt2", &model, &err))
        nrg_model_release(&model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t whole = 0;
    if (nrg_zip_looks_like(data, size)) {
        read_model(data, size);
        return 0;
    }
    uint8_t *zip = wrap(data, size, &whole);
    read_model(zip, whole);
    free(zip);
    return 0;
}
