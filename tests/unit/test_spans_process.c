/*
 * Spans between processes, and the recorder inside one. The marking programs are this program
 * itself, started again with the name of what to do; the recordings are read back with SQLite
 * and the library's own reader.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <nrg/nrg.h>
#include <sqlite3.h>

#include "mark/client.h"
#include "support/span_bench.h"

/* LeakSanitizer's tracer crashes on the thread that has a table of descriptors of its own
 * (record/isolate.c), so that it is not asked at the end. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return 1;
}

/* What the started programs do; their exit code says whether they had a recorder. */
static int play(const char *part)
{
    int active = nrg_recording_active();
    for (int i = 0; i < 10; i++) {
        nrg_span_begin("from another process");
        nrg_span_end();
    }
    if (!strcmp(part, "die")) {
        nrg_span_begin("never ended");
        kill(getpid(), SIGKILL);
    }
    return active ? 7 : 8;
}

/* Starts it with that variable; close_fd: as programs do that close what they do not know. */
static int start(const struct nrg_span_segment *s, const char *part, const char *variable,
                 bool close_fd)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        fcntl(s->fd, F_SETFD, 0);
        if (close_fd)
            close(s->fd);
        putenv((char *)variable);
        execl("/proc/self/exe", "test_spans_process", part, NULL);
        _exit(99);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void test_inherited_and_by_path(void **state)
{
    (void)state;
    struct span_bench b;
    char variable[NRG_RING_VARIABLE_SIZE];
    bench_begin(&b, false);
    nrg_span_segment_offer(&b.segment, getpid(), variable);
    assert_int_equal(start(&b.segment, "mark", variable, false), 7);
    assert_int_equal(start(&b.segment, "mark", variable, true), 7);
    bench_end(&b);
    assert_int_equal(bench_check(&b), 0);
    assert_int_equal(b.n_tracks, 2);
    assert_int_equal(b.n_names, 1); /* two processes, one name */
    assert_int_equal(b.totals.spans, 20);
    bench_release(&b);
}

static void test_killed(void **state)
{
    (void)state;
    struct span_bench b;
    char variable[NRG_RING_VARIABLE_SIZE];
    bench_begin(&b, false);
    nrg_span_segment_offer(&b.segment, getpid(), variable);
    for (int i = 0; i < NRG_RING_SLOTS + 30; i++) { /* their slots must come free */
        assert_int_equal(start(&b.segment, "die", variable, i % 2), -SIGKILL);
        bench_step(&b);
        bench_step(&b); /* the first finds that it has gone */
    }
    bench_end(&b);
    assert_int_equal(bench_check(&b), NRG_RING_SLOTS + 30);
    assert_int_equal(b.totals.spans, 11 * (NRG_RING_SLOTS + 30));
    assert_int_equal(b.totals.dropped, 0);
    bench_release(&b);
}

static void test_wrong_offers(void **state)
{
    (void)state;
    struct span_bench b;
    char good[NRG_RING_VARIABLE_SIZE], bad[NRG_RING_VARIABLE_SIZE + 16];
    bench_begin(&b, false);
    nrg_span_segment_offer(&b.segment, getpid(), good);
    static const char *const texts[] = {"",
                                        "1",
                                        "2,3,4,5,6",
                                        "1,-1,0,zz,/",
                                        "1,1,1,00,/dev/zero",
                                        "1,0,99999999999999999999999,0011,/proc/self/fd/0"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        snprintf(bad, sizeof bad, "NRG_SPANS=%s", texts[i]);
        assert_int_equal(start(&b.segment, "mark", bad, false), 8);
    }
    char *token = strrchr(good, ',') - 1;
    *token = *token == '0' ? '1' : '0';
    assert_int_equal(start(&b.segment, "mark", good, false), 8);
    *token = *token == '0' ? '1' : '0';
    uint32_t *const fields[] = {(uint32_t *)&b.segment.header->magic, &b.segment.header->version,
                                &b.segment.header->clock, &b.segment.header->n_slots,
                                &b.segment.header->n_records};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        *fields[i] ^= 0x40;
        nrg_span_segment_offer(&b.segment, getpid(), good);
        assert_int_equal(start(&b.segment, "mark", good, false), 8);
        *fields[i] ^= 0x40;
    }
    assert_int_equal(start(&b.segment, "mark", good, false), 7);
    /* Another layout is counted; a wrong magic or token is not the recorder's memory at all. */
    assert_int_equal(nrg_span_segment_refusals(&b.segment)->programs, 4);
    bench_end(&b);
    assert_int_equal(b.totals.refused, 4);
    assert_int_equal(b.totals.spans, 10);
    assert_int_equal(start(&b.segment, "mark", good, false), 8); /* the recorder is gone */
    bench_release(&b);
}

