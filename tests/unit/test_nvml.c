/*
 * nvml: against the scripted library of tests/fake_nvml, which knows the truth. Each test writes
 * a script, probes and reads. Processes have a file of their own.
 */
#include "fake_nvml/fixture.h"
#include "support/cmocka.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sensors/nvml/internal.h"

static const char everything[] =
    "gpu Tesla V100-SXM2-16GB\npower 250\nutil 91\nmem-util 42\nenc 7\n"
    "dec 3\nsm-clock 1530\nmem-clock 877\nmemory 5368709120\n"
    "temperature 63\n";

static void channels_of_a_gpu(void **state)
{
    struct nvml_fixture f;
    (void)state;
    nvml_probe_with(&f, everything);
    assert_int_equal(f.probe.n_found, 1);
    const struct nrg_found *found = &f.probe.found[0];
    assert_string_equal(found->sensor, "GPU 0 (Tesla V100-SXM2-16GB)");
    assert_int_equal(found->n_channels, 11); /* power twice: of the buffer, and polled */
    const struct nrg_channel *c = &found->channels[channel_index(found, "gpu-0", NRG_ENERGY)];
    assert_int_equal(c->kind, NRG_COUNTER);
    assert_int_equal(c->update_ns, 100 * NRG_NS_PER_MS);
    assert_true(c->limit_w == 2000 && c->scale == 1e-3 && c->wrap == 0);
    c = &found->channels[channel_index(found, "gpu-0", NRG_POWER)];
    assert_string_equal(c->source, "nvmlDeviceGetSamples(NVML_TOTAL_POWER_SAMPLES)");
    assert_int_equal(c->update_ns, 20 * NRG_NS_PER_MS);
    /* Seven sample types, the counter and the polled ones: nine groups without holes. */
    unsigned seen = 0;
    for (size_t i = 0; i < found->n_channels; i++)
        seen |= 1u << found->channels[i].group;
    assert_int_equal(seen, 0x1ff);
    assert_int_equal(
        found->channels[channel_index(found, "gpu-0.memory", NRG_BYTES)].group,
        found->channels[channel_index(found, "gpu-0.temperature", NRG_TEMPERATURE)].group);
    assert_int_equal(f.probe.n_unavailable, 0);
    nvml_done(&f);
}

static void all_seven_sample_types(void **state)
{
    struct nvml_fixture f;
    (void)state;
    char script[600];
    snprintf(script, sizeof script,
             "%speriod 1 20\nperiod 2 20\nperiod 3 20\nperiod 4 20\nperiod 5 20\nperiod 6 20\n",
             everything);
    nvml_probe_with(&f, script);
    nvml_open_gpu(&f, 0);
    nap_ms(60);
    assert_int_equal(nvml_read_gpu(&f), 0);
    assert_int_equal(f.keep->n_faults, 0);
    assert_int_equal(nvml_last(&f, "gpu-0", NRG_POWER), 250000);
    assert_int_equal(nvml_last(&f, "gpu-0.util", NRG_UTILISATION), 91);
    assert_int_equal(nvml_last(&f, "gpu-0.mem-util", NRG_UTILISATION), 42);
    assert_int_equal(nvml_last(&f, "gpu-0.enc", NRG_UTILISATION), 7);
    assert_int_equal(nvml_last(&f, "gpu-0.dec", NRG_UTILISATION), 3);
    assert_int_equal(nvml_last(&f, "gpu-0.sm-clock", NRG_CLOCK), 1530);
    assert_int_equal(nvml_last(&f, "gpu-0.mem-clock", NRG_CLOCK), 877);
    assert_int_equal(nvml_last(&f, "gpu-0.memory", NRG_BYTES), 5368709120);
    assert_int_equal(nvml_last(&f, "gpu-0.temperature", NRG_TEMPERATURE), 63);
    nvml_done(&f);
}

