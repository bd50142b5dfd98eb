/*
 * The decoders of emonPi and RPICT lines: real lines, every cut of the stream, line ends, what is
 * refused and why, times of readings. Layouts and what they guess from names.
 */
#include "support/cmocka.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sensors/meter/decoders.h"
#include "sensors/meter/layout.h"

#define KEPT    32
#define BYTE_NS 260416 /* 38400 baud */

struct seen {
    struct nrg_meter_out out; /* first: callbacks cast back */
    const struct nrg_meter_decoder *decoder;
    struct nrg_uri uri;
    void *state;
    struct nrg_meter_field fields[NRG_METER_FIELDS];
    size_t n_fields, n, n_refused, n_harmless;
    struct {
        int64_t sent_ns, average_ns;
        double values[NRG_METER_FIELDS], rssi_dbm;
    } readings[KEPT];
    char why[KEPT][96];
};

static void on_reading(struct nrg_meter_out *out, const struct nrg_meter_reading *r)
{
    struct seen *s = (struct seen *)out;
    assert_true(s->n < KEPT);
    assert_int_equal(r->n_values, s->n_fields);
    s->readings[s->n].sent_ns = r->sent_ns;
    s->readings[s->n].average_ns = r->average_ns;
    s->readings[s->n].rssi_dbm = r->rssi_dbm;
    memcpy(s->readings[s->n++].values, r->values, r->n_values * sizeof *r->values);
}

static void on_refused(struct nrg_meter_out *out, const void *bytes, size_t n, const char *why,
                       bool harmless)
{
    struct seen *s = (struct seen *)out;
    assert_non_null(bytes);
    assert_true(n > 0);
    if (harmless)
        s->n_harmless++;
    else if (s->n_refused < KEPT)
        snprintf(s->why[s->n_refused++], sizeof *s->why, "%s", why);
}

static struct seen *start(const struct nrg_meter_decoder *decoder, const char *uri)
{
    struct seen *s = calloc(1, sizeof *s);
    struct nrg_error err;
    assert_non_null(s);
    s->out = (struct nrg_meter_out){.reading = on_reading, .refused = on_refused};
    s->decoder = decoder;
    assert_int_equal(nrg_uri_parse(&s->uri, uri, &err), 0);
    if (nrg_meter_decoder_new(decoder, &s->uri, s->fields, &s->n_fields, &s->state, &err))
        fail_msg("%s", err.what);
    return s;
}

static void stop(struct seen *s)
{
    free(s->state);
    free(s);
}

static void say(struct seen *s, const char *text)
{
    s->decoder->feed(s->state, (const uint8_t *)text, strlen(text), 1000000000, BYTE_NS, &s->out);
}

#define EMON "OK 8 105 0 191 1 175 1 0 0 31 2 184 11 184 11 184 11 184 11 184 11 0 0 0 (-28)\r\n"

static void real_emonpi_lines(void **state)
{
    struct seen *s = start(&nrg_decoder_emonpi,
                           "emonpi:/x?layout=power1,power2,power3,power4,Vrms,temp1,temp2,temp3,"
                           "temp4,temp5,...");
    (void)state;
    say(s, EMON);
    assert_int_equal(s->n, 1);
    const double expected[] = {105, 447, 431, 0, 5.43};
    for (size_t i = 0; i < 5; i++)
        assert_true(fabs(s->readings[0].values[i] - expected[i]) < 1e-9);
    for (size_t i = 5; i < 10; i++) /* 300.0 degrees: no thermometer there */
        assert_true(isnan(s->readings[0].values[i]));
    assert_true(s->readings[0].rssi_dbm == -28);
    assert_true(s->fields[4].quantity == NRG_VOLTAGE && s->fields[4].resolution == 0.01);
    stop(s);

    s = start(&nrg_decoder_emonpi, "emonpi:/x?node=18&layout=P1,P2,P3");
    say(s, "OK 18 46 22 231 3 210 4 (-37)\n");
    assert_int_equal(s->n, 1);
    assert_true(s->readings[0].values[0] == 5678 && s->readings[0].values[1] == 999 &&
                s->readings[0].values[2] == 1234);
    stop(s);
}

