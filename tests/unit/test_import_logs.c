/*
 * Logs of nvidia-smi, tegrastats, perf stat, CodeCarbon and Zeus: energies by hand, what is
 * refused, and that what is not there stays missing.
 */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "import/log.h"
#include "record/read/recording.h"

struct log {
    struct tree tree;
    struct nrg_import_options options;
    struct nrg_import_result result;
    struct nrg_error err;
    struct nrg_recording *recording;
    char path[300], output[300];
};

static int read_log(struct log *log, const char *text)
{
    tree_init(&log->tree);
    tree_write_bytes(&log->tree, "/log", text, strlen(text));
    snprintf(log->path, sizeof log->path, "%s/log", log->tree.path);
    snprintf(log->output, sizeof log->output, "%s/out.nrg", log->tree.path);
    log->options.path = log->path;
    log->options.output = log->output;
    log->options.idle_w = NAN;
    int rc = nrg_import(&log->options, &log->result, &log->err);
    return rc ? rc : nrg_recording_open(log->output, &log->recording, &log->err);
}

static void done(struct log *log)
{
    nrg_recording_close(log->recording);
    tree_release(&log->tree);
}

static void expect_refusal(const char *text, const char *why)
{
    struct log log = {0};
    assert_true(read_log(&log, text) < 0);
    if (!strstr(log.err.what, why))
        print_message("# %s\n", log.err.what);
    assert_non_null(strstr(log.err.what, why));
    assert_string_equal(log.err.where, log.path);
    done(&log);
}

static const struct nrg_recorded_channel *find(const struct log *log, const char *name,
                                               enum nrg_quantity quantity)
{
    size_t n;
    const struct nrg_recorded_channel *c = nrg_recording_channels(log->recording, &n);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(c[i].channel.name, name) && c[i].channel.quantity == quantity)
            return &c[i];
    return NULL;
}

struct column {
    size_t number, n;
    int64_t t_ns[64], raw[64];
};

static int collect(void *arg, const struct nrg_rows *rows)
{
    struct column *c = arg;
    for (size_t i = 0; i < rows->n; i++) {
        int64_t raw = nrg_rows_column(rows, c->number)[i];
        if (raw == NRG_MISSING || c->n == 64)
            continue;
        c->t_ns[c->n] = rows->t_ns[i];
        c->raw[c->n++] = raw;
    }
    return 0;
}

/* The readings of a channel that are there. */
static struct column readings(const struct log *log, const char *name, enum nrg_quantity quantity)
{
    const struct nrg_recorded_channel *c = find(log, name, quantity);
    struct column column = {0};
    assert_non_null(c);
    column.number = c->column;
    assert_int_equal(nrg_recording_read_series(log->recording, c->series, collect, &column, NULL),
                     0);
    return column;
}

/* Sum of a counter's steps; one that starts again at 0 has lost nothing. */
static double energy_j(const struct log *log, const char *name)
{
    struct column c = readings(log, name, NRG_ENERGY);
    double sum = 0, scale = find(log, name, NRG_ENERGY)->channel.scale;
    for (size_t i = 1; i < c.n; i++)
        if (c.raw[i] >= c.raw[i - 1])
            sum += (double)(c.raw[i] - c.raw[i - 1]) * scale;
    return sum;
}