/* The number is another file's by now, one of the same size even. */
static void test_reused_descriptor(void **state)
{
    (void)state;
    struct span_bench b;
    char variable[NRG_RING_VARIABLE_SIZE];
    bench_begin(&b, false);
    nrg_span_segment_offer(&b.segment, getpid(), variable);
    int other = memfd_create("other", 0), real = dup(b.segment.fd);
    assert_true(other >= 0 && real >= 0);
    assert_int_equal(ftruncate(other, (off_t)NRG_RING_BYTES), 0);
    dup2(other, b.segment.fd);
    assert_int_equal(start(&b.segment, "mark", variable, false), 8);
    struct stat st;
    assert_int_equal(fstat(other, &st), 0);
    assert_int_equal(st.st_blocks, 0); /* nothing was written to it */
    dup2(real, b.segment.fd);
    close(other);
    close(real);
    bench_end(&b);
    bench_release(&b);
}

static int64_t query(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    int64_t value = sqlite3_step(stmt) == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : -1;
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return value;
}

/*
 * A forked child ends through exit, so that the library's own exit handler runs, but before the
 * leak checker's: that one hangs on locks that other threads held at the fork.
 */
static int child_code = -1;

__attribute__((destructor)) static void end_child(void)
{
    if (child_code >= 0)
        _exit(child_code);
}

static void exit_child(int code)
{
    child_code = code;
    exit(code);
}

static char folder[64], first_path[96], second_path[96];

static struct nrg_recorder_settings settings(void)
{
    return (struct nrg_recorder_settings){
        .size = sizeof(struct nrg_recorder_settings), .sensors = "machine", .rate_hz = 100};
}

/* Before the recorder is loaded for good: then there is nothing to refuse any more. */
static void test_recorder_that_cannot_be_loaded(void **state)
{
    (void)state;
    setenv("NRG_RECORDER_LIBRARY", "/nowhere/libnrg-recorder.so", 1);
    assert_int_equal(nrg_recorder_start(first_path), -ELIBACC);
    assert_non_null(strstr(nrg_recorder_reason(), "/nowhere/libnrg-recorder.so"));
    setenv("NRG_RECORDER_LIBRARY", "libm.so.6", 1);
    assert_int_equal(nrg_recorder_start(first_path), -ELIBACC);
    assert_non_null(strstr(nrg_recorder_reason(), "nrg_inprocess"));
    setenv("NRG_RECORDER_LIBRARY", NRG_TEST_OTHER_RECORDER, 1);
    assert_int_equal(nrg_recorder_start(first_path), -ELIBBAD);
    assert_non_null(strstr(nrg_recorder_reason(), "is of nrg 0.0.1, libnrg of " NRG_VERSION));
    unsetenv("NRG_RECORDER_LIBRARY"); /* beside this program there is none */
    assert_int_equal(nrg_recorder_start(first_path), -ELIBACC);
    assert_non_null(strstr(nrg_recorder_reason(), "/tests/libnrg-recorder.so"));
    assert_int_equal(access(first_path, F_OK), -1);
    assert_int_equal(nrg_recording_active(), 0);
    setenv("NRG_RECORDER_LIBRARY", NRG_TEST_RECORDER, 1);
}