static void packet_forms(void **state)
{
    static const char *const good[] = {
        "OK 5 255 255 1 0\r\n",
        "OK 5 255 255 1 0 (-90)\n",
        "  OK 5 255 255 1 0 -> ack\n",
        "OK 5 255 255 1 0 (-90) -> ack\r",
        "OKX 05FFFF0100\n",
        "OKX 05 FF ff 01 00 (-31)\n",
        "OK G210 5 255 255 1 0\r\n",
        "\r\n\r\nOK 5 255 255 1 0  \n",
    };
    static const char *const bad[] = {
        "OK 5 255 255 1\n", "OK 5 255 255 1 0 7\n",  "OK 5 25\x85 255 x 0\n",
        "OKX 05FFFF010\n",  "OK \x85 255 255 1 0\n", "OK\x85 5 25\x86 255 1 0 (-42)\n",
    };
    /* One value is spoilt, or none; the second is known to be 1. */
    static const char *const spoilt[] = {
        "OK 5 256 0 1 0\n",
        "OK 5 255 25\x85 1 0\n",
        "OK 5 x55 255 1 0 (-31)\n",
        "OK\x01 5 255 255 1 0\n",
        "O\x90 5 255 255 1 0 (-31)\n",
        "OK 5 255 255 1 0 (-9\n",
        "OK 5 255 255 1 0 \x85-31)\n",
        "OK 5 255\x85"
        "255 1 0 (-31)\n",
        "\x85OK 5 255 255 1 0\n",
        "OK 5\x85"
        "255 255 1 0 (-31)\n",
        "OK 5 255 255 1 0 (x)\n",
    };
    struct seen *s = start(&nrg_decoder_emonpi, "emonpi:/x?node=5&layout=power1,power2");
    size_t n_good = sizeof good / sizeof *good;
    (void)state;
    for (size_t i = 0; i < n_good; i++) {
        say(s, good[i]);
        assert_int_equal(s->n, i + 1);
        assert_true(s->readings[i].values[0] == -1 && s->readings[i].values[1] == 1);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        say(s, bad[i]);
        assert_int_equal(s->n_refused, i + 1);
    }
    assert_int_equal(s->n, n_good);
    assert_int_equal(s->n_harmless, 0);
    for (size_t i = 0; i < sizeof spoilt / sizeof *spoilt; i++) {
        say(s, spoilt[i]);
        assert_int_equal(s->n, n_good + i + 1);
        const double *values = s->readings[n_good + i].values;
        assert_true(i < 3 ? isnan(values[0]) : values[0] == -1);
        assert_true(values[1] == 1);
    }
    say(s, "OK 6 1 2 3 4\nAvailable commands:\n ? 5 255 255 1 0\n");
    assert_int_equal(s->n_harmless, 3);
    stop(s);
}

static void longest_packet(void **state)
{
    char line[600] = "OK 5";
    struct seen *s = start(&nrg_decoder_emonpi, "emonpi:/x?layout=power1,...");
    (void)state;
    for (int i = 0; i < 66; i++)
        strcat(line, " 255");
    strcat(line, "\n");
    say(s, line);
    assert_int_equal(s->n, 1);
    line[strlen(line) - 1] = '\0';
    strcat(line, " 255\n");
    say(s, line);
    assert_int_equal(s->n, 1);
    assert_string_equal(s->why[0], "more than 66 bytes");
    stop(s);
}

static void nodes(void **state)
{
    struct seen *s = start(&nrg_decoder_emonpi,
                           "emonpi:/x?node=5,8&layout=power1&layout.8=power1,E1:uint32*1Wh");
    (void)state;
    assert_int_equal(s->n_fields, 3);
    assert_string_equal(s->fields[0].name, "node5.power1");
    assert_string_equal(s->fields[2].name, "node8.power1"); /* it counts what power1 shows */
    assert_true(s->fields[2].kind == NRG_COUNTER && s->fields[2].resolution == 3600 &&
                s->fields[2].wrap == UINT64_C(1) << 32);
    say(s, "OK 8 7 0 1 0 0 0\nOK 5 9 0\nOK 6 1 0\n");
    assert_int_equal(s->n, 2);
    assert_true(isnan(s->readings[0].values[0]) && s->readings[0].values[2] == 3600);
    assert_true(s->readings[1].values[0] == 9 && isnan(s->readings[1].values[1]));
    stop(s);

    s = start(&nrg_decoder_emonpi, "emonpi:/x?layout=power1"); /* the first one is kept */
    say(s, "OK 8 1 0\nOK 5 2 0\nOK 8 3 0\n");
    assert_int_equal(s->n, 2);
    assert_int_equal(s->n_harmless, 1);
    stop(s);
}