static void nvidia_smi_takes_turns(void **state)
{
    struct log log = {0};
    (void)state;
    log.options.zone_offset_ns = 7200 * NRG_NS_PER_S;
    assert_int_equal(read_log(&log, "index, timestamp, power.draw [W], utilization.gpu [%]\n"
                                    "0, 2025/04/09 08:59:06.356, 60.00 W, 50 %\n"
                                    "1, 2025/04/09 08:59:06.360, [N/A], [Not Supported]\n"
                                    "0, 2025/04/09 08:59:07.356, 62.00 W, 100 %\n"
                                    "1, 2025/04/09 08:59:07.360, 0.50, 0\n"
                                    "0, 2025/04/09 08:59:08.356, 64.00 W, 0 %\n"),
                     0);
    struct column power = readings(&log, "gpu-0", NRG_POWER);
    assert_int_equal(power.n, 3);
    assert_int_equal(power.raw[2], 64000);
    assert_int_equal(power.t_ns[0], INT64_C(1744181946356000000)); /* 06:59:06.356 UTC */
    assert_int_equal(find(&log, "gpu-0", NRG_POWER)->period_ns, NRG_NS_PER_S);
    power = readings(&log, "gpu-1", NRG_POWER);
    assert_int_equal(power.n, 1); /* [N/A] is not 0 W */
    assert_int_equal(power.raw[0], 500);
    assert_int_equal(readings(&log, "gpu-0.util", NRG_UTILISATION).raw[0], 50);
    done(&log);
}

static void nvidia_smi_names_gpus(void **state)
{
    struct log log = {0};
    (void)state;
    assert_int_equal(read_log(&log, "timestamp, uuid, power.draw.instant [W], memory.used [MiB]\n"
                                    "2025/04/09 08:59:06.3, GPU-b, 10 W, 1 MiB\n"
                                    "2025/04/09 08:59:06.3, GPU-a, 20 W, 2 MiB\n"
                                    "timestamp, uuid, power.draw.instant [W], memory.used [MiB]\n"
                                    "2025/04/09 09:59:06.3, GPU-a, 20 W, 3 MiB\n"),
                     0);
    assert_int_equal(readings(&log, "gpu-1", NRG_POWER).raw[1], 20000);
    assert_int_equal(readings(&log, "gpu-1.memory", NRG_BYTES).raw[1], 3 << 20);
    assert_int_equal(log.result.segments, 2);
    done(&log);
    /* noheader: the only watts are the power. */
    assert_int_equal(read_log(&log, "2025/04/09 08:59:06.3, 10 W\n2025/04/09 08:59:07.3, 20 W\n"),
                     0);
    assert_int_equal(readings(&log, "gpu-0", NRG_POWER).raw[1], 20000);
    done(&log);
}

static void nvidia_smi_refuses(void **state)
{
    (void)state;
    expect_refusal("2025/04/09 08:59:06.356, 60.00, 40\n", "without names and units");
    expect_refusal("index, power.draw [W]\n0, 60 W\n", "timestamp");
    expect_refusal("timestamp, power.draw [W]\n2025/04/09 08:59:06.3, sixty\n", "power.draw");
    expect_refusal("timestamp, power.draw [W]\n2025/04/09 08:59:06.3, 60 %\n", "power.draw");
    expect_refusal("timestamp, power.draw [W]\n2025/13/09 08:59:06.3, 60 W\n", "timestamp");
    expect_refusal("timestamp, power.draw [W]\n2025/04/09 08:59:06.3\n", "cells");
    expect_refusal("timestamp, power.draw [W]\n"
                   "2025/04/09 08:59:06.300, 60 W\n2025/04/09 08:59:06.302, 70 W\n"
                   "2025/04/09 08:59:07.300, 60 W\n2025/04/09 08:59:07.302, 70 W\n"
                   "2025/04/09 08:59:08.300, 60 W\n2025/04/09 08:59:08.303, 70 W\n",
                   "2 at a time");
    expect_refusal("timestamp, name, power.draw [W]\n"
                   "2025/04/09 08:59:06.3, A, 60 W\n2025/04/09 08:59:06.3, A, 70 W\n"
                   "2025/04/09 08:59:06.3, A, 80 W\n2025/04/09 08:59:07.3, A, 60 W\n",
                   "3 at a time");
}

