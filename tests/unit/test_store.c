/* record/store/writer.c and recording.c: what is committed is there, once, whatever happens after.
 */
#include "support/cmocka.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/read/recording.h"
#include "record/store/writer.h"

struct fixture {
    char dir[64], path[96];
    struct nrg_store *store;
    int series;
    int64_t added;
};

static const struct nrg_driver driver = {.name = "test"};

static void begin(struct fixture *f)
{
    struct nrg_channel channel = {.name = "package-0", .scale = 1e-6};
    bool wanted[] = {true};
    struct nrg_found found = {
        .driver = &driver, .channels = &channel, .n_channels = 1, .wanted = wanted};
    struct nrg_error err;
    *f = (struct fixture){.dir = "/tmp/nrg-store-XXXXXX"};
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof f->path, "%s/x.nrg", f->dir);
    assert_int_equal(nrg_store_create(f->path, false, &f->store, &err), 0);
    assert_int_equal(nrg_store_sensor(f->store, &found, NRG_NS_PER_MS, &f->series, 1), 0);
}

static void end(struct fixture *f)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", f->dir);
    assert_int_equal(system(command), 0);
}

static void add_rows(struct fixture *f, int n)
{
    struct nrg_rows rows;
    nrg_rows_init(&rows, 1);
    for (int i = 0; i < n; i++, f->added++) {
        int64_t raw = f->added * 3;
        nrg_rows_add(&rows, (1 + f->added) * NRG_NS_PER_MS, 100, &raw);
    }
    assert_int_equal(nrg_store_rows(f->store, f->series, &rows), 0);
    nrg_rows_release(&rows);
}

struct count {
    int64_t n;
    size_t chunks;
};

static int on_rows(void *arg, const struct nrg_rows *rows)
{
    struct count *count = arg;
    for (size_t i = 0; i < rows->n; i++, count->n++) {
        assert_int_equal(nrg_rows_column(rows, 0)[i], count->n * 3);
        int64_t off = rows->t_ns[i] - (1 + count->n) * NRG_NS_PER_MS;
        assert_true(off >= -10 && off <= 10);
    }
    count->chunks++;
    return 0;
}

static struct count read_back(const struct fixture *f)
{
    struct nrg_recording *recording;
    struct nrg_error err;
    struct count count = {0};
    size_t damaged = 0;
    assert_int_equal(nrg_recording_open(f->path, &recording, &err), 0);
    assert_int_equal(nrg_recording_read_series(recording, f->series, on_rows, &count, &damaged), 0);
    assert_int_equal(damaged, 0);
    nrg_recording_close(recording);
    return count;
}

/* What another process would see at any moment: the committed rows, each once. */
static void committed_rows_are_there_once(void **state)
{
    struct fixture f;
    struct nrg_error err;
    (void)state;
    begin(&f);
    for (int second = 0; second < 40; second++) {
        add_rows(&f, 1000);
        assert_int_equal(nrg_store_commit(f.store), 0);
        if (second % 7 == 0)
            assert_int_equal(read_back(&f).n, f.added);
    }
    assert_true(read_back(&f).chunks < 30); /* merged on the way */
    add_rows(&f, 5);                        /* not committed: close does it */
    assert_int_equal(nrg_store_close(f.store, &err), 0);
    struct count count = read_back(&f);
    assert_int_equal(count.n, 40005);
    assert_true(count.chunks <= 40005 / NRG_MERGE_ROWS + 1);
    snprintf(f.path + strlen(f.path), 8, "-wal");
    assert_int_not_equal(access(f.path, F_OK), 0);
    end(&f);
}

static void finished_twice_is_finished_once(void **state)
{
    struct fixture f;
    struct nrg_error err;
    (void)state;
    begin(&f);
    add_rows(&f, 10);
    assert_int_equal(nrg_store_finish(f.store), 0);
    assert_null(nrg_store_spilled(f.store));
    assert_int_equal(nrg_store_close(f.store, &err), 0);
    assert_int_equal(read_back(&f).n, 10);
    end(&f);
}

