/* base/checked.h: every number of a file has a defined way to become an index, a count or a time.
 */
#include "base/checked.h"

#include "support/cmocka.h"

static void indexes(void **state)
{
    (void)state;
    assert_true(nrg_is_index(0, 1));
    assert_false(nrg_is_index(1, 1));
    assert_false(nrg_is_index(-1, SIZE_MAX));
    assert_false(nrg_is_index(INT64_MIN, SIZE_MAX));
    assert_false(nrg_is_index(INT64_MAX, INT32_MAX));
    assert_false(nrg_is_index(0, 0));
    assert_false(nrg_is_id(0, 5));
    assert_true(nrg_is_id(4, 5));
    assert_false(nrg_is_id(INT64_C(1) << 62, 5)); /* times 4 it would wrap to 0 */
}

static void doubles(void **state)
{
    (void)state;
    assert_int_equal(nrg_round_i64(2.5), 3);
    assert_int_equal(nrg_round_i64(-8.9e24), INT64_MIN);
    assert_int_equal(nrg_round_i64(8.9e24), INT64_MAX);
    assert_int_equal(nrg_round_i64(NRG_I64_LIMIT), INT64_MAX);
    assert_int_equal(nrg_round_i64(INFINITY), INT64_MAX);
    assert_int_equal(nrg_round_i64(NAN), 0);
    assert_int_equal(nrg_round_within(1e300, 0, 80), 80);
    assert_int_equal(nrg_round_within(-1e300, 0, 80), 0);
    assert_int_equal(nrg_round_within(NAN, -3, 80), -3);
    assert_int_equal(nrg_round_within(79.4, 0, 80), 79);
    assert_int_equal(nrg_floor_size(-0.5, 9), 0);
    assert_int_equal(nrg_floor_size(NAN, 9), 0);
    assert_int_equal(nrg_floor_size(8.9, 9), 8);
    assert_int_equal(nrg_floor_size(1e300, 9), 9);
}

static void sums(void **state)
{
    (void)state;
    assert_int_equal(nrg_add_i64(INT64_MAX, 1), INT64_MAX);
    assert_int_equal(nrg_add_i64(INT64_MIN, -1), INT64_MIN);
    assert_int_equal(nrg_add_i64(INT64_MAX, INT64_MIN), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(indexes), cmocka_unit_test(doubles),
                                       cmocka_unit_test(sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