static void batches_come_once_with_their_own_time(void **state)
{
    struct nvml_fixture f;
    int64_t raw[64], t_ns[64];
    (void)state;
    /* ignore-last: even a library that repeats itself must not make us repeat samples. */
    for (int repeats = 0; repeats < 2; repeats++) {
        char script[300];
        snprintf(script, sizeof script,
                 "gpu X\n%ssample 0 -5 99000\nsample 0 10 1000\nsample 0 20 2000\n"
                 "sample 0 30 3000\nsample 0 900 4000\n",
                 repeats ? "ignore-last\n" : "");
        nvml_probe_with(&f, script);
        int64_t before = nrg_now_ns();
        nvml_open_gpu(&f, 0);
        int64_t after = nrg_now_ns();
        nap_ms(45);
        assert_int_equal(nvml_read_gpu(&f), 0);
        assert_int_equal(nvml_read_gpu(&f), 0);
        assert_int_equal(nvml_values(&f, "gpu-0", NRG_POWER, raw, t_ns, 64), 3);
        nap_ms(900);
        assert_int_equal(nvml_read_gpu(&f), 0);
        assert_int_equal(nvml_values(&f, "gpu-0", NRG_POWER, raw, t_ns, 64), 4);
        static const int64_t at_ms[] = {10, 20, 30, 900};
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(raw[i], 1000 * ((int64_t)i + 1));
            assert_true(t_ns[i] >= before + at_ms[i] * NRG_NS_PER_MS - 2000000);
            assert_true(t_ns[i] <= after + at_ms[i] * NRG_NS_PER_MS + 2000000);
        }
        assert_int_equal(f.keep->n_faults, 0);
        nvml_done(&f);
    }
}

static void value_types(void **state)
{
    struct nvml_fixture f;
    (void)state;
    for (int type = 0; type <= 4; type++) {
        char script[200];
        snprintf(script, sizeof script,
                 "gpu X\nvalue-type 0 %d\nsample 0 -5 1\nsample 0 5 123456\n", type);
        nvml_probe_with(&f, script);
        nvml_open_gpu(&f, 0);
        nap_ms(10);
        assert_int_equal(nvml_read_gpu(&f), 0);
        assert_int_equal(nvml_last(&f, "gpu-0", NRG_POWER), 123456);
        nvml_done(&f);
    }
    nvml_probe_with(&f, "gpu X\nvalue-type 0 9\n"); /* unknown: the getter is used */
    const struct nrg_found *found = &f.probe.found[0];
    assert_string_equal(found->channels[channel_index(found, "gpu-0", NRG_POWER)].source,
                        "nvmlDeviceGetPowerUsage");
    nvml_done(&f);
    /* Percentages of four billion are not a reading. */
    nvml_probe_with(&f, "gpu X\nsample 1 -5 50\nsample 1 5 4294967295\nsample 1 10 60\n");
    nvml_open_gpu(&f, 0);
    nap_ms(20);
    assert_int_equal(nvml_read_gpu(&f), 0);
    int64_t raw[8], t_ns[8];
    assert_int_equal(nvml_values(&f, "gpu-0.util", NRG_UTILISATION, raw, t_ns, 8), 2);
    assert_int_equal(raw[0], NRG_MISSING);
    assert_int_equal(raw[1], 60);
    assert_int_equal(f.keep->n_faults, 1);
    assert_int_equal(f.keep->faults[0].error, -ERANGE);
    nvml_done(&f);
}