static void tegrastats_dialects(void **state)
{
    static const struct {
        const char *line, *rail, *parent;
        int64_t power_uw;
    } dialects[] = {
        {"RAM 613/3964MB (lfb 634x4MB) SWAP 0/1982MB (cached 0MB) CPU [2%@102,off] GR3D_FREQ 0% "
         "PLL@39C POM_5V_IN 900/943 POM_5V_GPU 0/0 POM_5V_CPU 123/123",
         "POM_5V_CPU", "POM_5V_IN", 123000},
        {"RAM 1179/3983MB (lfb 120x4MB) IRAM 0/252kB(lfb 252kB) CPU [1%@102] VDD_IN 2532/2698 "
         "VDD_CPU 76/178 VDD_GPU 19/19",
         "VDD_CPU", "VDD_IN", 76000},
        {"RAM 2/15MB (lfb 1x4MB) CPU [1%@1] GPU 10/0 CPU 311/311 SOC 932/932 SYS5V 1682/1682",
         "SYS5V", "", 1682000},
        {"04-27-2026 14:59:41 RAM 775/7620MB (lfb 3x4MB) cpu@48.4C VDD_IN 4761mW/4778mW "
         "VDD_SOC 1428mW/1428mW ",
         "VDD_SOC", "VDD_IN", 1428000},
        {"04-27-2026 14:59:41 RAM 1/2MB (lfb 1x2MB) VDD_GPU_SOC 5139mW/5140mW/5141mW NC 7mW/7mW "
         "VIN_SYS_5V0 5500mW/5500mW/5500mW VDDQ_VDD2_1V8AO 604mW/604mW/604mW",
         "VDDQ_VDD2_1V8AO", "VIN_SYS_5V0", 604000},
        /* AGX Thor: VIN is measured before the board, and an idle rail may show its offset. */
        {"04-27-2026 14:59:41 RAM 1/2MB (lfb 1x2MB) VDD_GPU 0mW/0mW VIN_SYS_5V0 3923mW/3923mW "
         "VIN 23152mW/23152mW",
         "VIN_SYS_5V0", "VIN", 3923000},
        {"04-27-2026 14:59:41 RAM 1/2MB (lfb 1x2MB) VDD_GPU -392mW/-392mW VIN 23152mW/23152mW",
         "VDD_GPU", "VIN", -392000},
    };
    (void)state;
    for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++) {
        struct log log = {0};
        assert_int_equal(read_log(&log, dialects[i].line), 0);
        const struct nrg_recorded_channel *rail = find(&log, dialects[i].rail, NRG_POWER);
        assert_non_null(rail);
        assert_string_equal(rail->channel.parent, dialects[i].parent);
        assert_int_equal(readings(&log, dialects[i].rail, NRG_POWER).raw[0], dialects[i].power_uw);
        assert_null(find(&log, "RAM", NRG_POWER));
        assert_null(find(&log, "NC", NRG_POWER));
        done(&log);
    }
    expect_refusal("RAM 613/3964MB (lfb 634x4MB) CPU [2%@102] GR3D_FREQ 0%\n", "no power rail");
    expect_refusal("RAM 6/3MB VDD_IN 1/1\n04-27-2026 14:59:41 RAM 6/3MB VDD_IN 1/1\n", "date");
}

/* Dates are whole seconds: ten lines a second are spread over it. */
static void tegrastats_between_seconds(void **state)
{
    char text[64 * 80];
    size_t at = 0;
    struct log log = {0};
    (void)state;
    for (int i = 0; i < 50; i++)
        at +=
            (size_t)snprintf(text + at, sizeof text - at,
                             "04-27-2026 14:59:%02d RAM 1/2MB VDD_IN 1000mW/1000mW\n", 7 + i / 10);
    assert_int_equal(read_log(&log, text), 0);
    struct column c = readings(&log, "VDD_IN", NRG_POWER);
    assert_int_equal(c.n, 50);
    for (size_t i = 1; i < c.n; i++) {
        assert_true(c.t_ns[i] - c.t_ns[i - 1] >= 50 * NRG_NS_PER_MS);
        assert_true(c.t_ns[i] - c.t_ns[i - 1] <= 200 * NRG_NS_PER_MS);
    }
    assert_true(llabs(find(&log, "VDD_IN", NRG_POWER)->period_ns - 100 * NRG_NS_PER_MS) <
                NRG_NS_PER_MS);
    done(&log);
    /* Without dates the user says it. */
    log.options.period_ns = 250 * NRG_NS_PER_MS;
    assert_int_equal(read_log(&log, "RAM 1/2MB VDD_IN 1/1\nRAM 1/2MB VDD_IN 1/1\n"), 0);
    assert_int_equal(readings(&log, "VDD_IN", NRG_POWER).t_ns[1], 250 * NRG_NS_PER_MS);
    assert_string_equal(log.result.note, "");
    done(&log);
    log.options.period_ns = 0;
    assert_int_equal(read_log(&log, "RAM 1/2MB VDD_IN 1/1\nRAM 1/2MB VDD_IN 1/1\n"), 0);
    assert_non_null(strstr(log.result.note, "1 s apart"));
    done(&log);
}

