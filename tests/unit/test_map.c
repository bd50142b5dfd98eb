/*
 * map: texts, numbers, ids and copies of keys; order, growth, colliding hashes, clearing, and that
 * a failing allocation leaves the map usable.
 */
#include "support/cmocka.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"

#define MANY 5000

static char names[MANY][8];

static size_t name_of(int i)
{
    return (size_t)snprintf(names[i], sizeof names[i], "k%d", i);
}

static void finds_numbers_by_bytes(void **state)
{
    struct nrg_map map = {0};
    (void)state;
    for (int i = 0; i < MANY; i++) {
        size_t len = name_of(i);
        assert_int_equal(nrg_map_number(&map, names[i], len), -1);
        assert_int_equal(nrg_map_put(&map, names[i], len, i), 0);
    }
    for (int i = 0; i < MANY; i++)
        assert_int_equal(nrg_map_number(&map, names[i], strlen(names[i])), i);
    assert_int_equal(nrg_map_number(&map, "k10", 2), 1); /* by length, not by terminator */
    assert_int_equal(nrg_map_put(&map, "k7", 2, 70), 0);
    assert_int_equal(nrg_map_number(&map, "k7", 2), 70);
    assert_int_equal(map.n, MANY);
    nrg_map_release(&map);
}

static void keeps_the_order_of_making(void **state)
{
    struct nrg_map map = {0};
    (void)state;
    for (int i = MANY; i-- > 0;) {
        name_of(i);
        assert_int_equal(nrg_map_set(&map, names[i], names[i]), 0);
        assert_int_equal(nrg_map_set(&map, names[MANY - 1], names[i]), 0); /* moves nothing */
    }
    for (int i = 0; i < MANY; i++)
        assert_string_equal(map.entries[i].key, names[MANY - 1 - i]);
    assert_ptr_equal(nrg_map_get(&map, names[MANY - 1]), names[0]);
    assert_ptr_equal(nrg_map_get(&map, names[3]), names[3]);
    assert_null(nrg_map_get(&map, "k"));
    nrg_map_release(&map);
}

static void copies_what_it_interns(void **state)
{
    struct nrg_map map = {0};
    char key[8];
    size_t len;
    (void)state;
    assert_int_equal(nrg_map_known(&map, "k0", 2), 0);
    for (int i = 0; i < MANY; i++) {
        int n = snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(nrg_map_intern(&map, key, (size_t)n), i + 1);
        assert_int_equal(nrg_map_intern(&map, key, (size_t)n), i + 1);
    }
    const char *first = nrg_map_text(&map, 1, NULL);
    assert_int_equal(nrg_map_intern(&map, "a\0b", 3), MANY + 1);
    assert_int_equal(nrg_map_intern(&map, "a\0c", 3), MANY + 2);
    assert_int_equal(nrg_map_intern(&map, "", 0), MANY + 3);
    assert_int_equal(nrg_map_known(&map, "a\0b", 3), MANY + 1);
    assert_memory_equal(nrg_map_text(&map, MANY + 1, &len), "a\0b", 4);
    assert_int_equal(len, 3);
    assert_ptr_equal(nrg_map_text(&map, 1, NULL), first); /* copies do not move */
    assert_string_equal(first, "k0");
    nrg_map_release(&map);
}

static void finds_ids(void **state)
{
    struct nrg_map map = {0};
    (void)state;
    assert_null(nrg_map_find_id(&map, 0));
    for (uint64_t i = 0; i < MANY; i++)
        nrg_map_at_id(&map, i << 40)->number = (int64_t)i; /* no low bits to tell them by */
    for (uint64_t i = 0; i < MANY; i++)
        assert_int_equal(nrg_map_find_id(&map, i << 40)->number, i);
    assert_null(nrg_map_find_id(&map, 1));
    assert_int_equal(nrg_map_at_id(&map, UINT64_MAX)->number, 0);
    assert_true(map.entries[map.n - 1].id == UINT64_MAX);
    nrg_map_release(&map);
}

static void check_all_found(const struct nrg_index *index, uint32_t hash, uint32_t first, size_t n)
{
    bool found[200] = {0};
    uint32_t i;
    for (size_t at = hash; (i = nrg_index_next(index, hash, &at)); n--) {
        assert_true(i >= first && i < first + 200 && !found[i - first]);
        found[i - first] = true;
    }
    assert_int_equal(n, 0);
}

