/* A counter that begins anew falls in the recording, wherever it begins; inside of an epoch its
 * differences are the driver's. */
#include "support/cmocka.h"

#include "record/sampler/epochs.h"

static int64_t write_one(struct nrg_epochs *e, int64_t raw)
{
    const int64_t row[] = {raw, 7};
    const int64_t *out = nrg_epochs_row(e, 0, row);
    assert_int_equal(out[1], 7); /* a gauge */
    return out[0];
}

static void it_falls_at_an_epoch(void **state)
{
    struct nrg_channel channels[] = {{.kind = NRG_COUNTER}, {.kind = NRG_GAUGE}};
    struct nrg_found found = {.channels = channels, .n_channels = 2};
    struct nrg_epochs e;
    (void)state;
    assert_int_equal(nrg_epochs_init(&e, &found), 0);
    assert_int_equal(write_one(&e, 50), 50); /* a driver that knows no epochs */
    assert_false(nrg_epochs_set(&e, 11));
    assert_int_equal(write_one(&e, 60), 60);
    assert_false(nrg_epochs_set(&e, 11));
    assert_int_equal(write_one(&e, 70), 70);
    assert_true(nrg_epochs_set(&e, 12)); /* falls by itself */
    assert_int_equal(write_one(&e, 0), 0);
    assert_int_equal(write_one(&e, 5), 5);
    assert_true(nrg_epochs_set(&e, 13)); /* is further on */
    assert_int_equal(write_one(&e, NRG_MISSING), NRG_MISSING);
    assert_int_equal(write_one(&e, 90), 4);
    assert_int_equal(write_one(&e, 100), 14);
    assert_true(nrg_epochs_set(&e, 12)); /* the number itself says nothing */
    assert_int_equal(write_one(&e, 14), 13);
    nrg_epochs_release(&e);
}

/* As a lying nrgd may send them. */
static void any_number_is_borne(void **state)
{
    static const int64_t odd[] = {INT64_MAX, INT64_MIN + 1, 0, INT64_MIN, INT64_MAX, -1};
    struct nrg_channel channels[] = {{.kind = NRG_COUNTER}, {.kind = NRG_GAUGE}};
    struct nrg_found found = {.channels = channels, .n_channels = 2};
    struct nrg_epochs e;
    (void)state;
    assert_int_equal(nrg_epochs_init(&e, &found), 0);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
            nrg_epochs_set(&e, odd[k]);
            write_one(&e, odd[i]);
            write_one(&e, odd[k]);
        }
    nrg_epochs_release(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_falls_at_an_epoch),
                                       cmocka_unit_test(any_number_is_borne)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