static void an_existing_file_is_not_touched(void **state)
{
    struct fixture f;
    struct nrg_store *second;
    struct nrg_error err;
    (void)state;
    begin(&f);
    assert_int_equal(nrg_store_ready(f.store, &err), 0);
    assert_int_equal(nrg_store_create(f.path, false, &second, &err), -EEXIST);
    assert_int_equal(nrg_store_create(f.dir, true, &second, &err), -EINVAL);
    assert_int_equal(nrg_store_create("/nonexistent/x.nrg", false, &second, &err), -ENOENT);
    add_rows(&f, 3);
    assert_int_equal(nrg_store_close(f.store, &err), 0);
    assert_int_equal(read_back(&f).n, 3);
    end(&f);
}

static void small_tables_come_back(void **state)
{
    struct fixture f;
    struct nrg_error err;
    struct nrg_recording *r;
    struct nrg_run run = {.id = 1, .kind = "run", .begin_ns = 5, .exit_code = -1};
    struct nrg_process_info p = {.id = 2,
                                 .pid = 77,
                                 .uid = -1,
                                 .name = "a\x1b"
                                         "b",
                                 .command = "c"};
    struct nrg_event event = {.t_ns = 9, .kind = "fault", .source = "x", .detail = "y"};
    size_t n;
    (void)state;
    begin(&f);
    nrg_store_text(f.store, "note.x", "evil \x1b[31m \xff");
    nrg_store_integer(f.store, "answer", INT64_C(1) << 40);
    nrg_store_integer(f.store, "debt", INT64_MIN + 1);
    nrg_store_run(f.store, &run);
    run.end_ns = 50;
    run.exit_code = 255;
    nrg_store_run(f.store, &run); /* the same again: replaces */
    nrg_store_process(f.store, &p);
    p.cpu_ns = 123;
    nrg_store_process(f.store, &p);
    nrg_store_event(f.store, &event);
    assert_int_equal(nrg_store_close(f.store, &err), 0);
    assert_int_equal(nrg_recording_open(f.path, &r, &err), 0);
    assert_string_equal(nrg_recording_text(r, "note.x"), "evil ?[31m ?");
    int64_t answer;
    assert_int_equal(nrg_recording_integer(r, "answer", &answer), 0);
    assert_int_equal(answer, INT64_C(1) << 40);
    assert_int_equal(nrg_recording_integer(r, "debt", &answer), -EBADMSG); /* no count */
    assert_int_equal(nrg_recording_integer(r, "question", &answer), -ENOENT);
    const struct nrg_run *runs = nrg_recording_runs(r, &n);
    assert_int_equal(n, 1);
    assert_int_equal(runs[0].end_ns, 50);
    assert_int_equal(runs[0].exit_code, 255);
    const struct nrg_process_info *processes = nrg_recording_processes(r, &n);
    assert_int_equal(n, 1);
    assert_int_equal(processes[0].cpu_ns, 123);
    assert_string_equal(processes[0].name, "a?b");
    nrg_recording_events(r, &n);
    assert_int_equal(n, 1);
    nrg_recording_close(r);
    end(&f);
}

/* The disk is full: SQLite's page limit plays it. Nothing is lost, and close tries again. */
static void a_full_disk_moves_to_memory(void **state)
{
    struct fixture f;
    struct nrg_error err;
    struct nrg_event event = {.t_ns = 9, .kind = "fault", .source = "x"};
    (void)state;
    memset(event.detail, 'x', sizeof event.detail - 1);
    begin(&f);
    add_rows(&f, 100);
    assert_int_equal(nrg_store_commit(f.store), 0);
    assert_int_equal(
        sqlite3_exec(nrg_store_database(f.store), "PRAGMA max_page_count=1", NULL, NULL, NULL), 0);
    for (int i = 0; i < 40 && !nrg_store_spilled(f.store); i++) {
        for (int k = 0; k < 50; k++)
            nrg_store_event(f.store, &event);
        add_rows(&f, 10);
        assert_int_equal(nrg_store_commit(f.store), 0);
    }
    assert_non_null(nrg_store_spilled(f.store));
    add_rows(&f, 100); /* goes on in memory */
    assert_int_equal(nrg_store_commit(f.store), 0);
    assert_int_equal(nrg_store_close(f.store, &err), 0); /* the limit was the connection's own */
    assert_int_equal(read_back(&f).n, f.added);
    end(&f);
}

