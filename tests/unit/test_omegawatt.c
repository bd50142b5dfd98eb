/*
 * OmegaWatt frames, built here byte by byte: values, every cut, garbage between and inside,
 * marks in data, lost bytes, wrong checksums and sums, all readings of length and checksum, stamps.
 */
#include "support/cmocka.h"
#include "support/mains.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sensors/meter/decoders.h"

#define FRAME 77 /* bytes, of six inputs */

struct heard {
    struct nrg_meter_out out; /* first: callbacks cast back */
    size_t n, refused, harmless, refused_bytes;
    double power1_sum, values[64];
    int64_t sent_ns, average_ns;
    char why[64], first_why[64];
};

static void on_reading(struct nrg_meter_out *out, const struct nrg_meter_reading *r)
{
    struct heard *h = (struct heard *)out;
    assert_true(r->n_values <= 64);
    memcpy(h->values, r->values, r->n_values * sizeof *r->values);
    h->sent_ns = r->sent_ns;
    h->average_ns = r->average_ns;
    h->power1_sum += r->values[3];
    h->n++;
}

static void on_refused(struct nrg_meter_out *out, const void *bytes, size_t n, const char *why,
                       bool harmless)
{
    struct heard *h = (struct heard *)out;
    volatile uint8_t last = n ? ((const uint8_t *)bytes)[n - 1] : 0; /* a sanitizer looks */
    (void)last;
    h->refused += !harmless;
    h->harmless += harmless;
    h->refused_bytes += n;
    snprintf(h->why, sizeof h->why, "%s", why);
    if (!*h->first_why)
        snprintf(h->first_why, sizeof h->first_why, "%s", why);
}

static struct heard hear(void)
{
    return (struct heard){.out = {.reading = on_reading, .refused = on_refused}};
}

static void *decoder_new(const char *text, size_t *n_fields)
{
    struct nrg_uri uri;
    struct nrg_error err;
    struct nrg_meter_field fields[NRG_METER_FIELDS];
    void *state = NULL;
    assert_int_equal(nrg_uri_parse(&uri, text, &err), 0);
    assert_int_equal(
        nrg_meter_decoder_new(&nrg_decoder_omegawatt, &uri, fields, n_fields, &state, &err), 0);
    assert_int_equal(nrg_uri_finish(&uri, &err), 0);
    return state;
}

static void put_u32(uint8_t *p, uint32_t x)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(x >> 8 * i);
}

static void put_f32(uint8_t *p, double x)
{
    float value = (float)x;
    uint32_t bits;
    memcpy(&bits, &value, 4);
    put_u32(p, bits);
}

/* `from`: where the checksum begins: 6 the body, 4 the length, 0 the mark. */
static void sign(uint8_t *frame, size_t size, size_t from)
{
    uint8_t sum = 0;
    for (size_t i = from; i < size - 1; i++)
        sum ^= frame[i];
    frame[size - 1] = sum;
}

/* 500 samples of 10 ms; input k has k A and 230 k W more than `power_w`. */
static size_t make(uint8_t *frame, unsigned modules, double power_w, size_t extra, size_t from)
{
    const uint32_t n = 500;
    size_t size = 28 + modules * 48 + 1, length = size - 7 + extra;
    memset(frame, 0, size);
    memcpy(frame, "\xfe\xfd\xfc\xfb", 4);
    frame[4] = (uint8_t)length;
    frame[5] = (uint8_t)(length >> 8);
    frame[6] = 7;
    put_u32(frame + 8, 42949673); /* 10 ms */
    put_u32(frame + 12, n);
    for (int i = 0; i < 3; i++)
        put_f32(frame + 16 + 4 * i, 230.0 * 230 * n);
    for (unsigned k = 0; k < modules * 6; k++) {
        uint8_t *module = frame + 28 + k / 6 * 48;
        put_f32(module + 4 * (k % 6), (double)k * k * n);
        put_f32(module + 24 + 4 * (k % 6), (power_w + 230.0 * k) * n);
    }
    sign(frame, size, from);
    return size;
}

static void assert_near(double is, double should)
{
    if (!(fabs(is - should) <= 1e-5 * fabs(should) + 1e-9))
        fail_msg("%.9g is not %.9g", is, should);
}

static void frame_values(void **state)
{
    uint8_t frame[512];
    size_t n_fields;
    struct heard h = hear();
    void *decoder = decoder_new("omegawatt:/dev/ttyUSB0", &n_fields);
    (void)state;
    assert_int_equal(n_fields, 15);
    size_t size = make(frame, 1, 100, 0, 6);
    assert_int_equal(size, FRAME);
    nrg_decoder_omegawatt.feed(decoder, frame, size, 1000000, 100, &h.out);
    assert_int_equal(h.n, 1);
    for (int i = 0; i < 3; i++)
        assert_near(h.values[i], 230);
    for (int k = 0; k < 6; k++) {
        assert_near(h.values[3 + 2 * k], 100 + 230.0 * k);
        assert_near(h.values[4 + 2 * k], k);
    }
    assert_int_equal(h.sent_ns, 1000000 - FRAME * 100);
    assert_in_range(h.average_ns, 9999999, 10000001);
    free(decoder);
}