static void the_counter_is_the_truth(void **state)
{
    struct nvml_fixture f;
    int64_t raw[8], t_ns[8];
    double ratio = 0;
    (void)state;
    nvml_probe_with(&f, "gpu X\npower 100 0.1 300\nenergy 5000\nenergy-period 0\n");
    nvml_open_gpu(&f, 0);
    nap_ms(120);
    assert_int_equal(nvml_read_gpu(&f), 0);
    /* A machine that stops us between a reading and its time gets another chance. */
    for (size_t i = 1; i < 6 && fabs(ratio - 1) > 0.01; i++) {
        nap_ms(200);
        assert_int_equal(nvml_read_gpu(&f), 0);
        assert_int_equal(nvml_values(&f, "gpu-0", NRG_ENERGY, raw, t_ns, 8), i + 1);
        ratio =
            (double)(raw[i] - raw[i - 1]) * 1e-3 / (300 * (double)(t_ns[i] - t_ns[i - 1]) * 1e-9);
    }
    assert_true(fabs(ratio - 1) <= 0.01);
    assert_true(raw[0] > 5000000);
    nvml_done(&f);
}

/* By architecture and name, as far as somebody has measured or documented it. */
static void knows_power_sensors(void **state)
{
    static const struct {
        unsigned architecture;
        const char *name;
        int64_t update_ms, window_ms, mean_ms, lag_ms;
    } known[] = {
        {7, "NVIDIA A100-SXM4-40GB", 100, 25, 0, 0},
        {7, "NVIDIA A30", 100, 25, 0, 0},
        {7, "NVIDIA RTX A3000 Laptop GPU", 100, 100, 1000, 0},
        {7, "NVIDIA GeForce RTX 3090", 100, 100, 1000, 0},
        {8, "NVIDIA L4", 100, 100, 1000, 0},
        {9, "NVIDIA H100 PCIe", 100, 25, 0, 500},
        {10, "NVIDIA B200", 0, 0, 0, 500},
        {5, "Tesla V100-SXM2-16GB", 0, 0, 0, 0},
        {UINT32_MAX, "unknown", 0, 0, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct nrg_nvml_power_sensor s =
            nrg_nvml_power_sensor(known[i].architecture, known[i].name);
        assert_int_equal(s.update_ns, known[i].update_ms * NRG_NS_PER_MS);
        assert_int_equal(s.window_ns, known[i].window_ms * NRG_NS_PER_MS);
        assert_int_equal(s.mean_ns, known[i].mean_ms * NRG_NS_PER_MS);
        assert_int_equal(s.lag_ns, known[i].lag_ms * NRG_NS_PER_MS);
    }
}

static void falls_back_to_getters(void **state)
{
    struct nvml_fixture f;
    (void)state;
    char script[400];
    snprintf(script, sizeof script, "%sfail samples 3\nfail energy 3\nfail decoder 3\narch 8\n",
             everything);
    nvml_probe_with(&f, script);
    const struct nrg_found *found = &f.probe.found[0];
    assert_int_equal(found->n_channels, 8);
    const struct nrg_channel *power = &found->channels[channel_index(found, "gpu-0", NRG_POWER)];
    assert_string_equal(power->source, "nvmlDeviceGetPowerUsage");
    assert_int_equal(power->lag_ns, 0);
    assert_int_equal(power->window_ns, 1000 * NRG_NS_PER_MS); /* Ada: a mean over one second */
    assert_int_equal(power->update_ns, 100 * NRG_NS_PER_MS);
    const struct nrg_unavailable *why = probe_why(&f.probe, "gpu-0 energy");
    assert_non_null(why);
    assert_string_equal(why->why, "nvmlDeviceGetTotalEnergyConsumption: Not Supported");
    why = probe_why(&f.probe, "gpu-0.dec");
    assert_non_null(why);
    assert_non_null(strstr(why->why, "nvmlDeviceGetDecoderUtilization: Not Supported"));
    assert_int_equal(f.probe.n_unavailable, 2);
    nvml_open_gpu(&f, 0);
    assert_int_equal(nvml_read_gpu(&f), 0);
    assert_int_equal(f.keep->n_rows, 1); /* all polled: one group */
    assert_int_equal(nvml_last(&f, "gpu-0", NRG_POWER), 250000);
    assert_int_equal(nvml_last(&f, "gpu-0.util", NRG_UTILISATION), 91);
    assert_int_equal(nvml_last(&f, "gpu-0.mem-util", NRG_UTILISATION), 42);
    assert_int_equal(nvml_last(&f, "gpu-0.enc", NRG_UTILISATION), 7);
    assert_int_equal(nvml_last(&f, "gpu-0.sm-clock", NRG_CLOCK), 1530);
    assert_int_equal(nvml_last(&f, "gpu-0.mem-clock", NRG_CLOCK), 877);
    nvml_done(&f);
    /* One type without a buffer, the others with; GA100 has no averaging; stale samples. */
    nvml_probe_with(&f, "gpu NVIDIA A100-SXM4-40GB\narch 7\nlimit 400\nfail samples.0 6\n"
                        "sample 1 -90000 50\n");
    found = &f.probe.found[0];
    power = &found->channels[channel_index(found, "gpu-0", NRG_POWER)];
    assert_string_equal(power->source, "nvmlDeviceGetPowerUsage");
    assert_int_equal(power->lag_ns, 0);
    assert_int_equal(power->window_ns, 25 * NRG_NS_PER_MS);
    assert_int_equal(power->update_ns, 100 * NRG_NS_PER_MS);
    assert_true(power->limit_w > 399 && power->limit_w < 401);
    assert_string_equal(found->channels[channel_index(found, "gpu-0.util", NRG_UTILISATION)].source,
                        "nvmlDeviceGetUtilizationRates");
    assert_non_null(strstr(
        found->channels[channel_index(found, "gpu-0.enc", NRG_UTILISATION)].source, "Samples"));
    nvml_done(&f);
}

/* The field says the power of the moment where nvmlDeviceGetPowerUsage says a mean. */
static void power_of_the_moment(void **state)
{
    static const char source[] = "nvmlDeviceGetFieldValues(NVML_FI_DEV_POWER_INSTANT)";
    struct nvml_fixture f;
    (void)state;
    for (int type = 0; type <= 4; type++) {
        char script[200];
        snprintf(script, sizeof script,
                 "gpu NVIDIA L4\narch 8\npower 40 0.001 240\npower-mean 1000\nfail samples 3\n"
                 "instant %d\n",
                 type);
        nvml_probe_with(&f, script);
        const struct nrg_found *found = &f.probe.found[0];
        const struct nrg_channel *power =
            &found->channels[channel_index(found, "gpu-0", NRG_POWER)];
        assert_string_equal(power->source, source);
        assert_int_equal(power->update_ns, 100 * NRG_NS_PER_MS);
        assert_int_equal(power->window_ns, 100 * NRG_NS_PER_MS);
        assert_int_equal(power->lag_ns, 0);
        nvml_open_gpu(&f, 0);
        nap_ms(10);
        assert_int_equal(nvml_read_gpu(&f), 0);
        assert_int_equal(nvml_last(&f, "gpu-0", NRG_POWER), 240000);
        nvml_done(&f);
    }
    /* Beside a buffer; part-time on Hopper; what nobody has measured stays unknown. */
    nvml_probe_with(&f, "gpu NVIDIA H100 PCIe\narch 9\npower 250\ninstant 1\n"
                        "gpu NVIDIA B200\narch 10\nfail samples 3\ninstant 1\n");
    const struct nrg_found *found = &f.probe.found[0];
    const struct nrg_channel *power =
        &found->channels[channel_index(found, "gpu-0.polled", NRG_POWER)];
    assert_string_equal(power->source, source);
    assert_int_equal(power->window_ns, 25 * NRG_NS_PER_MS);
    assert_int_equal(power->lag_ns, 0);
    power = &f.probe.found[1].channels[channel_index(&f.probe.found[1], "gpu-1", NRG_POWER)];
    assert_int_equal(power->window_ns, 0);
    assert_int_equal(power->lag_ns, 0);
    nvml_open_gpu(&f, 0);
    assert_int_equal(nvml_read_gpu(&f), 0);
    assert_int_equal(nvml_last(&f, "gpu-0.polled", NRG_POWER), 250000);
    nvml_done(&f);
}

/* Drivers that do not know the field, refuse it, or say nonsense: the mean is better than that. */
static void no_power_of_the_moment(void **state)
{
    static const char *const without[] = {"", "instant 1\nfail fields 2\n", "instant 1 0\n",
                                          "instant 1 4000000\n", "instant 9\n"};
    struct nvml_fixture f;
    (void)state;
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        char script[200];
        snprintf(script, sizeof script, "gpu NVIDIA L4\narch 8\nfail samples 3\n%s", without[i]);
        nvml_probe_with(&f, script);
        const struct nrg_found *found = &f.probe.found[0];
        const struct nrg_channel *power =
            &found->channels[channel_index(found, "gpu-0", NRG_POWER)];
        assert_string_equal(power->source, "nvmlDeviceGetPowerUsage");
        assert_int_equal(power->window_ns, 1000 * NRG_NS_PER_MS);
        nvml_open_gpu(&f, 0);
        assert_int_equal(nvml_read_gpu(&f), 0);
        assert_int_equal(nvml_last(&f, "gpu-0", NRG_POWER), 100000);
        nvml_done(&f);
    }
    /* It stops in the middle: missing, not the mean in its place. */
    nvml_probe_with(&f, "gpu NVIDIA L4\narch 8\nfail samples 3\ninstant 1\nfail fields 3 20\n");
    nvml_open_gpu(&f, 0);
    nap_ms(25);
    assert_int_equal(nvml_read_gpu(&f), 0);
    assert_int_equal(nvml_last(&f, "gpu-0", NRG_POWER), NRG_MISSING);
    assert_int_equal(f.keep->n_faults, 1);
    nvml_done(&f);
}