static void test_recorder_inside(void **state)
{
    (void)state;
    struct nrg_recorder_settings s = settings();
    assert_int_equal(nrg_recorder_stop(), -ENOENT);
    assert_string_equal(nrg_recorder_reason(), "there is no recorder in this process");
    assert_int_equal(nrg_recorder_note("a", "b"), -ENOENT);
    assert_int_equal(nrg_recorder_model("a", "onnx", "b", 1), -ENOENT);
    assert_int_equal(nrg_recorder_start_with(first_path, &s), 0);
    assert_string_equal(nrg_recorder_reason(), "");
    assert_int_equal(nrg_recording_active(), 1);
    assert_int_equal(nrg_recorder_start_with(second_path, &s), -EBUSY);
    assert_int_equal(access(second_path, F_OK), -1);
    assert_int_equal(nrg_recorder_note("seed", "17"), 0);
    assert_int_equal(nrg_recorder_note("", "17"), -EINVAL);
    assert_int_equal(nrg_recorder_model("net.pt", "torchscript", "bytes", 5), 0);
    assert_int_equal(nrg_recorder_model("net.pt", "", "bytes", 5), -EINVAL);
    for (int i = 0; i < 1000; i++) {
        nrg_span_begin("work");
        nrg_count_add("samples", 2);
        nrg_span_end();
    }
    assert_int_equal(nrg_recorder_stop(), 0);
    assert_int_equal(nrg_recording_active(), 0);
    nrg_span_begin("after"); /* not recorded */
    nrg_span_end();
    assert_int_equal(query(first_path, "SELECT value FROM meta WHERE key='spans'"), 1000);
    assert_int_equal(query(first_path, "SELECT value FROM meta WHERE key='spans_dropped'"), 0);
    assert_int_equal(query(first_path, "SELECT value='17' FROM meta WHERE key='note.seed'"), 1);
    assert_int_equal(query(first_path, "SELECT count(*) FROM graph WHERE name='net.pt'"), 1);
    assert_int_equal(query(first_path, "SELECT count(*) FROM span_name"), 2);
    assert_int_equal(query(first_path, "SELECT sum(n) FROM chunk JOIN series ON series.id=series"
                                       " WHERE kind='spans'"),
                     3000);
    assert_int_equal(query(first_path, "SELECT count(*) FROM run WHERE kind='run' AND"
                                       " end_ns > begin_ns"),
                     1);
    assert_int_equal(query(first_path, "SELECT pid FROM process WHERE pid > 0 LIMIT 1"), getpid());
}

static void test_recorder_inside_refuses(void **state)
{
    (void)state;
    struct nrg_recorder_settings s = settings();
    int64_t spans = query(first_path, "SELECT value FROM meta WHERE key='spans'");
    assert_int_equal(nrg_recorder_start_with(first_path, &s), -EEXIST);
    assert_int_equal(query(first_path, "SELECT value FROM meta WHERE key='spans'"), spans);
    assert_int_equal(nrg_recorder_start("/proc/nowhere/a.nrg"), -ENOENT);
    assert_non_null(strstr(nrg_recorder_reason(), "/proc/nowhere/a.nrg"));
    assert_int_equal(nrg_recorder_start(""), -EINVAL);
    assert_int_equal(nrg_recorder_start(NULL), -EINVAL);
    s.rate_hz = -1;
    assert_int_equal(nrg_recorder_start_with(second_path, &s), -EINVAL);
    s = settings();
    s.sensors = "no-such-driver";
    assert_true(nrg_recorder_start_with(second_path, &s) < 0);
    assert_non_null(strstr(nrg_recorder_reason(), "no-such-driver"));
    s = settings();
    s.size = 0;
    assert_int_equal(nrg_recorder_start_with(second_path, &s), -EINVAL);
    s.root = "/no/such/root";
    s.size = sizeof s;
    assert_true(nrg_recorder_start_with(second_path, &s) < 0);
    assert_int_equal(access(second_path, F_OK), -1);
    assert_int_equal(nrg_recording_active(), 0);
}

