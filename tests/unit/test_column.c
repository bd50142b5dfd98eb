/* The codec of chunks: what goes in comes out, and garbage is refused, never followed. */
#include "support/cmocka.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/store/column.h"
#include "sensors/channel.h"

#define MAX_ROWS 5000

static uint64_t dice_state;

static uint64_t dice(void)
{
    dice_state ^= dice_state << 13;
    dice_state ^= dice_state >> 7;
    dice_state ^= dice_state << 17;
    return dice_state;
}

static size_t round_trip(const int64_t *const *columns, size_t n_columns, size_t n)
{
    struct nrg_codec *writer = nrg_codec_new(), *reader = nrg_codec_new();
    const uint8_t *bytes;
    size_t len;
    int64_t *out[8];
    assert_int_equal(nrg_columns_encode(writer, columns, n_columns, n, &bytes, &len), 0);
    for (size_t c = 0; c < n_columns; c++)
        out[c] = calloc(n + 1, sizeof **out);
    assert_int_equal(nrg_columns_decode(reader, bytes, len, out, n_columns, n), 0);
    for (size_t c = 0; c < n_columns; c++) {
        assert_int_equal(memcmp(out[c], columns[c], n * sizeof **out), 0);
        free(out[c]);
    }
    nrg_codec_free(writer);
    nrg_codec_free(reader);
    return len;
}

static size_t one(const int64_t *column, size_t n)
{
    return round_trip(&column, 1, n);
}

static void extremes(void **state)
{
    static const int64_t values[] = {INT64_MIN + 1, INT64_MAX,     0,  -1, 1,
                                     INT64_MAX,     INT64_MIN + 1, 42, -42};
    int64_t many[400];
    (void)state;
    for (size_t n = 0; n <= sizeof values / sizeof *values; n++)
        one(values, n);
    for (size_t i = 0; i < 400; i++)
        many[i] = values[i % (sizeof values / sizeof *values)];
    one(many, 400);
}

static void gaps(void **state)
{
    int64_t v[200];
    (void)state;
    for (size_t n = 1; n < 200; n += 7) {
        for (size_t i = 0; i < n; i++)
            v[i] = i % 3 ? NRG_MISSING : (int64_t)i * 1000;
        one(v, n);
        v[n - 1] = NRG_MISSING;
        v[0] = NRG_MISSING;
        one(v, n);
        for (size_t i = 0; i < n; i++)
            v[i] = NRG_MISSING;
        one(v, n);
    }
}

/* Counters, grids of time and noise, alone and together, around the switch of codings. */
static void shapes(void **state)
{
    static int64_t t[MAX_ROWS], counter[MAX_ROWS], noise[MAX_ROWS], same[MAX_ROWS];
    const int64_t *const all[] = {t, counter, noise, same};
    (void)state;
    dice_state = 88172645463325252u;
    for (size_t i = 0; i < MAX_ROWS; i++) {
        t[i] = 1000000000 + (int64_t)i * 1000000 + (int64_t)(dice() % 5000);
        counter[i] = (i ? counter[i - 1] : 5) + 45000 + (int64_t)(dice() % 61);
        noise[i] = (int64_t)(dice() | 1);
        same[i] = 7;
    }
    static const size_t rows[] = {1, 2, 31, 32, 33, 34, 255, 256, 257, 1000, MAX_ROWS};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        round_trip(all, 4, rows[i]);
    assert_true(one(same, MAX_ROWS) < 64);
    assert_true(one(counter, MAX_ROWS) < MAX_ROWS); /* under a byte per value */
}

/* Every prefix is refused; nothing is read or written out of bounds (the sanitizers watch). */
static void truncated(void **state)
{
    static int64_t v[300], out_a[300], out_b[300];
    int64_t *const out[] = {out_a, out_b};
    const int64_t *const columns[] = {v, v};
    struct nrg_codec *codec = nrg_codec_new(), *reader = nrg_codec_new();
    const uint8_t *bytes;
    size_t len;
    (void)state;
    for (size_t i = 0; i < 300; i++)
        v[i] = i % 50 == 3 ? NRG_MISSING : (int64_t)(i * i * 977 % 100000);
    assert_int_equal(nrg_columns_encode(codec, columns, 2, 300, &bytes, &len), 0);
    for (size_t cut = 0; cut < len; cut++) {
        uint8_t *part = malloc(cut + 1);
        memcpy(part, bytes, cut);
        assert_int_equal(nrg_columns_decode(reader, part, cut, out, 2, 300), -EBADMSG);
        free(part);
    }
    assert_int_equal(nrg_columns_decode(reader, NULL, 0, out, 2, 300), -EBADMSG);
    assert_int_equal(nrg_columns_decode(reader, bytes, len, out, 2, 299), -EBADMSG);
    assert_int_equal(nrg_columns_decode(reader, bytes, len, out, 1, 300), -EBADMSG);
    assert_int_equal(nrg_columns_decode(reader, bytes, len, out, 2, NRG_CHUNK_MAX_ROWS + 1),
                     -EBADMSG);
    nrg_codec_free(codec);
    nrg_codec_free(reader);
}

static void garbage(void **state)
{
    static int64_t v[300], out_a[300];
    int64_t *const out[] = {out_a};
    const int64_t *const columns[] = {v};
    struct nrg_codec *codec = nrg_codec_new(), *reader = nrg_codec_new();
    const uint8_t *bytes;
    size_t len;
    (void)state;
    dice_state = 1234567;
    for (size_t i = 0; i < 300; i++)
        v[i] = (int64_t)(dice() % 100000);
    assert_int_equal(nrg_columns_encode(codec, columns, 1, 300, &bytes, &len), 0);
    for (int round = 0; round < 3000; round++) {
        uint8_t *bad = malloc(len);
        memcpy(bad, bytes, len);
        for (int i = 0; i < 1 + round % 4; i++)
            bad[dice() % len] = (uint8_t)dice();
        int rc = nrg_columns_decode(reader, bad, len, out, 1, 300);
        assert_true(rc == 0 || rc == -EBADMSG);
        free(bad);
    }
    nrg_codec_free(codec);
    nrg_codec_free(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extremes),  cmocka_unit_test(gaps),    cmocka_unit_test(shapes),
        cmocka_unit_test(truncated), cmocka_unit_test(garbage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
