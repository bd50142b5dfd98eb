/*
 * amd-smi: against stand-ins of AMD's two libraries (tests/fake_amd), which know the truth: the
 * counter and its step, wrap and stamps; GPUs that refuse, vanish, are the second die of a module;
 * processes of the kernel's compute driver; and that hwmon's power is the same GPU's.
 */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "sensors/amd/internal.h"
#include "sensors/integrate.h"

#define K "/sys/class/kfd/kfd/"

static const char *const libraries[] = {"NRG_TEST_FAKE_AMD_SMI", "NRG_TEST_FAKE_ROCM_SMI"};

static void begin(struct tree *t, const char *library, const char *script)
{
    char path[300];
    tree_init(t);
    tree_write(t, "/script", "%s", script);
    snprintf(path, sizeof path, "%s/script", t->path);
    setenv("NRG_FAKE_AMD", path, 1);
    setenv("NRG_AMD_LIBRARY", getenv(library) ? getenv(library) : library, 1);
}

static void nap_ms(long ms)
{
    struct timespec ts = {.tv_nsec = ms * 1000000};
    nanosleep(&ts, NULL);
}

/* Energy of the rows of group 0 by the channel's own rules, and the time between them in s. */
static double energy_j(const struct keep_sink *keep, const struct nrg_channel *c, double *seconds)
{
    double sum = 0;
    size_t last = SIZE_MAX;
    *seconds = 0;
    for (size_t i = 0; i < keep->n_rows; i++) {
        if (keep->rows[i].group != 0)
            continue;
        if (last != SIZE_MAX) {
            int64_t dt = keep->rows[i].t_ns - keep->rows[last].t_ns;
            double step =
                nrg_counter_step(c, keep->rows[last].raw[0], keep->rows[i].raw[0], dt, NULL);
            assert_true(step >= 0);
            sum += step * c->scale;
            *seconds += (double)dt / 1e9;
        }
        last = i;
    }
    return sum;
}

static void joules_by_both_libraries(void **state)
{
    static struct keep_sink keep;
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        struct tree t;
        struct nrg_probe probe;
        const struct nrg_found *found;
        double seconds;
        begin(&t, libraries[k],
              "gpu 0000:c1:00.0\npower 300\nbusy 83\nmemory 12345678\ncelsius 61\n");
        tree_probe(&t, &probe, "amd-smi");
        assert_int_equal(probe.n_found, 1);
        const struct nrg_channel *c = probe_channel(&probe, "gpu-0", &found);
        assert_int_equal(c->quantity, NRG_ENERGY);
        assert_true(fabs(c->scale - 15.3e-6) < 1e-11);
        assert_string_equal(found->sensor, "GPU 0 (AMD 0000:c1:00.0)");
        assert_string_equal(c->source, k ? "rsmi_dev_energy_count_get" : "amdsmi_get_energy_count");
        keep_open(&keep, &t, found);
        for (int i = 0; i < 40; i++) {
            keep_read(&keep);
            nap_ms(5);
        }
        double joules = energy_j(&keep, c, &seconds);
        assert_true(seconds > 0.05);
        assert_true(fabs(joules / seconds - 300) < 30); /* stamps are the library's own times */
        for (size_t i = 0; i < keep.n_rows; i++) {
            if (keep.rows[i].group != 1)
                continue;
            assert_int_equal(keep.rows[i].raw[0], 83);
            assert_int_equal(keep.rows[i].raw[1], 12345678);
            assert_int_equal(keep.rows[i].raw[2], 61);
        }
        assert_int_equal(keep.n_faults, 0);
        keep_close(&keep);
        nrg_probe_release(&probe);
        tree_release(&t);
    }
}

/* The count passes 2^64 (and 2^62, at which it is kept) during the reading. */
static void a_counter_that_wraps(void **state)
{
    static struct keep_sink keep;
    (void)state;
    for (int bits = 62; bits <= 64; bits += 2) {
        struct tree t;
        struct nrg_probe probe;
        const struct nrg_found *found;
        char script[160];
        double seconds, counts = 400 * (double)nrg_now_ns() / 1e9 / 15.3e-6,
                        ahead = 400 * 0.8 / 15.3e-6;
        uint64_t top = bits == 64 ? 0 : UINT64_C(1) << 62;
        snprintf(script, sizeof script, "gpu 0000:c1:00.0\npower 400\nstart %llu\n",
                 (unsigned long long)(top - (uint64_t)(counts + ahead)));
        begin(&t, libraries[0], script);
        tree_probe(&t, &probe, "amd-smi");
        const struct nrg_channel *c = probe_channel(&probe, "gpu-0", &found);
        assert_non_null(c);
        keep_open(&keep, &t, found);
        bool wrapped = false;
        for (int i = 0; i < 1000 && !wrapped; i++) {
            int64_t first = 0;
            keep_read(&keep);
            for (size_t r = keep.n_rows; r-- > 0;)
                first = keep.rows[r].group == 0 ? keep.rows[r].raw[0] : first;
            for (size_t r = 0; r < keep.n_rows; r++)
                wrapped |= keep.rows[r].group == 0 && keep.rows[r].raw[0] < first;
            nap_ms(5);
        }
        assert_true(wrapped);
        double joules = energy_j(&keep, c, &seconds);
        assert_true(fabs(joules / seconds - 400) < 20);
        keep_close(&keep);
        nrg_probe_release(&probe);
        tree_release(&t);
    }
}

