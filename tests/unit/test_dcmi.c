/*
 * dcmi: the bytes of Get Power Reading as the specification has them (DCMI 1.5, table 6-16),
 * answers that are none, and what is said where the device is missing, closed or something else.
 */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sensors/dcmi/message.h"

/* 263 W now, 85 to 402, 251 on average, at 1,700,000,000 s, over 1000 ms, active. */
static const uint8_t good[] = {0x00, 0xdc, 0x07, 0x01, 0x55, 0x00, 0x92, 0x01, 0xfb, 0x00,
                               0x00, 0xf1, 0x53, 0x65, 0xe8, 0x03, 0x00, 0x00, 0x40};

static void the_question(void **state)
{
    uint8_t bytes[NRG_DCMI_REQUEST_LEN];
    (void)state;
    nrg_dcmi_encode(bytes);
    assert_memory_equal(bytes, "\xdc\x01\x00\x00", 4);
}

static void an_answer(void **state)
{
    struct nrg_dcmi_power p;
    uint8_t bytes[sizeof good + 3] = {0};
    (void)state;
    memcpy(bytes, good, sizeof good);
    for (size_t n = sizeof good; n <= sizeof bytes; n++) {
        assert_int_equal(nrg_dcmi_decode(bytes, n, &p), 0);
        assert_int_equal(p.current_w, 263);
        assert_int_equal(p.minimum_w, 85);
        assert_int_equal(p.maximum_w, 402);
        assert_int_equal(p.average_w, 251);
        assert_int_equal(p.time_s, 1700000000);
        assert_int_equal(p.period_ms, 1000);
        assert_int_equal(nrg_dcmi_update_ns(&p), 1000000000);
    }
    for (size_t n = 0; n < sizeof good; n++)
        assert_int_equal(nrg_dcmi_decode(good, n, &p), -EPROTO);
}

static int decode_with(size_t at, uint8_t value)
{
    struct nrg_dcmi_power p;
    uint8_t bytes[sizeof good];
    memcpy(bytes, good, sizeof good);
    bytes[at] = value;
    if (at == 3)
        bytes[2] = value; /* both bytes of the current power */
    return nrg_dcmi_decode(bytes, sizeof bytes, &p);
}

static void what_is_no_reading(void **state)
{
    static const struct {
        uint8_t code;
        int error;
    } codes[] = {{0xc0, -EBUSY},     {0xc1, -ENOTSUP}, {0xc2, -ENOTSUP}, {0xcc, -ENOTSUP},
                 {0xc3, -ETIMEDOUT}, {0xd4, -EACCES},  {0xff, -EIO},     {0x80, -EIO}};
    struct nrg_dcmi_power p;
    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        assert_int_equal(nrg_dcmi_decode(&codes[i].code, 1, &p), codes[i].error);
        assert_int_equal(decode_with(0, codes[i].code), codes[i].error);
    }
    assert_int_equal(decode_with(1, 0xdd), -EPROTO);
    assert_int_equal(decode_with(3, 0x00), -ENODATA);  /* 0 W */
    assert_int_equal(decode_with(3, 0xff), -ENODATA);  /* no figure yet */
    assert_int_equal(decode_with(18, 0xbf), -ENODATA); /* all bits but that of "active" */
    assert_int_equal(decode_with(18, 0xff), 0);
}

/* Statistics since the controller was started say nothing about updates. */
static void a_period_that_makes_no_sense(void **state)
{
    static const int64_t none[] = {0, 1, 99, 10001, 86400000, UINT32_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(nrg_dcmi_update_ns(&(struct nrg_dcmi_power){.period_ms = none[i]}), 0);
}

static const struct nrg_unavailable *why(struct tree *t, struct nrg_probe *probe)
{
    tree_probe(t, probe, "dcmi");
    assert_int_equal(probe->n_found, 0);
    return probe_why(probe, "power by the BMC (DCMI)");
}

static void devices_that_can_not_be_asked(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    char path[160];
    (void)state;
    tree_init(&t);
    assert_null(why(&t, &probe)); /* no BMC: nothing to say */
    nrg_probe_release(&probe);

    tree_write(&t, "/sys/firmware/dmi/entries/38-0/type", "38\n");
    assert_non_null(strstr(why(&t, &probe)->fix, "sudo modprobe -a ipmi_si ipmi_devintf"));
    nrg_probe_release(&probe);

    tree_write(&t, "/dev/ipmi0", "%s", "");
    assert_non_null(strstr(why(&t, &probe)->why, "no IPMI device"));
    nrg_probe_release(&probe);

    snprintf(path, sizeof path, "%s/dev/ipmi0", t.path);
    assert_int_equal(chmod(path, 0), 0);
    if (access(path, R_OK)) { /* root may */
        assert_non_null(strstr(why(&t, &probe)->fix, "chmod g+r /dev/ipmi0"));
        nrg_probe_release(&probe);
    }
    tree_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_question),
        cmocka_unit_test(an_answer),
        cmocka_unit_test(what_is_no_reading),
        cmocka_unit_test(a_period_that_makes_no_sense),
        cmocka_unit_test(devices_that_can_not_be_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
