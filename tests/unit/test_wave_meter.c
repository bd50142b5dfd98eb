/*
 * The waveform meter: bytes of WAV, CSV, plain and industrial I/O samples to readings. The truth
 * comes from support/mains.c and from samples written here byte by byte; every stream is also
 * given in odd pieces, which must change nothing.
 */
#include "support/cmocka.h"
#include "support/mains.h"
#include "support/tree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sensors/meter/decoders.h"
#include "sensors/waveform/internal.h"

#define READINGS 512
#define FIELDS   40
#define RATE     4000

struct heard {
    struct nrg_meter_out out; /* first: callbacks cast back */
    size_t n, refused, harmless;
    char why[128];
    struct {
        int64_t sent_ns, average_ns;
        double values[FIELDS];
    } of[READINGS];
};

enum { VOLTAGE, FREQUENCY, POWER, ENERGY, CURRENT, APPARENT, FACTOR };

static void on_reading(struct nrg_meter_out *out, const struct nrg_meter_reading *reading)
{
    struct heard *h = (struct heard *)out;
    assert_true(h->n < READINGS && reading->n_values <= FIELDS);
    h->of[h->n].sent_ns = reading->sent_ns;
    h->of[h->n].average_ns = reading->average_ns;
    memcpy(h->of[h->n++].values, reading->values, reading->n_values * sizeof(double));
}

static void on_refused(struct nrg_meter_out *out, const void *bytes, size_t n, const char *why,
                       bool harmless)
{
    struct heard *h = (struct heard *)out;
    (void)bytes;
    (void)n;
    h->refused += !harmless;
    h->harmless += harmless;
    if (h->refused == 1 && !harmless) /* the first */
        snprintf(h->why, sizeof h->why, "%s", why);
}

static struct heard *heard_new(void)
{
    struct heard *h = calloc(1, sizeof *h);
    assert_non_null(h);
    h->out = (struct nrg_meter_out){.reading = on_reading, .refused = on_refused};
    return h;
}

static void *decoder_new(const char *text, size_t *n_fields)
{
    struct nrg_uri uri;
    struct nrg_error err = {0};
    struct nrg_meter_field fields[NRG_METER_FIELDS];
    void *state = NULL;
    char line[512];
    if (nrg_uri_parse(&uri, text, &err) ||
        nrg_meter_decoder_new(&nrg_decoder_waveform, &uri, fields, n_fields, &state, &err) ||
        nrg_uri_finish(&uri, &err))
        fail_msg("%s", nrg_error_text(&err, line, sizeof line));
    return state;
}

static void assert_refused_uri(const char *text, const char *reason)
{
    struct nrg_uri uri;
    struct nrg_error err = {0};
    struct nrg_meter_field fields[NRG_METER_FIELDS];
    size_t n_fields;
    void *state = NULL;
    assert_int_equal(nrg_uri_parse(&uri, text, &err), 0);
    assert_int_equal(
        nrg_meter_decoder_new(&nrg_decoder_waveform, &uri, fields, &n_fields, &state, &err),
        -EINVAL);
    if (!strstr(err.what, reason))
        fail_msg("'%s' does not say '%s'", err.what, reason);
}

/* Whole, or in pieces of random size; a second per 4000 frames would be live, here it is at once.
 */
static struct heard *decode(const char *uri, const void *bytes, size_t n, bool in_pieces)
{
    struct heard *h = heard_new();
    size_t n_fields, done = 0;
    void *state = decoder_new(uri, &n_fields);
    uint64_t random = 1234567;
    while (done < n) {
        size_t piece = in_pieces ? 1 + (size_t)(9 * (1 + mains_random(&random))) : n;
        piece = piece < n - done ? piece : n - done;
        nrg_decoder_waveform.feed(state, (const uint8_t *)bytes + done, piece, 1000, 0, &h->out);
        done += piece;
    }
    nrg_decoder_waveform.end(state, 1000, &h->out);
    free(state);
    return h;
}

static void assert_near(double is, double should, double share)
{
    if (!(fabs(is - should) <= share * fabs(should)))
        fail_msg("%.9g is not within %g %% of %.9g", is, share * 100, should);
}

