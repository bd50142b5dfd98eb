/* See internal.h. */
#include <errno.h>
#include <string.h>

#include "report/page/internal.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put_three(FILE *out, const uint8_t *b, size_t n)
{
    unsigned bits = (unsigned)b[0] << 16 | (n > 1 ? (unsigned)b[1] << 8 : 0) | (n > 2 ? b[2] : 0);
    char text[4] = {digits[bits >> 18], digits[bits >> 12 & 63],
                    n > 1 ? digits[bits >> 6 & 63] : '=', n > 2 ? digits[bits & 63] : '='};
    fwrite(text, 1, 4, out);
}

static int put_packed(void *arg, const uint8_t *bytes, size_t n)
{
    struct nrg_page_blob *b = arg;
    for (size_t i = 0; i < n; i++) {
        b->left[b->n_left++] = bytes[i];
        if (b->n_left < 3)
            continue;
        put_three(b->out, b->left, 3);
        b->n_left = 0;
    }
    return ferror(b->out) ? -EIO : 0;
}

int nrg_page_blob_open(struct nrg_page_blob *b, FILE *out, struct nrg_error *err)
{
    *b = (struct nrg_page_blob){.out = out};
    b->gzip = nrg_gzip_new(put_packed, b);
    return b->gzip ? 0
                   : nrg_fail(err, -ENOENT, NULL,
                              "the page needs libz.so.1 to be packed: install "
                              "zlib1g");
}

int nrg_page_blob_put(struct nrg_page_blob *b, const void *bytes, size_t n)
{
    b->size += n;
    return n ? nrg_gzip_put(b->gzip, bytes, n) : 0;
}

int nrg_page_blob_align(struct nrg_page_blob *b)
{
    static const uint8_t zeros[8];
    return nrg_page_blob_put(b, zeros, (8 - b->size % 8) % 8);
}

int nrg_page_blob_close(struct nrg_page_blob *b)
{
    int rc = b->gzip ? nrg_gzip_finish(b->gzip) : 0;
    if (!rc && b->n_left)
        put_three(b->out, b->left, b->n_left);
    nrg_gzip_free(b->gzip);
    return rc;
}