static void nothing_supported(void **state)
{
    struct nvml_fixture f;
    (void)state;
    nvml_probe_with(&f, "gpu Orin (nvgpu)\nfail all 3\n");
    assert_int_equal(f.probe.n_found, 0);
    assert_int_equal(f.probe.n_unavailable, 1);
    assert_non_null(strstr(f.probe.unavailable[0].what, "Orin"));
    assert_non_null(strstr(f.probe.unavailable[0].why, "Not Supported"));
    assert_non_null(strstr(f.probe.unavailable[0].fix, "ina3221"));
    nvml_done(&f);
    nvml_probe_with(&f, "gpu X\nfail all 4\n");
    assert_int_equal(f.probe.n_found, 0);
    assert_int_equal(f.probe.n_unavailable, 1);
    assert_non_null(strstr(f.probe.unavailable[0].why, "Insufficient Permissions"));
    nvml_done(&f);
}

static void lost_in_the_middle(void **state)
{
    struct nvml_fixture f;
    (void)state;
    nvml_probe_with(&f, "gpu X\nlost-after 900\n");
    nvml_open_gpu(&f, 0);
    assert_int_equal(nvml_read_gpu(&f), 0);
    assert_int_equal(f.keep->n_faults, 0);
    size_t rows = f.keep->n_rows;
    nap_ms(910);
    assert_int_equal(nvml_read_gpu(&f), -ENODEV);
    assert_int_equal(f.keep->n_faults, f.found->n_channels);
    for (size_t i = 0; i < f.keep->n_faults; i++)
        assert_int_equal(f.keep->faults[i].error, -ENODEV);
    for (size_t r = rows; r < f.keep->n_rows; r++) /* the counter's row and the polled one */
        assert_int_equal(f.keep->rows[r].raw[0], NRG_MISSING);
    assert_int_equal(f.keep->n_rows - rows, 2);
    nvml_done(&f);

    /* Lost between two calls of one read: faults, but not gone yet. */
    nvml_probe_with(&f, "gpu X\nlost 57\n");
    nvml_open_gpu(&f, 0);
    int rc = 0, partly = 0;
    for (int reads = 0; !rc && reads < 20; reads++) {
        size_t before = f.keep->n_faults;
        rc = nvml_read_gpu(&f);
        partly += !rc && f.keep->n_faults > before;
    }
    assert_int_equal(rc, -ENODEV);
    assert_int_equal(partly, 1);
    nvml_done(&f);
}