/* The last counter is that of the end. */
static double energy_of(const struct heard *h)
{
    assert_true(h->n > 0);
    assert_in_range(h->of[h->n - 1].average_ns, 0, 1);
    return h->of[h->n - 1].values[ENERGY];
}

struct bytes {
    uint8_t *at;
    size_t n, room;
};

/* Grows in large steps: a sanitizer copies at every realloc, and minutes went into that. */
static void put(struct bytes *b, uint64_t value, unsigned size, bool big)
{
    if (b->n + size > b->room) {
        b->room = 2 * (b->n + size);
        b->at = realloc(b->at, b->room);
    }
    assert_non_null(b->at);
    for (unsigned i = 0; i < size; i++)
        b->at[b->n++] = (uint8_t)(value >> 8 * (big ? size - 1 - i : i));
}

static void put_text(struct bytes *b, const char *text)
{
    for (; *text; text++)
        put(b, (uint8_t)*text, 1, false);
}

static void put_float(struct bytes *b, double value, unsigned size)
{
    float small = (float)value;
    uint32_t u32;
    uint64_t u64;
    memcpy(&u32, &small, 4);
    memcpy(&u64, &value, 8);
    put(b, size == 4 ? u32 : u64, size, false);
}

struct wav_kind {
    unsigned tag, bits;
    bool extensible, with_list;
    uint32_t data_size; /* 0: the true one */
};

static void put_format(struct bytes *b, const struct wav_kind *kind, unsigned channels)
{
    unsigned frame = channels * kind->bits / 8;
    put_text(b, "fmt ");
    put(b, kind->extensible ? 40 : 16, 4, false);
    put(b, kind->extensible ? 0xfffe : kind->tag, 2, false);
    put(b, channels, 2, false);
    put(b, RATE, 4, false);
    put(b, RATE * frame, 4, false);
    put(b, frame, 2, false);
    put(b, kind->bits, 2, false);
    if (!kind->extensible)
        return;
    put(b, 22, 2, false);
    put(b, kind->bits, 2, false);
    put(b, 3, 4, false);
    put(b, kind->tag, 2, false);
    for (int i = 0; i < 14; i++)
        put(b, 0, 1, false);
}

/* Three channels: current, nothing, voltage. One count is 1/1000 of full scale or better. */
static struct bytes wav_of(const struct wav_kind *kind, unsigned frames, double *v_count,
                           double *i_count)
{
    struct bytes b = {0};
    struct mains mains;
    double full = kind->tag == 3 ? 1 : ldexp(1, (int)kind->bits - 1), v, i;
    *v_count = 400 / full;
    *i_count = 6 / full;
    mains_init(&mains, RATE);
    put_text(&b, "RIFF");
    put(&b, 0x7fffffff, 4, false);
    put_text(&b, "WAVE");
    if (kind->with_list) {
        put_text(&b, "LIST");
        put(&b, 5, 4, false);
        put_text(&b, "odd..X"); /* five, and the pad */
    }
    put_format(&b, kind, 3);
    put_text(&b, "data");
    put(&b, kind->data_size ? kind->data_size : frames * 3 * kind->bits / 8, 4, false);
    for (unsigned k = 0; k < frames; k++) {
        mains_next(&mains, &v, &i);
        const double row[] = {i / *i_count, 0, v / *v_count};
        for (int c = 0; c < 3; c++) {
            if (kind->tag == 3)
                put_float(&b, row[c], kind->bits / 8);
            else
                put(&b, (uint64_t)(llround(row[c]) + (kind->bits == 8 ? 128 : 0)), kind->bits / 8,
                    false);
        }
    }
    return b;
}