static void perf_intervals(void **state)
{
    struct log log = {0};
    (void)state;
    assert_int_equal(read_log(&log, "# started on Sun Aug 24 12:00:00 2025\n\n"
                                    "     1.5,10.5,Joules,power/energy-pkg/,200,100.00,,\n"
                                    "     1.5,<not counted>,Joules,power/energy-ram/,0,0.00,,\n"
                                    "     1.5,123,,cycles,200,100.00,,\n"
                                    "     2.5,20,Joules,power/energy-pkg/,200,100.00,,\n"
                                    "     2.5,4,Joules,power/energy-ram/,200,100.00,,\n"),
                     0);
    assert_true(fabs(energy_j(&log, "package-0") - 30.5) < 1e-9);
    assert_int_equal(log.result.begin_ns, INT64_C(1756036800000000000));
    assert_int_equal(log.result.end_ns - log.result.begin_ns, 2500 * NRG_NS_PER_MS);
    done(&log);
    /* By socket, another separator, a comma as decimal point, no date. */
    assert_int_equal(read_log(&log, "1,5;S0;1;10,5;Joules;power/energy-pkg/;2;100,00;;\n"
                                    "1,5;S1;1;30;Joules;power/energy-pkg/;2;100,00;;\n"),
                     0);
    assert_true(fabs(energy_j(&log, "package-0") - 10.5) < 1e-9);
    assert_true(fabs(energy_j(&log, "package-1") - 30) < 1e-9);
    assert_int_equal(log.result.end_ns, 1500 * NRG_NS_PER_MS);
    done(&log);
}

static void perf_without_intervals(void **state)
{
    struct log log = {0};
    (void)state;
    expect_refusal("2553.86,Joules,power/energy-pkg/,192545269820,100.00,,\n", "--period");
    expect_refusal("  1.0   19.63 Joules power/energy-pkg/\n", "-x,");
    expect_refusal("2,1,Joules,power/energy-pkg/,1,1,,\n1,1,Joules,power/energy-pkg/,1,1,,\n",
                   "before that of the line before");
    expect_refusal("1.0,x,Joules,power/energy-pkg/,1,1,,\n", "no energy");
    expect_refusal("1.0,<not supported>,Joules,power/energy-pkg/,1,1,,\n", "no energy event");
    log.options.period_ns = 192 * NRG_NS_PER_S;
    assert_int_equal(read_log(&log, "2553.5,Joules,power/energy-pkg/,192545269820,100.00,,\n"), 0);
    assert_true(fabs(energy_j(&log, "package-0") - 2553.5) < 1e-9);
    assert_int_equal(log.result.end_ns - log.result.begin_ns, 192 * NRG_NS_PER_S);
    done(&log);
    log.options.period_ns = 0;
    assert_int_equal(read_log(&log, "7,Joules,power/energy-pkg/,1,100.00,,\n"
                                    "2000000000,ns,duration_time,2000000000,100.00,,\n"),
                     0);
    assert_int_equal(log.result.end_ns - log.result.begin_ns, 2 * NRG_NS_PER_S);
    done(&log);
}