static void one_call_fails(void **state)
{
    struct nvml_fixture f;
    (void)state;
    nvml_probe_with(&f, "gpu X\nmemory 77\nfail temperature 999 600\nfail samples.0 10 600\n");
    nvml_open_gpu(&f, 0);
    nap_ms(610);
    assert_int_equal(nvml_read_gpu(&f), 0);
    assert_int_equal(nvml_last(&f, "gpu-0.memory", NRG_BYTES), 77);
    assert_int_equal(nvml_last(&f, "gpu-0.temperature", NRG_TEMPERATURE), NRG_MISSING);
    assert_int_equal(f.keep->n_faults, 2);
    assert_int_equal(f.keep->faults[0].channel, channel_index(f.found, "gpu-0", NRG_POWER));
    assert_int_equal(f.keep->faults[0].error, -ETIMEDOUT);
    assert_int_equal(f.keep->faults[1].channel,
                     channel_index(f.found, "gpu-0.temperature", NRG_TEMPERATURE));
    assert_int_equal(f.keep->faults[1].error, -EIO);
    nvml_done(&f);
}

static void two_gpus(void **state)
{
    struct nvml_fixture f;
    void *second;
    (void)state;
    nvml_probe_with(&f, "gpu A\nfail samples 3\npower 10\ngpu B\nfail samples 3\npower 20\n"
                        "fail handle 0\ngpu C\nfail handle 15\n");
    assert_int_equal(f.probe.n_found, 2);
    assert_non_null(probe_channel(&f.probe, "gpu-1.memory", NULL));
    assert_non_null(strstr(probe_why(&f.probe, "GPU 2")->why, "lost"));
    nvml_open_gpu(&f, 1);
    assert_int_equal(f.found->driver->open(&f.tree.ctx, &f.probe.found[0], &second, NULL), 0);
    f.found->driver->close(second); /* the library stays up for the other one */
    assert_int_equal(nvml_read_gpu(&f), 0);
    assert_int_equal(nvml_last(&f, "gpu-1", NRG_POWER), 20000);
    nvml_done(&f);
    nvml_probe_with(&f, "gpu A\ngpus 4000000000\n"); /* handles beyond the first fail, and we end */
    assert_int_equal(f.probe.n_found, 1);
    nvml_done(&f);
}