static void wav_files(void **state)
{
    static const struct wav_kind kinds[] = {
        {1, 16, false, false, 0},        {1, 24, false, true, 0}, {1, 32, true, true, 0},
        {3, 32, false, false, 0},        {3, 64, true, true, 0},  {1, 16, false, false, 0xffffffff},
        {1, 16, true, true, 0x7ffff024}, {1, 8, false, false, 0},
    };
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        char uri[256];
        double v_count, i_count;
        struct bytes b = wav_of(&kinds[k], 3 * RATE, &v_count, &i_count);
        snprintf(uri, sizeof uri, "waveform:x.wav?v=3&i=1&vcal=%.12g&ical=%.12g", v_count, i_count);
        struct heard *whole = decode(uri, b.at, b.n, false), *cut = decode(uri, b.at, b.n, true);
        double share = kinds[k].bits == 8 ? .03 : .002;
        assert_int_equal(whole->refused, 0);
        assert_true(whole->n >= 14);
        assert_near(energy_of(whole), 230 * 3, share);
        assert_near(whole->of[3].values[VOLTAGE], 230, share);
        assert_near(whole->of[3].values[CURRENT], 1, share);
        assert_near(whole->of[3].values[APPARENT], 230, share);
        assert_near(whole->of[3].values[FACTOR], 1, share);
        assert_near(whole->of[3].values[FREQUENCY], 50, share);
        assert_near((double)whole->of[3].average_ns, 1e8, .002);
        assert_int_equal(cut->n, whole->n);
        for (size_t i = 0; i < cut->n; i++)
            assert_memory_equal(cut->of[i].values, whole->of[i].values, sizeof whole->of[i].values);
        free(b.at);
        free(whole);
        free(cut);
    }
}

/* Samples stop where the header says; what follows is not a sample. */
static void wav_with_a_tail(void **state)
{
    static const struct wav_kind kind = {1, 16, false, false, 0};
    double v_count, i_count;
    char uri[256];
    struct bytes b = wav_of(&kind, RATE, &v_count, &i_count);
    (void)state;
    put_text(&b, "LIST");
    put(&b, 4000, 4, false);
    for (int i = 0; i < 1000; i++)
        put(&b, 0x7fff7fff, 4, false);
    snprintf(uri, sizeof uri, "waveform:x.wav?v=3&i=1&vcal=%.12g&ical=%.12g", v_count, i_count);
    struct heard *h = decode(uri, b.at, b.n, true);
    assert_near(energy_of(h), 230, .002);
    assert_int_equal(h->refused, 0);
    free(h);
    free(b.at);
}

static void broken_wavs(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *why;
    } cases[] = {
        {"this is no WAV file at all", 26, "no WAV header"},
        {"RIFF\xff\xff\xff\xffWAVEdata\x10\0\0\0................", 36, "before their format"},
        {"RIFF\0\0\0\0WAVEfmt \x04\0\0\0....", 24, "too short"},
        {"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\0\0\x40\x1f\0\0......\x10\0data", 40, "no channels"},
        {"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x02\0\x40\x1f\0\0......\x40\0data", 40,
         "neither PCM"},
        {"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x55\0\x02\0\x40\x1f\0\0......\x10\0data", 40,
         "neither PCM"},
        {"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0......\x10\0data\0\0\0\0....", 48,
         "fewer channels"},
        {"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x02\0\0\0\0\0......\x10\0data\0\0\0\0....", 48,
         "a rate below"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct heard *h = decode("waveform:-", cases[i].bytes, cases[i].n, false);
        assert_int_equal(h->n, 0);
        assert_true(h->refused >= 1);
        if (!strstr(h->why, cases[i].why))
            fail_msg("'%s' does not say '%s'", h->why, cases[i].why);
        free(h);
    }
}

static struct bytes csv_of(const char *header, const char *format, bool with_time, unsigned rows)
{
    struct bytes b = {0};
    struct mains mains;
    double v, i;
    char line[128];
    mains_init(&mains, RATE);
    put_text(&b, header);
    for (unsigned k = 0; k < rows; k++) {
        mains_next(&mains, &v, &i);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        if (with_time)
            snprintf(line, sizeof line, format, k / (double)RATE, v, i);
        else
            snprintf(line, sizeof line, format, v, i);
#pragma GCC diagnostic pop
        put_text(&b, line);
    }
    return b;
}