static void several_modules(void **state)
{
    uint8_t frame[512];
    size_t n_fields;
    struct heard h = hear();
    void *decoder = decoder_new("omegawatt:x?nb=14", &n_fields);
    (void)state;
    assert_int_equal(n_fields, 3 + 28);
    size_t size = make(frame, 3, -50, 0, 4);
    nrg_decoder_omegawatt.feed(decoder, frame, size, 0, 0, &h.out);
    assert_int_equal(h.n, 1);
    assert_near(h.values[3], -50);
    assert_near(h.values[3 + 26], -50 + 230.0 * 13);
    assert_near(h.values[4 + 26], 13);
    free(decoder);
}

/* Whatever the length counts and wherever the checksum begins, as long as frames agree. */
static void readings_of_the_description(void **state)
{
    static const size_t from[] = {6, 4, 0};
    (void)state;
    for (size_t extra = 0; extra <= 7; extra++) {
        for (size_t s = 0; s < 3; s++) {
            uint8_t frame[FRAME];
            size_t n_fields;
            struct heard h = hear();
            void *decoder = decoder_new("omegawatt:x", &n_fields);
            for (int i = 0; i < 20; i++) {
                make(frame, 1, 10.0 * i, extra, from[s]);
                nrg_decoder_omegawatt.feed(decoder, frame, FRAME, 0, 0, &h.out);
            }
            assert_int_equal(h.n, 20);
            make(frame, 1, 5, extra, from[(s + 1) % 3]); /* not the one agreed on */
            nrg_decoder_omegawatt.feed(decoder, frame, FRAME, 0, 0, &h.out);
            assert_int_equal(h.n, 20);
            free(decoder);
        }
    }
}

static void any_cut(void **state)
{
    uint8_t stream[10 * FRAME];
    size_t n_fields;
    (void)state;
    for (int i = 0; i < 10; i++)
        make(stream + i * FRAME, 1, i, 0, 6);
    for (size_t piece = 1; piece <= 2 * FRAME; piece++) {
        struct heard h = hear();
        void *decoder = decoder_new("omegawatt:x?nb=6", &n_fields);
        for (size_t at = 0; at < sizeof stream; at += piece) {
            size_t n = sizeof stream - at < piece ? sizeof stream - at : piece;
            nrg_decoder_omegawatt.feed(decoder, stream + at, n, 0, 0, &h.out);
        }
        assert_int_equal(h.n, 10);
        assert_near(h.power1_sum, 45);
        assert_int_equal(h.refused + h.harmless, 0);
        free(decoder);
    }
}

/* A cut frame, then a good one right behind; marks inside of garbage; nothing good is lost. */
static void garbage_hides_nothing(void **state)
{
    uint8_t good[FRAME], stream[8 * FRAME];
    size_t n_fields;
    (void)state;
    make(good, 1, 1, 0, 6);
    for (size_t lost = 1; lost < FRAME; lost++) {
        struct heard h = hear();
        void *decoder = decoder_new("omegawatt:x", &n_fields);
        size_t n = 0;
        for (int i = 0; i < 3; i++, n += FRAME)
            memcpy(stream + n, good, FRAME);
        memcpy(stream + n, good, FRAME - lost); /* its end is missing */
        n += FRAME - lost;
        memcpy(stream + n, good, FRAME);
        n += FRAME;
        memcpy(stream + n, "\xfe\xfd\xfc\xfb\x46\0\xfe\xfd\xfc", 9); /* false marks */
        n += 9;
        memcpy(stream + n, good, FRAME);
        n += FRAME;
        nrg_decoder_omegawatt.feed(decoder, stream, n, 0, 0, &h.out);
        nrg_decoder_omegawatt.feed(decoder, good, FRAME, 0, 0, &h.out);
        nrg_decoder_omegawatt.feed(decoder, good, FRAME, 0, 0, &h.out);
        assert_int_equal(h.n, 7);
        assert_true(h.refused >= 2);
        free(decoder);
    }
}

/* Noise on one byte in a hundred: what passes is right, what is whole passes. */
static void noisy_line(void **state)
{
    uint64_t random = 4711;
    size_t n_fields, whole = 0;
    struct heard h = hear();
    void *decoder = decoder_new("omegawatt:x", &n_fields);
    (void)state;
    for (int i = 0; i < 4000; i++) {
        uint8_t frame[FRAME];
        bool hit = false;
        make(frame, 1, 100, 0, 6);
        for (size_t k = 0; k < FRAME; k++) {
            if (mains_random(&random) > .98) {
                uint8_t noise = (uint8_t)(128 * (1 + mains_random(&random)));
                hit |= noise != 0;
                frame[k] ^= noise;
            }
        }
        whole += !hit;
        nrg_decoder_omegawatt.feed(decoder, frame, FRAME, 0, 0, &h.out);
    }
    assert_true(whole > 1000);
    assert_true(h.n >= whole && h.n < whole + 40); /* an exclusive or misses one in 256 */
    assert_true(h.refused >= 4000 - h.n);
    free(decoder);
}