static void mig_is_one_board(void **state)
{
    struct nvml_fixture f;
    (void)state;
    nvml_probe_with(&f, "gpu NVIDIA A100-SXM4-40GB\nmemory 3000\nmig 1000\nmig 2000\n"
                        "fail samples.1 3\nfail samples.2 3\nfail utilization 3\n"
                        "fail process-utilization 3\nprocess 1 500 -\nprocess 1 700 -\n");
    tree_write(&f.tree, "/proc/1/status", "Name:\tinit\n");
    const struct nrg_found *found = &f.probe.found[0];
    size_t boards = 0;
    for (size_t c = 0; c < found->n_channels; c++)
        boards += found->channels[c].quantity == NRG_ENERGY;
    assert_int_equal(boards, 1);
    assert_non_null(
        strstr(found->channels[channel_index(found, "gpu-0", NRG_ENERGY)].source, "whole board"));
    const struct nrg_channel *c = probe_channel(&f.probe, "gpu-0.mig-1.memory", NULL);
    assert_non_null(c);
    assert_string_equal(c->parent, "gpu-0.memory");
    assert_null(probe_channel(&f.probe, "gpu-0.mig-2.memory", NULL));
    assert_null(probe_channel(&f.probe, "gpu-0.util", NULL));
    assert_non_null(probe_why(&f.probe, "gpu-0.util"));
    assert_non_null(strstr(probe_why(&f.probe, "per MIG instance")->why, "whole board"));
    nvml_open_gpu(&f, 0);
    assert_int_equal(nvml_read_gpu(&f), 0);
    assert_int_equal(nvml_last(&f, "gpu-0.memory", NRG_BYTES), 3000);
    assert_int_equal(nvml_last(&f, "gpu-0.mig-0.memory", NRG_BYTES), 1000);
    assert_int_equal(nvml_last(&f, "gpu-0.mig-1.memory", NRG_BYTES), 2000);
    assert_int_equal(f.keep->n_gpu, 1); /* one process in two instances */
    assert_int_equal(f.keep->gpu[0].memory_bytes, 1200);
    assert_int_equal(f.keep->gpu[0].sm_ppm, NRG_MISSING);
    nvml_done(&f);
}