static void csv_files(void **state)
{
    static const struct {
        const char *uri, *header, *format;
        bool with_time;
    } cases[] = {
        {"waveform:x.csv?rate=4000&clock=samples", "", "%.4f,%.6f\n", false},
        {"waveform:x.csv?rate=4000", "# scope\nu,i\r\n", "%.4f,%.6f\r\n", false},
        {"waveform:x?format=csv&time=1&v=2&i=3&clock=samples", "", "%.5f;%.4f;%.6f\n", true},
        {"waveform:x.csv?time=seconds&v=Voltage (V)&i=amps", "seconds, \"Voltage (V)\", AMPS\n",
         "%.6f, %.4f, %.6f\n", true},
        {"waveform:x.tsv?rate=4000&v=2&i=3", "t v i\n", "%.6f  %.4f %.6f\n", true},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct bytes b = csv_of(cases[k].header, cases[k].format, cases[k].with_time, 2 * RATE);
        struct heard *whole = decode(cases[k].uri, b.at, b.n, false);
        struct heard *cut = decode(cases[k].uri, b.at, b.n, true);
        assert_int_equal(whole->refused, 0);
        assert_near(energy_of(whole), 230 * 2, .002);
        assert_near(whole->of[2].values[FREQUENCY], 50, .001);
        assert_int_equal(cut->n, whole->n);
        free(b.at);
        free(whole);
        free(cut);
    }
}

/* A short file with a column of seconds, rows that are no numbers, names that are not there. */
static void odd_csv(void **state)
{
    (void)state;
    struct bytes b = csv_of("t,v,i\n", "%.6f,%.4f,%.6f\n", true, 100);
    struct heard *h = decode("waveform:x.csv?time=t&v=v&i=i&clock=samples", b.at, b.n, false);
    assert_int_equal(h->n, 1);
    assert_int_equal(h->harmless, 1);
    free(h);
    h = decode("waveform:x.csv?time=t&v=volt&i=i", b.at, b.n, false);
    assert_int_equal(h->n, 0);
    assert_string_equal(h->why, "no column of such a name");
    free(h);
    put_text(&b, "0.1,oops,3\n1,2\n,,\n\xff\xfe\n");
    h = decode("waveform:x.csv?rate=4000&v=v&i=i", b.at, b.n, false);
    assert_int_equal(h->n, 1);
    assert_int_equal(h->refused, 4);
    free(h);
    free(b.at);
    b = csv_of("", "1.0,%.4f,%.6f\n", false, 600);
    h = decode("waveform:x.csv?time=1&v=2&i=3", b.at, b.n, false);
    assert_int_equal(h->n, 0);
    assert_string_equal(h->why, "the column of seconds does not grow");
    free(h);
    free(b.at);
}

static void types_of_samples(void **state)
{
    static const struct {
        const char *text;
        uint8_t bytes[8];
        double value;
    } good[] = {
        {"u8", {200}, 200},
        {"s8", {200}, -56},
        {"s16le", {0xfe, 0xff}, -2},
        {"u16be", {0x12, 0x34}, 0x1234},
        {"s24le", {0, 0, 0x80}, -8388608},
        {"s32be", {0x80, 0, 0, 0}, -2147483648.0},
        {"f32le", {0, 0, 0x20, 0xc1}, -10},
        {"f64be", {0x40, 0x09, 0, 0, 0, 0, 0, 0}, 3.125},
        {"le:s12/16>>4", {0xf7, 0xff}, -1}, /* the low four bits are noise */
        {"le:u12/16>>0", {0xff, 0xff}, 4095},
        {"be:s24/32>>8", {0xff, 0xff, 0xfe, 0x77}, -2},
        {"le:s64/64>>0", {1, 0, 0, 0, 0, 0, 0, 0x80}, -9223372036854775807.0},
        {"be:u10/16X2>>6", {0xff, 0xc0}, 1023},
        {"le:s16/16", {1, 0}, 1},
    };
    static const char *const bad[] = {
        "",
        "s16",
        "s12le",
        "x16le",
        "s16le ",
        "le:s12/12>>0",
        "le:s17/16>>0",
        "le:s12/16>>5",
        "le:s12/16>>",
        "le:s0/16>>0",
        "le:s999999/16",
        "le:16/16>>0",
        "le:s8/128>>0",
        "f16le",
        "le:s16/16X0>>0",
        "le:s16/16X99>>0",
        "s72le",
    };
    struct nrg_sample_type type;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(nrg_sample_type_parse(good[i].text, strlen(good[i].text), &type), 0);
        double value = nrg_sample_value(&type, good[i].bytes);
        if (fabs(value - good[i].value) > 0)
            fail_msg("%s: %.17g", good[i].text, value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!nrg_sample_type_parse(bad[i], strlen(bad[i]), &type))
            fail_msg("'%s' is accepted", bad[i]);
}