static void joining_in_the_middle(void **state)
{
    uint8_t frame[FRAME];
    size_t n_fields;
    struct heard h = hear();
    void *decoder = decoder_new("omegawatt:x", &n_fields);
    (void)state;
    make(frame, 1, 100, 0, 6);
    nrg_decoder_omegawatt.feed(decoder, frame + 30, FRAME - 30, 0, 0, &h.out);
    nrg_decoder_omegawatt.feed(decoder, frame, FRAME, 0, 0, &h.out);
    assert_int_equal(h.n, 1);
    assert_int_equal(h.refused, 0);
    assert_int_equal(h.harmless, 1);
    nrg_decoder_omegawatt.feed(decoder, frame, 40, 0, 0, &h.out);
    nrg_decoder_omegawatt.reset(decoder);
    nrg_decoder_omegawatt.feed(decoder, frame, FRAME, 0, 0, &h.out);
    assert_int_equal(h.n, 2);
    assert_int_equal(h.refused, 0);
    free(decoder);
}

static void impossible_frames(void **state)
{
    uint8_t frame[FRAME];
    size_t n_fields;
    struct heard h = hear();
    void *decoder = decoder_new("omegawatt:x", &n_fields);
    (void)state;
    make(frame, 1, 100, 0, 6);
    frame[40] ^= 1;
    nrg_decoder_omegawatt.feed(decoder, frame, FRAME, 0, 0, &h.out);
    assert_string_equal(h.why, "wrong checksum");
    make(frame, 1, 100, 0, 6);
    put_u32(frame + 12, 0);
    sign(frame, FRAME, 6);
    nrg_decoder_omegawatt.feed(decoder, frame, FRAME, 0, 0, &h.out);
    assert_string_equal(h.why, "a frame of no samples");
    make(frame, 1, NAN, 0, 6);
    nrg_decoder_omegawatt.feed(decoder, frame, FRAME, 0, 0, &h.out);
    assert_string_equal(h.why, "sums that are not numbers");
    make(frame, 1, INFINITY, 0, 6);
    nrg_decoder_omegawatt.feed(decoder, frame, FRAME, 0, 0, &h.out);
    make(frame, 1, 100, 0, 6);
    put_f32(frame + 16, -1);
    sign(frame, FRAME, 6);
    nrg_decoder_omegawatt.feed(decoder, frame, FRAME, 0, 0, &h.out);
    assert_string_equal(h.why, "sums that are not numbers");
    assert_int_equal(h.n, 0);
    assert_int_equal(h.refused, 5);
    assert_int_equal(h.refused_bytes, 5 * FRAME);
    free(decoder);
}

/* More or fewer modules than nb= says: said, not guessed. */
static void another_box(void **state)
{
    uint8_t frame[512];
    size_t n_fields;
    struct heard h = hear();
    void *decoder = decoder_new("omegawatt:x?nb=6", &n_fields);
    (void)state;
    size_t size = make(frame, 2, 100, 0, 6);
    for (int i = 0; i < 5; i++)
        nrg_decoder_omegawatt.feed(decoder, frame, size, 0, 0, &h.out);
    assert_int_equal(h.n, 0);
    assert_true(h.refused >= 5);
    assert_true(h.refused_bytes <= 5 * size);
    assert_string_equal(h.first_why, "a frame of another length: is nb= right?");
    free(decoder);
}

/* Another baud rate: nothing but garbage, told in pieces while it comes. */
static void nothing_but_garbage(void **state)
{
    uint64_t random = 5;
    size_t n_fields;
    struct heard h = hear();
    void *decoder = decoder_new("omegawatt:x?nb=30", &n_fields);
    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint8_t byte = (uint8_t)(128 * (1 + mains_random(&random)));
        nrg_decoder_omegawatt.feed(decoder, &byte, 1, 0, 0, &h.out);
    }
    assert_int_equal(h.n, 0);
    assert_true(h.refused > 50);
    assert_true(h.refused_bytes > 19000 && h.refused_bytes <= 20000);
    free(decoder);
}

static void inputs_are_checked(void **state)
{
    struct nrg_uri uri;
    struct nrg_error err;
    struct nrg_meter_field fields[NRG_METER_FIELDS];
    size_t n_fields;
    void *decoder = NULL;
    (void)state;
    assert_int_equal(nrg_uri_parse(&uri, "omegawatt:x?nb=31", &err), 0);
    assert_true(
        nrg_meter_decoder_new(&nrg_decoder_omegawatt, &uri, fields, &n_fields, &decoder, &err) < 0);
    assert_null(decoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frame_values),
        cmocka_unit_test(several_modules),
        cmocka_unit_test(readings_of_the_description),
        cmocka_unit_test(any_cut),
        cmocka_unit_test(garbage_hides_nothing),
        cmocka_unit_test(noisy_line),
        cmocka_unit_test(joining_in_the_middle),
        cmocka_unit_test(impossible_frames),
        cmocka_unit_test(another_box),
        cmocka_unit_test(nothing_but_garbage),
        cmocka_unit_test(inputs_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
