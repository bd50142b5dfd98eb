/* Energy so far: which channels are added, wraps, power over time, and what is missing. */
#include "support/cmocka.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "record/live.h"

#define S (INT64_C(1000000000))

struct fixture {
    struct nrg_found found;
    struct nrg_channel channels[4];
    bool wanted[4];
    struct nrg_live live;
};

static struct nrg_channel *add(struct fixture *f, const char *name, const char *parent,
                               enum nrg_quantity quantity)
{
    struct nrg_channel *c = &f->channels[f->found.n_channels];
    f->wanted[f->found.n_channels++] = true;
    nrg_copy(c->name, sizeof c->name, name);
    nrg_copy(c->parent, sizeof c->parent, parent);
    c->quantity = quantity;
    c->kind = quantity == NRG_ENERGY ? NRG_COUNTER : NRG_GAUGE;
    c->scale = 0.5;
    return c;
}

static void begin(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    f->found.channels = f->channels;
    f->found.wanted = f->wanted;
    nrg_live_init(&f->live);
}

static void ready(struct fixture *f)
{
    assert_int_equal(nrg_live_add(&f->live, &f->found), 0);
    nrg_live_choose(&f->live);
}

static void expect(struct fixture *f, double energy_j, int64_t t_ns)
{
    struct nrg_live_sum sum;
    assert_int_equal(nrg_live_energy(&f->live, &sum), 0);
    assert_float_equal(sum.energy_j, energy_j, 1e-9);
    assert_int_equal(sum.t_ns, t_ns);
}

/* core is in package, psys is wide, package's power is its energy again. */
static void parts_are_added_once(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    add(&f, "package-0", "", NRG_ENERGY)->covers_cpu = true;
    add(&f, "core-0", "package-0", NRG_ENERGY);
    struct nrg_channel *psys = add(&f, "psys", "", NRG_ENERGY);
    psys->wide = psys->covers_cpu = true;
    add(&f, "package-0", "", NRG_POWER);
    ready(&f);
    nrg_live_row(&f.live, &f.found, 0, 1 * S, (int64_t[]){100, 10, 1000, 7});
    expect(&f, 0, 1 * S);
    nrg_live_row(&f.live, &f.found, 0, 3 * S, (int64_t[]){140, 30, 5000, 7});
    expect(&f, 20, 3 * S);
    nrg_live_release(&f.live);
}

static void counters_wrap_and_miss(void **state)
{
    struct fixture f;
    struct nrg_live_sum sum;
    (void)state;
    begin(&f);
    struct nrg_channel *c = add(&f, "package-0", "", NRG_ENERGY);
    c->wrap = 1000;
    c->provenance = NRG_ESTIMATED;
    ready(&f);
    assert_int_equal(nrg_live_energy(&f.live, &sum), -ENODATA);
    nrg_live_row(&f.live, &f.found, 0, 1 * S, (int64_t[]){990});
    nrg_live_row(&f.live, &f.found, 0, 2 * S, (int64_t[]){NRG_MISSING});
    nrg_live_row(&f.live, &f.found, 0, 3 * S, (int64_t[]){20});
    expect(&f, 15, 3 * S);
    assert_int_equal(nrg_live_energy(&f.live, &sum), 0);
    assert_int_equal(sum.provenance, NRG_ESTIMATED);
    nrg_live_release(&f.live);
}

/* A GPU alone says less than the wall: 10 W to 30 W over 2 s are 40 J. */
static void the_widest_where_parts_have_no_processor(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    add(&f, "gpu-0", "", NRG_POWER);
    struct nrg_channel *wall = add(&f, "wall", "", NRG_POWER);
    wall->wide = wall->covers_cpu = true;
    ready(&f);
    nrg_live_row(&f.live, &f.found, 0, 1 * S, (int64_t[]){2, 20});
    nrg_live_row(&f.live, &f.found, 0, 3 * S, (int64_t[]){2, 60});
    expect(&f, 40, 3 * S);
    nrg_live_release(&f.live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_added_once),
        cmocka_unit_test(counters_wrap_and_miss),
        cmocka_unit_test(the_widest_where_parts_have_no_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