/* A library that keeps its values gives one row per value. */
static void values_that_are_kept(void **state)
{
    static struct keep_sink keep;
    struct tree t;
    struct nrg_probe probe;
    const struct nrg_found *found;
    double seconds;
    (void)state;
    begin(&t, libraries[0], "gpu 0000:c1:00.0\npower 250\nkeep 40\n");
    tree_probe(&t, &probe, "amd-smi");
    const struct nrg_channel *c = probe_channel(&probe, "gpu-0", &found);
    keep_open(&keep, &t, found);
    for (int i = 0; i < 60; i++) {
        keep_read(&keep);
        nap_ms(4);
    }
    size_t rows = 0;
    for (size_t i = 0; i < keep.n_rows; i++)
        rows += keep.rows[i].group == 0;
    assert_true(rows >= 3 && rows < 40);
    double joules = energy_j(&keep, c, &seconds);
    assert_true(fabs(joules / seconds - 250) < 0.15 * 250); /* by the distances of stamps */
    keep_close(&keep);
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void what_is_no_counter(void **state)
{
    static const struct {
        const char *script, *why;
    } cases[] = {
        {"zero\n", "two dies"},
        {"still\n", "stands still"},
        {"refuse energy 2\n", "not supported"},
        {"power 100\nresolution 0\n", "impossible"},
        {"power 100\nrefuse energy 10\n", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tree t;
        struct nrg_probe probe;
        char script[160];
        snprintf(script, sizeof script,
                 "gpu 0000:c1:00.0\npower 200\nbusy 5\ngpu 0000:c6:00.0\nbusy 7\n%s",
                 cases[i].script);
        begin(&t, libraries[0], script);
        tree_probe(&t, &probe, "amd-smi");
        assert_int_equal(probe_channel(&probe, "gpu-0", NULL)->quantity, NRG_ENERGY);
        assert_null(probe_channel(&probe, "gpu-1", NULL)); /* its load alone */
        assert_non_null(probe_channel(&probe, "gpu-1.util", NULL));
        const struct nrg_unavailable *no = probe_why(&probe, "gpu-1 (AMD 0000:c6:00.0) energy");
        assert_non_null(no);
        assert_non_null(strcasestr(no->why, cases[i].why));
        nrg_probe_release(&probe);
        tree_release(&t);
    }
}

static void libraries_that_fail(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    begin(&t, "/nowhere/libamd_smi.so", "");
    tree_probe(&t, &probe, "amd-smi");
    assert_non_null(strstr(probe_why(&probe, "AMD GPUs")->why, "/nowhere"));
    nrg_probe_release(&probe);
    tree_release(&t);
    begin(&t, "libm.so.6", "");
    tree_probe(&t, &probe, "amd-smi");
    assert_non_null(strstr(probe_why(&probe, "AMD GPUs")->why, "neither"));
    nrg_probe_release(&probe);
    tree_release(&t);
    for (size_t k = 0; k < 2; k++) {
        begin(&t, libraries[k], k ? "init 8\n" : "init 34\n");
        tree_probe(&t, &probe, "amd-smi");
        assert_non_null(strstr(probe_why(&probe, "AMD GPUs")->why, "as scripted"));
        nrg_probe_release(&probe);
        tree_release(&t);
    }
    begin(&t, libraries[0], "");
    tree_probe(&t, &probe, "amd-smi");
    assert_non_null(strstr(probe_why(&probe, "AMD GPUs")->why, "no GPU"));
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void a_gpu_that_fails_and_leaves(void **state)
{
    static struct keep_sink keep;
    struct tree t;
    struct nrg_probe probe;
    const struct nrg_found *found;
    (void)state;
    begin(&t, libraries[1], "gpu 0000:c1:00.0\npower 300\nbusy 50\n");
    tree_probe(&t, &probe, "amd-smi");
    assert_non_null(probe_channel(&probe, "gpu-0", &found));
    keep_open(&keep, &t, found);
    keep_read(&keep);
    tree_write(&t, "/script", "gpu 0000:c1:00.0\npower 300\nbusy 250\nrefuse energy 16\n");
    size_t before = keep.n_rows;
    keep_read(&keep);
    assert_true(keep.rows[before].raw[0] == NRG_MISSING);
    assert_true(keep.rows[before + 1].raw[0] == NRG_MISSING);
    assert_int_equal(keep.faults[0].error, -EBUSY);
    assert_int_equal(keep.faults[1].error, -ERANGE);
    tree_write(&t, "/script", "gpu 0000:c1:00.0\npower 300\nresolution 61\nbusy 50\n");
    before = keep.n_rows;
    keep_read(&keep); /* another step: these are not the joules that the channel says */
    assert_true(keep.rows[before].raw[0] == NRG_MISSING);
    tree_write(&t, "/script", "%s", "");
    assert_int_equal(keep_try_read(&keep), -ENODEV);
    keep_close(&keep);
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void write_kfd(struct tree *t)
{
    tree_write(t, K "topology/nodes/0/gpu_id", "0\n");
    tree_write(t, K "topology/nodes/0/properties", "simd_count 0\nlocation_id 0\ndomain 0\n");
    tree_write(t, K "topology/nodes/1/gpu_id", "51140\n");
    tree_write(t, K "topology/nodes/1/properties",
               "cpu_cores_count 0\nsimd_count 440\nsimd_per_cu 4\nlocation_id 49408\ndomain 0\n");
    tree_write(t, K "proc/1234/vram_51140", "1073741824\n");
    tree_write(t, K "proc/1234/stats_51140/cu_occupancy", "55\n");
    tree_write(t, K "proc/77/vram_51140", "4096\n"); /* no occupancy in this kernel */
    tree_write(t, K "proc/88/vram_9", "4096\n");     /* on another GPU */
    tree_write(t, K "proc/99/vram_51140", "4096\n");
    tree_write(t, K "proc/99/stats_51140/cu_occupancy", "4000\n"); /* of 110 */
    tree_write(t, "/proc/1234/comm", "train\n");
}

static void processes(void **state)
{
    static struct keep_sink keep;
    struct tree t;
    struct nrg_probe probe;
    const struct nrg_found *found;
    (void)state;
    begin(&t, libraries[0], "gpu 0000:c1:00.0\npower 300\ngpu 0000:c6:00.0\npower 200\n");
    write_kfd(&t);
    tree_probe(&t, &probe, "amd-smi");
    assert_non_null(probe_why(&probe, "gpu-1 use per process"));
    assert_null(probe_why(&probe, "gpu-0 use per process"));
    probe_channel(&probe, "gpu-0", &found);
    keep_open(&keep, &t, found);
    keep_read(&keep);
    keep_read(&keep); /* ten times a second at most */
    assert_int_equal(keep.n_gpu, 3);
    for (size_t i = 0; i < 3; i++) {
        const struct nrg_gpu_process *p = &keep.gpu[i];
        assert_int_equal(p->gpu, 0);
        if (p->device_pid == 1234) {
            assert_int_equal(p->pid, 1234);
            assert_int_equal(p->sm_ppm, 500000);
            assert_int_equal(p->memory_bytes, 1073741824);
        } else {
            assert_int_equal(p->pid, -1);
            assert_true(p->sm_ppm == NRG_MISSING);
        }
    }
    keep_close(&keep);
    nrg_probe_release(&probe);
    tree_release(&t);
}

/* The kernel lists the boards in another order than the library. */
static void the_same_gpu_by_hwmon(void **state)
{
    static const char *const both[] = {"amd-smi", "hwmon", NULL};
    const struct nrg_sensor_options options = {.only = both};
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    begin(&t, libraries[0], "gpu 0000:c6:00.0\npower 300\ngpu 0000:c1:00.0\npower 200\n");
    for (int i = 0; i < 3; i++) {
        static const char *const devices[] = {"0000:03:00.0", "0000:c1:00.0", "0000:c6:00.0"};
        char path[64], target[64];
        snprintf(path, sizeof path, "/sys/class/hwmon/hwmon%d/name", i);
        tree_write(&t, path, "amdgpu\n");
        snprintf(path, sizeof path, "/sys/class/hwmon/hwmon%d/power1_average", i);
        tree_write(&t, path, "%d000000\n", 100 * (i + 1));
        snprintf(path, sizeof path, "/sys/class/hwmon/hwmon%d/device", i);
        snprintf(target, sizeof target, "../../../%s", devices[i]);
        tree_link(&t, target, path);
    }
    assert_int_equal(nrg_probe_all(&probe, &t.ctx, &options, NULL), 0);
    probe.options = NULL;
    static const struct {
        const char *name, *source;
    } expected[] = {{"gpu-0", "hwmon2"}, {"gpu-1", "hwmon1"}, {"gpu-2", "hwmon0"}};
    size_t powers = 0;
    for (size_t f = 0; f < probe.n_found; f++)
        for (size_t c = 0; c < probe.found[f].n_channels; c++)
            for (size_t e = 0; e < 3; e++) {
                const struct nrg_channel *channel = &probe.found[f].channels[c];
                if (channel->quantity != NRG_POWER || strcmp(channel->name, expected[e].name) != 0)
                    continue;
                powers++;
                assert_non_null(strstr(channel->source, expected[e].source));
            }
    assert_int_equal(powers, 3);
    nrg_probe_release(&probe);
    tree_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joules_by_both_libraries),
        cmocka_unit_test(a_counter_that_wraps),
        cmocka_unit_test(values_that_are_kept),
        cmocka_unit_test(what_is_no_counter),
        cmocka_unit_test(libraries_that_fail),
        cmocka_unit_test(a_gpu_that_fails_and_leaves),
        cmocka_unit_test(processes),
        cmocka_unit_test(the_same_gpu_by_hwmon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