static void messages(void **state)
{
    struct seen *s = start(&nrg_decoder_emonpi, "emonpi:/x?layout=P1,P2,Vrms,E1");
    (void)state;
    say(s, "MSG:1234,Vrms:239.5,P1:104,P2:-3,E1:12345,foo:1\r\n");
    s->decoder->feed(s->state, (const uint8_t *)"{\"MSG\":1,\"V1\":240,\"P1\":1.5}\n", 28,
                     11000000000, 0, &s->out);
    say(s, "MSG:1,P1:1x\nMSG:5,X:1\nMSG:7,P1\n");
    assert_int_equal(s->n, 2);
    const double *v = s->readings[0].values;
    assert_true(v[0] == 104 && v[1] == -3 && v[2] == 239.5 && v[3] == 12345 * 3600.0);
    assert_true(s->readings[1].values[2] == 240 && s->readings[1].values[0] == 1.5 &&
                isnan(s->readings[1].values[1]));
    assert_int_equal(s->readings[0].average_ns, 0);
    assert_true(s->readings[1].average_ns > 9000000000 && s->readings[1].average_ns < 11000000000);
    assert_int_equal(s->n_refused, 2);
    stop(s);
}

static void rpict_lines(void **state)
{
    struct seen *s = start(&nrg_decoder_rpict, "rpict:/x?layout=P1,P2,P3,T1,T2,-");
    (void)state;
    say(s, "6.54 1.2\r\n11 46.23 52.25 126.56 19.46 16.54 1.2\r\n");
    assert_int_equal(s->n_harmless, 1); /* the first line may be partial */
    assert_int_equal(s->n, 1);
    assert_int_equal(s->n_fields, 5);
    assert_true(s->readings[0].values[2] == 126.56 && s->readings[0].values[4] == 16.54);
    say(s, "11 46.23 52.25 126.56 19.46 16.54\n11 4x 52.2x 12x 19.46 16.54 1\n"
           "11 46.23 52.25 126.56 19.46 16.54 1 1\n1.5 46.23 52.25 126.56 19.46 16.54 1\n");
    assert_int_equal(s->n_refused, 4);
    assert_string_equal(s->why[0], "5 values, but the layout has 6: is board= right?");
    say(s, "12 1 1 1 1 1 1\n11,1,-2,nan,4,5,6\n11 1 5\x85.2 3 4 5 6\n11 1\x85"
           "2 3 4 5 6\n");
    assert_int_equal(s->n, 4);
    assert_true(s->readings[1].values[1] == -2 && isnan(s->readings[1].values[2]));
    assert_true(isnan(s->readings[2].values[1]) && s->readings[2].values[2] == 3);
    assert_true(s->readings[3].values[1] == 2 && s->readings[3].values[2] == 3);
    stop(s);

    s = start(&nrg_decoder_rpict, "rpict:/x?board=RPICT7V1");
    assert_int_equal(s->n_fields, 15);
    say(s, "\n11 0.0 0.0 0.0 -0.0 0.0 0.0 -0.0 202.1 208.6 235.3 207.2 223.4 3296.3 2310.8 0.9\n");
    assert_int_equal(s->n, 1);
    assert_true(fabs(s->readings[0].values[12] - 3.2963) < 1e-12);
    assert_true(s->readings[0].values[14] == 0.9);
    stop(s);
}

static void full_output(void **state)
{
    struct seen *s = start(&nrg_decoder_rpict,
                           "rpict:/x?line.1.0=RP1,Irms1*1mA&line.1.1=RP2,Irms2*1mA&line.4=T1,...");
    (void)state;
    say(s, "\n1 0 100.5 500\n1 1 7 30\n4 21.5 1 2\n9 9 9\n1 0 1\n");
    assert_int_equal(s->n, 3);
    assert_true(s->readings[0].values[0] == 100.5 && s->readings[0].values[1] == 0.5);
    assert_true(s->readings[1].values[2] == 7 && isnan(s->readings[1].values[0]));
    assert_true(s->readings[2].values[4] == 21.5);
    assert_int_equal(s->n_harmless, 1);
    assert_int_equal(s->n_refused, 1);
    stop(s);
}

