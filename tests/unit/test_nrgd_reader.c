/*
 * nrgd's coarse view: one count of a counter for all lists of sensors, whatever their age; an epoch
 * of its own for each life of it; one reading of a gauge in a second.
 */
#include "support/cmocka.h"

#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "daemon/session.h"
#include "support/tree.h"

#define ZONE  "/sys/class/powercap/intel-rapl:0"
#define CORE  "/sys/class/powercap/intel-rapl:0:0"
#define RANGE INT64_C(262143328850)

struct fixture {
    struct tree tree;
    struct nrg_catalogs catalogs;
    int64_t energy_uj;
    int lists; /* that differ */
};

struct client {
    struct nrg_session session;
    struct nrg_wire_row row;
};

static void close_to_others(const struct fixture *f, const char *file)
{
    char path[256];
    snprintf(path, sizeof path, "%s%s", f->tree.path, file);
    assert_int_equal(chmod(path, 0600), 0);
}

static void set_energy(struct fixture *f, int64_t energy_uj)
{
    f->energy_uj = energy_uj;
    tree_write(&f->tree, ZONE "/energy_uj", "%lld\n", (long long)(energy_uj % RANGE));
    close_to_others(f, ZONE "/energy_uj");
}

static void begin(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    tree_init(&f->tree);
    tree_write(&f->tree, ZONE "/name", "package-0\n");
    tree_write(&f->tree, ZONE "/max_energy_range_uj", "%lld\n", (long long)RANGE);
    set_energy(f, RANGE - 1000000);
    tree_write(&f->tree, CORE "/name", "core\n");
    tree_write(&f->tree, CORE "/energy_uj", "5\n");
    close_to_others(f, CORE "/energy_uj");
    f->catalogs.ctx = &f->tree.ctx;
}

static void end(struct fixture *f)
{
    nrg_catalogs_release(&f->catalogs);
    assert_null(f->catalogs.newest);
    assert_null(f->catalogs.readers.first);
    tree_release(&f->tree);
}

static const union nrg_wire_packet *ask(struct client *c, enum nrg_wire_type type)
{
    static struct nrg_reply reply;
    union nrg_wire_packet packet;
    size_t size = nrg_wire_begin(&packet, type, true);
    if (type == NRG_WIRE_OPEN)
        packet.request.wanted = 1;
    assert_int_equal(nrg_session_take(&c->session, &packet, size, &reply), 0);
    nrg_reply_release(&reply);
    return &reply.packet;
}

/* Of a list of its own. */
static void come(struct fixture *f, struct client *c)
{
    if (f->catalogs.newest)
        f->catalogs.newest->made_ns = 0;
    tree_write(&f->tree, CORE "/max_energy_range_uj", "%lld\n", (long long)RANGE + f->lists++);
    nrg_session_init(&c->session, &f->catalogs, NRG_VIEW_COARSE);
    ask(c, NRG_WIRE_HELLO);
    ask(c, NRG_WIRE_OPEN);
}

static const struct nrg_wire_row *read_row(struct client *c)
{
    c->row = ask(c, NRG_WIRE_READ)->row;
    return &c->row;
}

/* A second later, as far as the readers know. */
static void tick(struct fixture *f, int64_t step_uj)
{
    set_energy(f, f->energy_uj + step_uj);
    for (struct nrg_sensor_reader *r = f->catalogs.readers.first; r; r = r->next) {
        r->now.t_ns = 0;
        r->last_ns[0] -= NRG_NS_PER_S;
    }
    nrg_catalogs_tick(&f->catalogs);
}

static void one_count_for_all_lists(void **state)
{
    static struct fixture f;
    static struct client clients[4];
    (void)state;
    begin(&f);
    for (size_t i = 0; i < 4; i++) {
        come(&f, &clients[i]);
        for (size_t k = 0; k < i; k++)
            assert_ptr_not_equal(clients[i].session.catalog, clients[k].session.catalog);
        tick(&f, 300000); /* the next one comes at another phase of the joule */
    }
    for (size_t s = 0; s < 6; s++) {
        tick(&f, 310000);
        const struct nrg_wire_row first = *read_row(&clients[0]);
        assert_int_equal(first.raw[0], (4 * 300000 + (int64_t)(s + 1) * 310000) / 1000000);
        for (size_t i = 1; i < 4; i++)
            assert_memory_equal(read_row(&clients[i]), &first, sizeof first);
    }
    for (size_t i = 0; i < 4; i++)
        nrg_session_release(&clients[i].session);
    end(&f);
}