#define CARBON                                                                                     \
    "timestamp,project_name,run_id,duration,emissions,cpu_energy,gpu_energy,ram_energy,"           \
    "energy_consumed,gpu_count\n"

static void codecarbon_rows_are_intervals(void **state)
{
    struct log log = {0};
    (void)state;
    assert_int_equal(read_log(&log, CARBON "2024-05-31T10:00:10,p,a,10.0,1,1e-5,0,2e-5,3e-5,\n"
                                           "2024-05-31T10:00:30,p,a,30.0,1,3e-5,0,4e-5,7e-5,\n"
                                           "2024-05-31T11:00:00,p,b,5.5,1,1e-5,0,,1e-5,\n"),
                     0);
    assert_true(fabs(energy_j(&log, "package-0") - (3e-5 + 1e-5) * 3.6e6) < 1e-4);
    assert_true(fabs(energy_j(&log, "dram-0") - 4e-5 * 3.6e6) < 1e-4);
    assert_null(find(&log, "gpu-0", NRG_ENERGY)); /* none: not 0 J */
    assert_null(find(&log, "tracked", NRG_ENERGY));
    assert_int_equal(find(&log, "package-0", NRG_ENERGY)->channel.provenance, NRG_ESTIMATED);
    assert_true(find(&log, "dram-0", NRG_ENERGY)->channel.error_low > 0);
    assert_int_equal(log.result.begin_ns, INT64_C(1717149600000000000));
    assert_int_equal(log.result.segments, 2);
    assert_non_null(strstr(log.result.note, "1 rows"));
    done(&log);
    /* Tasks follow each other, within one second of the date, too. */
    assert_int_equal(
        read_log(&log, "task_name,timestamp,run_id,duration,emissions,cpu_energy,energy_consumed\n"
                       "a,2026-11-17T03:07:31,r,0.75,1,1e-6,1e-6\n"
                       "b,2026-11-17T03:07:31,r,0.85,1,2e-6,2e-6\n"
                       "c,2026-11-17T03:07:31,r,0.05,1,3e-6,3e-6\n"),
        0);
    assert_true(fabs(energy_j(&log, "package-0") - 6e-6 * 3.6e6) < 1e-5);
    assert_int_equal(log.result.end_ns - log.result.begin_ns, INT64_C(1650000000));
    assert_int_equal(log.result.segments, 1);
    done(&log);
    /* The first versions: the sum alone. */
    assert_int_equal(read_log(&log, "timestamp,project_name,duration,emissions,energy_consumed\n"
                                    "2021-05-31T10:00:10,p,10,1,1e-3\n"),
                     0);
    assert_true(fabs(energy_j(&log, "tracked") - 3600) < 1e-3);
    done(&log);
    expect_refusal(CARBON "2024-05-31T10:00:10,p,a,10.0,1,1e-5,0,2e-5,3e-5,\n"
                          "2024-05-31T10:00:12,p,b,10.0,1,1e-5,0,2e-5,3e-5,\n",
                   "at the same time");
    expect_refusal(CARBON "2024-05-31T10:00:10,p,a,-1,1,1e-5,0,2e-5,3e-5,\n", "duration");
    expect_refusal(CARBON "2024-05-31T10:00:10,p,a,1,1,-1,0,2e-5,3e-5,\n", "cpu_energy");
    expect_refusal(CARBON, "holds no record");
}

#define ZEUS "start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy\n"

static void zeus_windows(void **state)
{
    struct log log = {0};
    (void)state;
    assert_int_equal(read_log(&log, ZEUS "1681552801,step,1,10,20\n"
                                         "1681552802,step,1,11,21\n"
                                         "1681552800,epoch,10,100,200\n"
                                         "1681552900,\"a, b\",2,7,9\n"),
                     0);
    assert_true(fabs(energy_j(&log, "gpu-0") - 107) < 1e-9);
    assert_true(fabs(energy_j(&log, "gpu-1") - 209) < 1e-9);
    assert_non_null(strstr(log.result.note, "2 windows"));
    assert_int_equal(nrg_recording_realtime_ns(log.recording, log.result.begin_ns),
                     INT64_C(1681552800) * NRG_NS_PER_S);
    done(&log);
    expect_refusal(ZEUS "10,a,10,1,1\n15,b,10,1,1\n", "overlaps");
    expect_refusal(ZEUS "10,a,0,1,1\n", "elapsed_time");
    expect_refusal("start_time,window_name,elapsed_time\n10,a,1\n", "no GPU");
}