/* Any cut of the stream gives the same readings. */
static void cuts(void **state)
{
    static const char text[] = "8 9\r\n" EMON "noise\r\n?\r\n" EMON "\rMSG:1,P1:3,P2:4\r\n" EMON;
    (void)state;
    for (size_t cut = 0; cut < sizeof text; cut++) {
        struct seen *s = start(&nrg_decoder_emonpi, "emonpi:/x?layout=P1,P2,...");
        s->decoder->feed(s->state, (const uint8_t *)text, cut, 1, 1, &s->out);
        s->decoder->feed(s->state, (const uint8_t *)text + cut, sizeof text - 1 - cut, 9, 1,
                         &s->out);
        assert_int_equal(s->n, 4);
        assert_true(s->readings[2].values[1] == 4 && s->readings[3].values[1] == 447);
        assert_int_equal(s->n_harmless, 3);
        stop(s);
    }
}

/* A reading is of the moment when its first byte left the meter. */
static void times(void **state)
{
    static const char line[] = "OK 5 1 0\r\n";
    struct seen *s = start(&nrg_decoder_emonpi, "emonpi:/x?layout=P1");
    int64_t n = sizeof line - 1;
    (void)state;
    say(s, line);
    assert_int_equal(s->readings[0].sent_ns, 1000000000 - n * BYTE_NS);
    s->decoder->feed(s->state, (const uint8_t *)line, 4, 2000000000, BYTE_NS, &s->out);
    s->decoder->feed(s->state, (const uint8_t *)line + 4, (size_t)n - 4, 2500000000, BYTE_NS,
                     &s->out);
    assert_int_equal(s->readings[1].sent_ns, 2000000000 - 4 * BYTE_NS);
    s->decoder->feed(s->state, (const uint8_t *)"OK 5 7", 6, 3000000000, 0, &s->out);
    s->decoder->reset(s->state);
    say(s, " 0\nOK 5 8 0"); /* what was begun is not finished by what comes later */
    assert_int_equal(s->n, 2);
    s->decoder->end(s->state, 1000000000, &s->out);
    assert_int_equal(s->n, 3);
    assert_true(s->readings[2].values[0] == 8);
    stop(s);
}

/* Bytes without an end of line are refused while they come, and not kept. */
static void garbage(void **state)
{
    uint8_t bytes[3000];
    struct seen *s = start(&nrg_decoder_emonpi, "emonpi:/x?layout=P1");
    (void)state;
    memset(bytes, 0xE7, sizeof bytes);
    s->decoder->feed(s->state, bytes, sizeof bytes, 1, 1, &s->out);
    assert_int_equal(s->n_refused, KEPT);
    memset(bytes, 'a', sizeof bytes);
    say(s, "\nOK 5 1 0\n");
    s->decoder->feed(s->state, bytes, sizeof bytes, 1, 1, &s->out);
    say(s, "\nOK 5 1 0\n");
    assert_int_equal(s->n, 2);
    stop(s);
}

static void layouts(void **state)
{
    struct nrg_layout l;
    struct nrg_error err;
    double values[16];
    const uint8_t bytes[] = {0xFF, 0xFE, 0xFF, 1, 0, 0, 0, 0, 0, 0, 0xC0, 0x3F, 9, 9, 0x10, 0x27};
    static const char *const wrong[] = {
        "",      "a,",  "a:int17", "a*",     "a*0", "a*1X",
        "a b c", "...", "a,...,b", "a*1e99", "a:",  "a-name-longer-than-any-may-be-01"};
    (void)state;
    assert_int_equal(nrg_layout_parse(&l,
                                      "P1:int8,P2:int16, P3:int32 mW ,-:byte,Irms:float*2,"
                                      "E1:uint16,Vrms",
                                      &err),
                     0);
    assert_int_equal(l.bytes, 1 + 2 + 4 + 1 + 4 + 2 + 2);
    nrg_layout_unpack(&l, bytes, values);
    assert_true(values[0] == -1 && values[1] == -2 && values[2] == 1e-3 && values[3] == 3);
    assert_true(values[4] == (9 + 9 * 256) * 3600.0 && values[5] == 100);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(nrg_layout_parse(&l, wrong[i], &err), -EINVAL);
    assert_int_equal(nrg_layout_parse(&l, "power1,power2:int17", &err), -EINVAL);
    assert_int_equal(err.offset, 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_emonpi_lines),
        cmocka_unit_test(packet_forms),
        cmocka_unit_test(longest_packet),
        cmocka_unit_test(nodes),
        cmocka_unit_test(messages),
        cmocka_unit_test(rpict_lines),
        cmocka_unit_test(full_output),
        cmocka_unit_test(cuts),
        cmocka_unit_test(times),
        cmocka_unit_test(garbage),
        cmocka_unit_test(layouts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