struct shape {
    int64_t low, n_tracks; /* of the keys */
    bool in_time;
};

/* Tracks and times of row i; a column that only grows tells rows of one time apart. */
static void shape_row(const struct shape *s, int64_t i, int64_t *t_ns, int64_t *values)
{
    uint64_t mixed = (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15) >> 33;
    *t_ns = NRG_NS_PER_S + (s->in_time ? i / 3 : (int64_t)(mixed % 50));
    values[0] = s->low + (int64_t)(mixed % (uint64_t)s->n_tracks);
    values[1] = i;
}

struct order_seen {
    const struct shape *shape;
    int64_t n, track, t_ns, row;
    bool rows[3000];
};

static int check_order(void *arg, const struct nrg_rows *rows)
{
    struct order_seen *seen = arg;
    for (size_t i = 0; i < rows->n; i++, seen->n++) {
        int64_t track = nrg_rows_column(rows, 0)[i], row = nrg_rows_column(rows, 1)[i];
        int64_t t_ns, values[2];
        shape_row(seen->shape, row, &t_ns, values);
        assert_int_equal(rows->t_ns[i], t_ns); /* what belongs together stays together */
        assert_int_equal(track, values[0]);
        assert_false(seen->rows[row]);
        seen->rows[row] = true;
        if (i)
            assert_true(track > seen->track || (track == seen->track && t_ns > seen->t_ns) ||
                        (track == seen->track && t_ns == seen->t_ns && row > seen->row));
        seen->track = track;
        seen->t_ns = t_ns;
        seen->row = row;
    }
    return 0;
}

/* By track and time; rows of one time in the order in which they came, a begin before its end. */
static void rows_of_spans_are_sorted_by_track(void **state)
{
    static const struct shape shapes[] = {
        {7, 1, true},         {1, 5, true},  {INT64_MIN + 1, 3, true},
        {0, INT64_MAX, true}, {1, 5, false}, {0, INT64_MAX, false}};
    (void)state;
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        struct fixture f;
        struct nrg_error err;
        struct nrg_recording *recording;
        struct nrg_rows rows;
        struct order_seen seen = {.shape = &shapes[k]};
        begin(&f);
        int series = nrg_store_series(f.store, NRG_THREADS);
        nrg_rows_init(&rows, NRG_T_COLUMNS);
        for (int64_t i = 0, t_ns, values[NRG_T_COLUMNS]; i < 3000; i++) {
            shape_row(&shapes[k], i, &t_ns, values);
            nrg_rows_add(&rows, t_ns, 0, values);
        }
        assert_int_equal(nrg_store_rows(f.store, series, &rows), 0);
        nrg_rows_release(&rows);
        assert_int_equal(nrg_store_close(f.store, &err), 0);
        assert_int_equal(nrg_recording_open(f.path, &recording, &err), 0);
        assert_int_equal(nrg_recording_read_series(recording, series, check_order, &seen, NULL), 0);
        assert_int_equal(seen.n, 3000);
        nrg_recording_close(recording);
        end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(committed_rows_are_there_once),
        cmocka_unit_test(finished_twice_is_finished_once),
        cmocka_unit_test(an_existing_file_is_not_touched),
        cmocka_unit_test(small_tables_come_back),
        cmocka_unit_test(rows_of_spans_are_sorted_by_track),
        cmocka_unit_test(a_full_disk_moves_to_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