static void zeus_powers(void **state)
{
    struct log log = {0};
    (void)state;
    assert_int_equal(read_log(&log, "Time,0,2\n1681552800.1,64.2,1\n1681552800.2,65.2,\n"), 0);
    assert_int_equal(readings(&log, "gpu-0", NRG_POWER).raw[1], 65200);
    assert_int_equal(readings(&log, "gpu-2", NRG_POWER).n, 1);
    done(&log);
    expect_refusal("Time,0\n1681552800.1,-3\n", "power in W");
}

/* A byte order mark before the first line, as spreadsheets write it, and DOS line ends. */
static void marks_are_dropped(void **state)
{
    static const char *const logs[] = {
        "\xef\xbb\xbf" CARBON "2024-05-31T10:00:10,p,a,10.0,1,1e-5,0,2e-5,3e-5,\r\n",
        "\xef\xbb\xbfstart_time,window_name,elapsed_time,gpu0_energy\r\n1700000000.5,a,2.0,1.0\r\n",
        ("\xef\xbb\xbf"
         "04-27-2026 14:59:41 RAM 1/2MB (lfb 1x2MB) VDD_IN 1mW/1mW\r\n"),
        "\xef\xbb\xbftimestamp, power.draw [W]\r\n2025/04/09 08:59:06.3, 60 W\r\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        struct log log = {0};
        assert_int_equal(read_log(&log, logs[i]), 0);
        done(&log);
    }
}

static void others_are_named(void **state)
{
    (void)state;
    expect_refusal("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer");
    expect_refusal("{\n  \"schema\": \"1.0.1\", \"pid\": 5,\n  \"nodes\": [{\"a\": 1}]\n}\n",
                   "execution trace of PyTorch");
    expect_refusal("{\"schema\": \"nrg.report/1\", \"total\": {}}\n", "nrg.report/1");
    expect_refusal("{\"interval\" : 1.0, \"counter-value\" : \"2.5\", \"unit\" : \"Joules\", "
                   "\"event\" : \"power/energy-pkg/\"}\n",
                   "perf stat's JSON");
    expect_refusal("{\"colour\": 1,\n \"size\": [2], \"x\": {}}", "\"colour\", \"size\", \"x\"");
    expect_refusal("run_id,experiment_id,status,artifact_uri\n1,2,3,4\n", "MLflow");
    expect_refusal("# gpu    pwr  gtemp\n# Idx      W      C\n    0     50     30\n", "dmon");
    expect_refusal("#           time             counts unit events\n     1.000123456      "
                   "        12.50 Joules power/energy-pkg/\n",
                   "-x,");
    expect_refusal("\xff\xfet\n", "UTF-16");
    expect_refusal("<!doctype html><p>not found", "web page");
    expect_refusal("what,is,this\n", "is neither a log");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nvidia_smi_takes_turns),
        cmocka_unit_test(nvidia_smi_names_gpus),
        cmocka_unit_test(nvidia_smi_refuses),
        cmocka_unit_test(tegrastats_dialects),
        cmocka_unit_test(tegrastats_between_seconds),
        cmocka_unit_test(perf_intervals),
        cmocka_unit_test(perf_without_intervals),
        cmocka_unit_test(codecarbon_rows_are_intervals),
        cmocka_unit_test(zeus_windows),
        cmocka_unit_test(zeus_powers),
        cmocka_unit_test(marks_are_dropped),
        cmocka_unit_test(others_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