/* As the kernel lays them out: 2 bytes, 6 of padding, 8 of time. */
static void frames_of_the_kernel(void **state)
{
    struct nrg_sample_frame frame;
    struct nrg_error err;
    (void)state;
    assert_int_equal(nrg_sample_frame_parse(&frame, "le:s12/16>>4,le:s64/64>>0", 2, &err), 0);
    assert_int_equal(frame.bytes, 16);
    assert_int_equal(frame.of[1].offset, 8);
    assert_int_equal(
        nrg_sample_frame_parse(&frame, "le:u8/8>>0,be:s24/32>>8,le:s12/16>>0", 2, &err), 0);
    assert_int_equal(frame.of[1].offset, 4);
    assert_int_equal(frame.of[2].offset, 8);
    assert_int_equal(frame.bytes, 12);
    assert_int_equal(nrg_sample_frame_parse(&frame, "le:s16/16X3>>0,le:s16/16>>0", 2, &err), 0);
    assert_int_equal(frame.n, 4);
    assert_int_equal(frame.bytes, 12);
    assert_int_equal(nrg_sample_frame_parse(&frame, "s24le", 3, &err), 0);
    assert_int_equal(frame.bytes, 9);
    assert_int_equal(nrg_sample_frame_parse(&frame, "f64le", 33, &err), -EINVAL);
    assert_int_equal(nrg_sample_frame_parse(&frame, "s16le,,s16le", 2, &err), -EINVAL);
}

static struct bytes iio_samples(unsigned frames)
{
    struct bytes b = {0};
    struct mains mains;
    double v, i;
    mains_init(&mains, RATE);
    for (unsigned k = 0; k < frames; k++) {
        mains_next(&mains, &v, &i);
        put(&b, (uint64_t)((lround(i * 300) + 2048) << 4 | 0xf), 2, false);
        put(&b, (uint64_t)((lround(v * 5) + 2048) << 4), 2, false);
        put(&b, 0, 4, false);
        put(&b, k, 8, false);
    }
    return b;
}

static void raw_samples(void **state)
{
    static const char uri[] = "waveform:/dev/iio:device0?format=le:u12/16>>4,le:u12/16>>4,"
                              "le:s64/64>>0&names=voltage0,voltage1,timestamp&rate=4000&"
                              "v=voltage1&i=voltage0&vcal=0.2&ical=0.00333333333";
    (void)state;
    struct bytes b = iio_samples(2 * RATE);
    struct heard *whole = decode(uri, b.at, b.n, false), *cut = decode(uri, b.at, b.n, true);
    assert_near(energy_of(whole), 460, .002);
    assert_int_equal(cut->n, whole->n);
    assert_memory_equal(cut->of[5].values, whole->of[5].values, sizeof cut->of[5].values);
    free(whole);
    free(cut);
    free(b.at);
}

static int iio_keys(const struct tree *t, const char *place, char *keys, size_t size,
                    struct nrg_error *err)
{
    struct nrg_uri uri;
    assert_int_equal(nrg_uri_join(&uri, "waveform", place, err), 0);
    return nrg_wave_iio_keys(&t->ctx.root, &uri, keys, size, err);
}