static void each_life_of_a_count_has_its_epoch(void **state)
{
    static struct fixture f;
    static struct client a, b;
    (void)state;
    begin(&f);
    come(&f, &a);
    struct nrg_wire_row first = *read_row(&a);
    assert_int_equal(first.raw[0], 0);
    assert_int_equal(first.epoch, first.t_ns);
    tick(&f, 2500000); /* across the end of the counter's range */
    assert_int_equal(read_row(&a)->raw[0], 2);
    assert_int_equal(a.row.epoch, first.epoch);
    tick(&f, 1000000 - f.energy_uj); /* it was reset */
    assert_int_equal(read_row(&a)->raw[0], 0);
    assert_true(a.row.epoch > first.epoch);
    come(&f, &b);
    assert_int_equal(read_row(&b)->epoch, a.row.epoch);
    nrg_session_release(&a.session);
    nrg_session_release(&b.session);
    come(&f, &a); /* nobody was there in between */
    assert_true(read_row(&a)->epoch > b.row.epoch);
    assert_int_equal(a.row.raw[0], 0);
    nrg_session_release(&a.session);
    end(&f);
}

static void a_counter_that_went_away_begins_anew(void **state)
{
    static struct fixture f;
    static struct client a;
    (void)state;
    begin(&f);
    come(&f, &a);
    int64_t epoch = read_row(&a)->epoch;
    struct nrg_sensor_reader *r = f.catalogs.readers.first;
    r->found.driver->close(r->state); /* as after ENODEV */
    r->state = NULL;
    r->retry_ns = INT64_MAX;
    tick(&f, 5000000);
    assert_int_equal(read_row(&a)->raw[0], NRG_MISSING);
    assert_true(a.row.error[0] < 0);
    assert_int_equal(a.row.epoch, epoch);
    r->retry_ns = 0;
    tick(&f, 5000000);
    assert_int_equal(read_row(&a)->raw[0], 10); /* powercap's counter went on */
    nrg_session_release(&a.session);
    end(&f);
}

/* Its file was replaced, as a perf event stands still once its CPU was off-line. */
static void a_dead_counter_is_opened_anew(void **state)
{
    static struct fixture f;
    static struct client a, b;
    char path[256], old[300];
    (void)state;
    begin(&f);
    come(&f, &a);
    tick(&f, 2500000);
    assert_int_equal(read_row(&a)->raw[0], 2);
    snprintf(path, sizeof path, "%s" ZONE "/energy_uj", f.tree.path);
    snprintf(old, sizeof old, "%s.old", path);
    assert_int_equal(rename(path, old), 0);
    tick(&f, 1000000);
    come(&f, &b); /* the same reader */
    tick(&f, 1000000);
    assert_int_equal(read_row(&b)->raw[0], 2);
    f.catalogs.readers.first->pulse.standing[0].since_ns -= 10 * NRG_NS_PER_S;
    tick(&f, 1000000);
    tick(&f, 1000000);
    assert_int_equal(read_row(&b)->raw[0], 6);
    nrg_session_release(&a.session);
    nrg_session_release(&b.session);
    end(&f);
}

/* Lists that are alive are few: who comes again and again does not keep what comes later out. */
static void what_has_not_changed_is_one_list(void **state)
{
    static struct fixture f;
    static struct client old[6], new;
    (void)state;
    begin(&f);
    for (size_t i = 0; i < 6; i++) {
        f.lists = 0;
        come(&f, &old[i]);
        assert_ptr_equal(old[i].session.catalog, old[0].session.catalog);
    }
    f.lists = 1;
    come(&f, &new);
    assert_ptr_not_equal(new.session.catalog, old[0].session.catalog);
    for (size_t i = 0; i < 6; i++)
        nrg_session_release(&old[i].session);
    nrg_session_release(&new.session);
    end(&f);
}

/* Descriptors that could not be sent are closed, and their numbers are others': no refusal has
 * them. */
static void what_is_closed_is_not_sent(void **state)
{
    static struct fixture f;
    static struct nrg_session session;
    static struct nrg_reply reply;
    union nrg_wire_packet packet;
    (void)state;
    begin(&f);
    nrg_session_init(&session, &f.catalogs, NRG_VIEW_FULL);
    session.spare_fds = NRG_SHARE_MAX;
    size_t size = nrg_wire_begin(&packet, NRG_WIRE_HELLO, true);
    assert_int_equal(nrg_session_take(&session, &packet, size, &reply), 0);
    size = nrg_wire_begin(&packet, NRG_WIRE_OPEN, true);
    packet.request.wanted = 1;
    assert_int_equal(nrg_session_take(&session, &packet, size, &reply), 0);
    assert_int_equal(reply.n_fds, 1);
    tree_remove(&f.tree, ZONE "/energy_uj");
    assert_true(nrg_session_stream(&session, &reply) < 0);
    assert_int_equal(reply.packet.head.type, NRG_WIRE_REFUSED);
    assert_int_equal(reply.n_fds, 0);
    nrg_session_release(&session);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_count_for_all_lists),
                                       cmocka_unit_test(each_life_of_a_count_has_its_epoch),
                                       cmocka_unit_test(a_counter_that_went_away_begins_anew),
                                       cmocka_unit_test(a_dead_counter_is_opened_anew),
                                       cmocka_unit_test(what_has_not_changed_is_one_list),
                                       cmocka_unit_test(what_is_closed_is_not_sent)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