static void library_trouble(void **state)
{
    struct nvml_fixture f;
    (void)state;
    static const struct {
        int code;
        const char *why, *fix;
    } cases[] = {{18, "version mismatch", "reboot"},
                 {4, "Permission", "/dev/nvidia"},
                 {9, "Not Loaded", "modprobe nvidia"},
                 {999, "999", "nvidia-smi"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char script[64];
        snprintf(script, sizeof script, "init %d\ngpu X\n", cases[i].code);
        nvml_probe_with(&f, script);
        assert_int_equal(f.probe.n_found, 0);
        assert_int_equal(f.probe.n_unavailable, 1);
        assert_non_null(strstr(f.probe.unavailable[0].why, cases[i].why));
        assert_non_null(strstr(f.probe.unavailable[0].fix, cases[i].fix));
        nvml_done(&f);
    }
    nvml_probe_with(&f, "# no gpu at all\n");
    assert_int_equal(f.probe.n_found, 0);
    assert_non_null(strstr(probe_why(&f.probe, "NVIDIA")->why, "no GPU"));
    nvml_done(&f);
}

static void no_library(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    tree_init(&t);
    setenv("NRG_NVML_LIBRARY", "/nonexistent/libnvidia-ml.so.1", 1);
    tree_probe(&t, &probe, "nvml");
    assert_int_equal(probe.n_found, 0);
    assert_non_null(strstr(probe_why(&probe, "NVIDIA")->why, "/nonexistent"));
    nrg_probe_release(&probe);

    setenv("NRG_NVML_LIBRARY", "libm.so.6", 1); /* a library, but not that one */
    tree_probe(&t, &probe, "nvml");
    assert_non_null(strstr(probe_why(&probe, "NVIDIA")->why, "lacks nvmlInit"));
    nrg_probe_release(&probe);

    unsetenv("NRG_NVML_LIBRARY"); /* a captured tree: this machine's GPUs are not its GPUs */
    assert_int_equal(nrg_probe_all(&probe, &t.ctx, NULL, NULL), 0);
    assert_null(probe_why(&probe, "NVIDIA"));
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void absurd_counts(void **state)
{
    struct nvml_fixture f;
    int64_t raw[256], t_ns[256];
    (void)state;
    nvml_probe_with(&f, "gpu X\nclaim 0 4294967295\nclaim 1 100000\nignore-last\n");
    int64_t began_ns = nrg_now_ns();
    nvml_open_gpu(&f, 0);
    nap_ms(50);
    assert_int_equal(nvml_read_gpu(&f), 0);
    size_t n = nvml_values(&f, "gpu-0", NRG_POWER, raw, t_ns, 256);
    assert_true(n >= 1 && (int64_t)n <= 10 + (nrg_now_ns() - began_ns) / (5 * NRG_NS_PER_MS));
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(raw[i], 100000);
        assert_true(i == 0 || t_ns[i] > t_ns[i - 1]);
    }
    nvml_done(&f);
}

/* The clocks are ours to invent here: no machine's clock is stepped. */
static void stepped_clock(void **state)
{
    (void)state;
    const int64_t hour_ns = 3600 * NRG_NS_PER_S, base = 1700000000 * NRG_NS_PER_S;
    for (int sign = -1; sign <= 1; sign += 2) {
        struct nrg_nvml_clock clock = {0};
        int64_t t, s = NRG_NS_PER_S;
        struct nrg_clock_pair pair = {.mono_ns = 100 * s, .real_ns = base + 100 * s};
        assert_false(nrg_nvml_clock_update(&clock, pair));
        pair = (struct nrg_clock_pair){.mono_ns = 110 * s, .real_ns = base + 110 * s + 5000000};
        assert_false(nrg_nvml_clock_update(&clock, pair)); /* slewed by 5 ms */
        pair =
            (struct nrg_clock_pair){.mono_ns = 120 * s, .real_ns = base + 120 * s + sign * hour_ns};
        assert_true(nrg_nvml_clock_update(&clock, pair));
        /* Before the step, after it, already seen, not yet measured. */
        unsigned long long old_us = (unsigned long long)(base + 115 * s + 5000000) / 1000;
        unsigned long long new_us = (unsigned long long)(base + 118 * s + sign * hour_ns) / 1000;
        unsigned long long seen_us = (unsigned long long)(base + 105 * s) / 1000;
        assert_true(nrg_nvml_place(&clock, old_us, 110 * s, &t));
        assert_int_equal(t, 115 * s);
        assert_true(nrg_nvml_place(&clock, new_us, 110 * s, &t));
        assert_int_equal(t, 118 * s);
        assert_false(nrg_nvml_place(&clock, seen_us, 110 * s, &t));
        assert_false(nrg_nvml_place(&clock, new_us + 30000000, 110 * s, &t));
        assert_false(nrg_nvml_place(&clock, 0, 110 * s, &t));
        assert_false(nrg_nvml_place(&clock, ~0ULL, 110 * s, &t));
    }
}

static void unwanted_channels_are_not_asked(void **state)
{
    struct nvml_fixture f;
    (void)state;
    nvml_probe_with(&f, everything);
    struct nrg_found *found = &f.probe.found[0];
    for (size_t c = 0; c < found->n_channels; c++)
        found->wanted[c] = c == channel_index(found, "gpu-0.memory", NRG_BYTES);
    nvml_open_gpu(&f, 0);
    nap_ms(30);
    assert_int_equal(nvml_read_gpu(&f), 0);
    assert_int_equal(f.keep->n_rows, 1);
    assert_int_equal(f.keep->rows[0].raw[0], 5368709120);
    assert_int_equal(f.keep->rows[0].raw[1], NRG_MISSING);
    nvml_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_of_a_gpu),
        cmocka_unit_test(all_seven_sample_types),
        cmocka_unit_test(batches_come_once_with_their_own_time),
        cmocka_unit_test(value_types),
        cmocka_unit_test(the_counter_is_the_truth),
        cmocka_unit_test(knows_power_sensors),
        cmocka_unit_test(falls_back_to_getters),
        cmocka_unit_test(power_of_the_moment),
        cmocka_unit_test(no_power_of_the_moment),
        cmocka_unit_test(nothing_supported),
        cmocka_unit_test(lost_in_the_middle),
        cmocka_unit_test(one_call_fails),
        cmocka_unit_test(two_gpus),
        cmocka_unit_test(mig_is_one_board),
        cmocka_unit_test(library_trouble),
        cmocka_unit_test(no_library),
        cmocka_unit_test(absurd_counts),
        cmocka_unit_test(stepped_clock),
        cmocka_unit_test(unwanted_channels_are_not_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