static void iio_description(void **state)
{
    static const char dir[] = "/sys/bus/iio/devices/iio:device3";
    struct tree t;
    struct nrg_error err = {0};
    char path[128], keys[512];
    (void)state;
    tree_init(&t);
#define WRITE(name, ...)                                                                           \
    (snprintf(path, sizeof path, "%s/%s", dir, name), tree_write(&t, path, __VA_ARGS__))
    assert_int_equal(iio_keys(&t, "/dev/ttyS0", keys, sizeof keys, &err), 1);
    assert_int_equal(iio_keys(&t, "/dev/iio:device3", keys, sizeof keys, &err), -ENOENT);
    WRITE("scan_elements/in_voltage0_en", "0\n");
    assert_int_equal(iio_keys(&t, "/dev/iio:device3", keys, sizeof keys, &err), -ENODATA);
    assert_non_null(strstr(err.what, "no channel is on"));
    WRITE("scan_elements/in_voltage1_en", "1\n");
    WRITE("scan_elements/in_voltage1_index", "4\n");
    WRITE("scan_elements/in_voltage1_type", "le:s12/16>>4\n");
    WRITE("scan_elements/in_voltage7_en", "1\n");
    WRITE("scan_elements/in_voltage7_index", "2\n");
    WRITE("scan_elements/in_voltage7_type", "be:u10/16>>0\n");
    WRITE("scan_elements/in_timestamp_en", "1\n");
    WRITE("scan_elements/in_timestamp_index", "9\n");
    WRITE("scan_elements/in_timestamp_type", "le:s64/64>>0\n");
    WRITE("buffer/enable", "0\n");
    assert_int_equal(iio_keys(&t, "/dev/iio:device3", keys, sizeof keys, &err), -ENODATA);
    assert_non_null(strstr(err.what, "its buffer is off"));
    WRITE("buffer/enable", "1\n");
    WRITE("sampling_frequency", "8000.5\n");
    assert_int_equal(
        iio_keys(&t, "/dev/iio:device3?v=voltage7&i=voltage1", keys, sizeof keys, &err), 0);
    assert_string_equal(keys, "format=be:u10/16>>0,le:s12/16>>4,le:s64/64>>0"
                              "&names=voltage7,voltage1,timestamp&rate=8000.5");
    WRITE("scan_elements/in_voltage1_type", "le:s12/11>>4&rate=1\n");
    assert_int_equal(iio_keys(&t, "/dev/iio:device3", keys, sizeof keys, &err), -EINVAL);
    tree_release(&t);
#undef WRITE
}

/* Blocks arrive late and in bursts: stamps are of the samples, and never go back. */
static void time_of_live_samples(void **state)
{
    struct heard *h = heard_new();
    size_t n_fields;
    void *decoder = decoder_new("waveform:p?format=f64le&rate=4000", &n_fields);
    struct mains mains;
    uint64_t random = 99;
    const int64_t start_ns = INT64_C(5000000000), pause_ns = INT64_C(7000000000);
    int64_t last_ns = 0;
    (void)state;
    mains_init(&mains, RATE);
    for (unsigned block = 0; block < 204; block++) {
        struct bytes b = {0};
        for (unsigned k = 0; k < 400; k++) {
            double v, i;
            mains_next(&mains, &v, &i);
            put_float(&b, v, 8);
            put_float(&b, i, 8);
        }
        int64_t due_ns = start_ns + (block + 1) * INT64_C(100000000);
        if (block >= 200) /* the source had stopped */
            due_ns += pause_ns;
        int64_t arrives_ns = due_ns + (int64_t)((1 + mains_random(&random)) * 40e6);
        last_ns = arrives_ns > last_ns ? arrives_ns : last_ns;
        nrg_decoder_waveform.feed(decoder, b.at, b.n, last_ns, 0, &h->out);
        free(b.at);
    }
    assert_true(h->n > 190);
    assert_true(h->of[h->n - 1].sent_ns > last_ns - 300000000);
    for (size_t i = 20; i < h->n - 10; i++) {
        /* Windows of 100 ms: their ends keep step with the samples, whatever the arrival. */
        int64_t step_ns = h->of[i].sent_ns - h->of[i - 1].sent_ns;
        assert_true(step_ns > 95000000 && step_ns < 105000000);
    }
    free(decoder);
    free(h);
}