/* Two hashes only, next to each other and at the end of the slots. */
static void tells_colliding_hashes_apart(void **state)
{
    struct nrg_index index = {0};
    size_t at = 5;
    (void)state;
    assert_int_equal(nrg_index_next(&index, 5, &at), 0);
    for (uint32_t n = 0; n < 200; n++) {
        assert_int_equal(nrg_index_reserve(&index), 0);
        nrg_index_add(&index, UINT32_MAX, 1 + n);
        assert_int_equal(nrg_index_reserve(&index), 0);
        nrg_index_add(&index, UINT32_MAX - 1, 1000 + n);
    }
    assert_true(2 * index.n <= index.n_slots);
    check_all_found(&index, UINT32_MAX, 1, 200);
    check_all_found(&index, UINT32_MAX - 1, 1000, 200);
    check_all_found(&index, UINT32_MAX - 2, 1, 0);
    nrg_index_release(&index);
}

/* Steps from the start of a search to its end, over all keys. */
static size_t steps(const struct nrg_map *map)
{
    size_t sum = 0;
    for (size_t i = 0; i < map->n; i++) {
        size_t at = map->entries[i].hash;
        while (map->index.slots[at++ & (map->index.n_slots - 1)].number != i + 1)
            sum++;
    }
    return sum;
}

static void spreads_keys_that_are_alike(void **state)
{
    struct nrg_map ids = {0}, texts = {0};
    static char long_keys[MANY][32];
    (void)state;
    for (uint64_t i = 0; i < MANY; i++) {
        assert_non_null(nrg_map_at_id(&ids, i << 52 | i));
        snprintf(long_keys[i], sizeof long_keys[i], "%08u.layer.weight.%04u", (unsigned)i, 7u);
        assert_int_equal(nrg_map_set(&texts, long_keys[i], NULL), 0);
    }
    assert_true(steps(&ids) < 2 * MANY);
    assert_true(steps(&texts) < 2 * MANY);
    nrg_map_release(&ids);
    nrg_map_release(&texts);
}

static void every_byte_and_the_seed_count(void **state)
{
    char bytes[40] = {0};
    (void)state;
    for (size_t len = 0; len <= sizeof bytes; len++) {
        uint64_t before = nrg_hash(1, bytes, len);
        assert_true(before != nrg_hash(2, bytes, len));
        for (size_t i = 0; i < len; i++) {
            bytes[i] = 1;
            assert_true(before != nrg_hash(1, bytes, len));
            bytes[i] = 0;
        }
    }
}

static void clears_and_fills_again(void **state)
{
    struct nrg_map map = {0};
    (void)state;
    nrg_map_clear(&map);
    for (int round = 0; round < 50; round++) {
        int n = round % 2 ? 3 : 700;
        for (int i = 0; i < n; i++) {
            name_of(i);
            assert_int_equal(nrg_map_set(&map, names[i], &names[round]), 0);
        }
        assert_int_equal(map.n, n);
        for (int i = 0; i < n; i++)
            assert_ptr_equal(nrg_map_get(&map, names[i]), &names[round]);
        nrg_map_clear(&map);
        assert_null(nrg_map_get(&map, names[0]));
    }
    for (size_t i = 0; i < map.index.n_slots; i++)
        assert_int_equal(map.index.slots[i].number, 0);
    nrg_map_release(&map);
}

/* A size that no machine has, so that calloc fails; what was there is still found. */
static void stays_whole_without_memory(void **state)
{
    struct nrg_map map = {0};
    (void)state;
    assert_int_equal(nrg_map_put(&map, "a", 1, 1), 0);
    struct nrg_index real = map.index, huge = {.n = UINT32_MAX / 2, .n_slots = UINT32_MAX / 2};
    map.index = huge;
    assert_int_equal(nrg_index_reserve(&map.index), -ENOMEM);
    assert_int_equal(nrg_map_put(&map, "b", 1, 2), -ENOMEM);
    assert_null(nrg_map_at_id(&map, 7));
    assert_memory_equal(&map.index, &huge, sizeof huge);
    map.index = real;
    assert_null(nrg_map_at(&map, "c", UINT32_MAX)); /* longer than a key may be */
    assert_int_equal(nrg_map_intern(&map, "c", UINT32_MAX), -ENOMEM);
    assert_int_equal(nrg_map_number(&map, "a", 1), 1);
    assert_int_equal(nrg_map_number(&map, "b", 1), -1);
    assert_int_equal(map.n, 1);
    nrg_map_release(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_numbers_by_bytes),
        cmocka_unit_test(keeps_the_order_of_making),
        cmocka_unit_test(copies_what_it_interns),
        cmocka_unit_test(finds_ids),
        cmocka_unit_test(tells_colliding_hashes_apart),
        cmocka_unit_test(spreads_keys_that_are_alike),
        cmocka_unit_test(every_byte_and_the_seed_count),
        cmocka_unit_test(clears_and_fills_again),
        cmocka_unit_test(stays_whole_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