/* The child has no recorder, but what it marks is its parent's. */
static void test_recorder_inside_forks(void **state)
{
    (void)state;
    struct nrg_recorder_settings s = settings();
    int status;
    s.overwrite = 1;
    assert_int_equal(nrg_recorder_start_with(first_path, &s), 0);
    nrg_span_begin("parent");
    pid_t child = fork();
    if (child == 0) {
        int wrong = nrg_recorder_stop() != -ENOENT || !nrg_recording_active() ||
                    nrg_recorder_start_with(second_path, &s) != -EBUSY;
        nrg_span_begin("child");
        nrg_span_end();
        exit_child(wrong); /* through atexit, which must not end the parent's recording */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    nrg_span_end();
    assert_int_equal(nrg_recorder_stop(), 0);
    assert_int_equal(query(first_path, "SELECT value FROM meta WHERE key='spans'"), 2);
    assert_int_equal(query(first_path, "SELECT count(DISTINCT pid) FROM span_track"), 2);
    assert_true(query(first_path, "SELECT value FROM meta WHERE key='end_ns'") > 0);
}

static void test_recorder_inside_stops_at_exit(void **state)
{
    (void)state;
    struct nrg_recorder_settings s = settings();
    int status;
    pid_t child = fork();
    if (child == 0) {
        if (nrg_recorder_start_with(second_path, &s))
            exit_child(1);
        nrg_span_begin("until the end");
        exit_child(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(query(second_path, "SELECT value FROM meta WHERE key='end_ns'") > 0);
    assert_int_equal(query(second_path, "SELECT value FROM meta WHERE key='spans'"), 1);
    assert_int_equal(query(second_path, "SELECT count(*) FROM run WHERE end_ns > begin_ns"), 1);
}

static int mark_with(uint32_t name, const char *path)
{
    struct nrg_recorder_settings s = settings();
    s.overwrite = 1;
    if (nrg_recorder_start_with(path, &s))
        return 1;
    nrg_span_begin("new in this recording");
    nrg_span_begin_name(name);
    nrg_span_unwind(0);
    return nrg_recorder_stop() ? 1 : 0;
}

static void expect_kept(const char *path)
{
    assert_int_equal(query(path, "SELECT count(*) FROM span_name"), 2);
    assert_int_equal(
        query(path, "SELECT count(*) FROM span_name WHERE name='kept' AND kind='step'"), 1);
    assert_int_equal(query(path, "SELECT value FROM meta WHERE key='spans'"), 2);
    assert_int_equal(query(path, "SELECT value FROM meta WHERE key='spans_damaged'"), 0);
}

/* With the next recorder, and in a child with a recorder of its own, whose memory is new. */
static void test_numbers_outlive_the_recorder(void **state)
{
    (void)state;
    int status;
    uint32_t name = nrg_name_intern("kept", "step", NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mark_with(name, first_path), 0);
        expect_kept(first_path);
    }
    pid_t child = fork();
    if (child == 0)
        exit_child(mark_with(name, second_path));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    expect_kept(second_path);
}

/* What one recorder could not keep is not missing in the next. */
static void test_dropped_are_of_one_recorder(void **state)
{
    (void)state;
    struct nrg_recorder_settings s = settings();
    s.overwrite = 1;
    assert_int_equal(nrg_recorder_start_with(first_path, &s), 0);
    for (int i = 0; i < 1030; i++)
        nrg_span_begin("deep");
    nrg_span_unwind(0);
    assert_int_equal(nrg_recorder_stop(), 0);
    assert_int_equal(query(first_path, "SELECT value FROM meta WHERE key='spans_dropped'"), 6);
    assert_int_equal(mark_with(nrg_name_intern("kept", "step", NULL), second_path), 0);
    assert_int_equal(query(second_path, "SELECT value FROM meta WHERE key='spans_dropped'"), 0);
    assert_int_equal(query(second_path, "SELECT count(*) FROM event WHERE kind='lost'"), 0);
}

static int64_t cpu_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * NRG_NS_PER_S + ts.tv_nsec;
}

static void busy(int64_t until_ns)
{
    while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns)
        ;
}

/* The threads' CPU clocks are the kernel's; the process table must not have the recorder's. */
static void test_recorder_inside_counts_itself_apart(void **state)
{
    (void)state;
    struct nrg_recorder_settings s = settings();
    int64_t mine_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID), all_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    s.overwrite = 1;
    s.rate_hz = 1000; /* so that there is something to tell apart */
    assert_int_equal(nrg_recorder_start_with(first_path, &s), 0);
    nrg_span_begin("busy");
    busy(cpu_ns(CLOCK_THREAD_CPUTIME_ID) + 300 * NRG_NS_PER_MS);
    nrg_span_end();
    assert_int_equal(nrg_recorder_stop(), 0);
    mine_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - mine_ns;
    all_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - all_ns;
    int64_t recorded = query(first_path, "SELECT cpu_ns FROM process WHERE id > 1 LIMIT 1");
    int64_t before = query(first_path, "SELECT cpu_before_ns FROM process WHERE id > 1 LIMIT 1");
    assert_true(recorded - before < mine_ns + (all_ns - mine_ns) / 2 + 20 * NRG_NS_PER_MS);
    assert_true(recorded - before >= 300 * NRG_NS_PER_MS);
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/nrg-spans-%d", getpid());
    snprintf(first_path, sizeof first_path, "%s/first.nrg", folder);
    snprintf(second_path, sizeof second_path, "%s/second.nrg", folder);
    return mkdir(folder, 0700);
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(first_path);
    unlink(second_path);
    return rmdir(folder);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return play(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inherited_and_by_path),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_wrong_offers),
        cmocka_unit_test(test_reused_descriptor),
        cmocka_unit_test(test_recorder_that_cannot_be_loaded),
        cmocka_unit_test(test_recorder_inside),
        cmocka_unit_test(test_recorder_inside_refuses),
        cmocka_unit_test(test_recorder_inside_forks),
        cmocka_unit_test(test_recorder_inside_stops_at_exit),
        cmocka_unit_test(test_numbers_outlive_the_recorder),
        cmocka_unit_test(test_dropped_are_of_one_recorder),
        cmocka_unit_test(test_recorder_inside_counts_itself_apart),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