/* The writer ends and another begins: a new header, counters go on. */
static void streams_begin_again(void **state)
{
    static const struct wav_kind first = {1, 16, false, false, 0xffffffff};
    static const struct wav_kind second = {3, 32, false, true, 0xffffffff};
    struct heard *h = heard_new();
    double v_count, i_count, v_float, i_float;
    struct bytes a = wav_of(&first, 2 * RATE, &v_count, &i_count);
    struct bytes b = wav_of(&second, 2 * RATE, &v_float, &i_float);
    size_t n_fields;
    void *decoder = decoder_new("waveform:p?v=3&i=1", &n_fields);
    (void)state;
    nrg_decoder_waveform.feed(decoder, a.at, a.n, 1000, 0, &h->out);
    size_t n = h->n;
    double energy = h->of[n - 1].values[ENERGY];
    nrg_decoder_waveform.reset(decoder);
    nrg_decoder_waveform.feed(decoder, b.at, b.n, 2000000000, 0, &h->out);
    assert_int_equal(h->refused, 0);
    assert_true(h->n > n + 8);
    assert_near(h->of[h->n - 1].values[POWER] * v_float * i_float, 230, .002);
    assert_true(h->of[h->n - 1].values[ENERGY] >= energy);
    free(decoder);
    free(h);
    free(a.at);
    free(b.at);
}

/* NAN and endless numbers in samples: said, and the sums stay clean. */
static void samples_that_are_no_numbers(void **state)
{
    struct bytes b = {0};
    struct mains mains;
    (void)state;
    mains_init(&mains, RATE);
    for (unsigned k = 0; k < 3 * RATE; k++) {
        double v, i;
        mains_next(&mains, &v, &i);
        put_float(&b, k == 5000 ? NAN : v, 8);
        put_float(&b, k == 9000 ? INFINITY : i, 8);
    }
    struct heard *h = decode("waveform:x?format=f64le&rate=4000", b.at, b.n, false);
    assert_int_equal(h->refused, 2);
    assert_near(energy_of(h), 690, .002);
    free(h);
    free(b.at);
}

static void uris(void **state)
{
    size_t n_fields;
    (void)state;
    void *decoder =
        decoder_new("waveform:x.wav?i=2,3,4&ical=0.1,0.2,-0.3&phase=1.5&shift=-2", &n_fields);
    assert_int_equal(n_fields, 2 + 15);
    free(decoder);
    assert_refused_uri("waveform:x?format=s16le", "rate= is missing");
    assert_refused_uri("waveform:x.csv", "time= with the column");
    assert_refused_uri("waveform:x?format=mp3", "format= wants");
    assert_refused_uri("waveform:x?format=s16le&rate=8000&i=3", "2 channels");
    assert_refused_uri("waveform:x?format=s16le&rate=8000&i=amps", "no channel is called 'amps'");
    assert_refused_uri("waveform:x?format=s16le&rate=1", "rate");
    assert_refused_uri("waveform:x.wav?v=0", "columns go from 1");
    assert_refused_uri("waveform:x.wav?i=1,2,3,4,5,6,7", "more than 6 currents");
    assert_refused_uri("waveform:x.wav?ical=1,2", "per current");
    assert_refused_uri("waveform:x.wav?ical=one", "per current");
    assert_refused_uri("waveform:x.wav?dc=maybe", "wants remove or keep");
    assert_refused_uri("waveform:x.wav?clock=sundial", "wants arrival or samples");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wav_files),
        cmocka_unit_test(wav_with_a_tail),
        cmocka_unit_test(broken_wavs),
        cmocka_unit_test(csv_files),
        cmocka_unit_test(odd_csv),
        cmocka_unit_test(types_of_samples),
        cmocka_unit_test(frames_of_the_kernel),
        cmocka_unit_test(raw_samples),
        cmocka_unit_test(iio_description),
        cmocka_unit_test(time_of_live_samples),
        cmocka_unit_test(streams_begin_again),
        cmocka_unit_test(samples_that_are_no_numbers),
        cmocka_unit_test(uris),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
