/*
 * nrg calibrate: what a device's arithmetic and memory cost, without any framework. The kernels and
 * the loop over them are in calibrate/, energy comes from the recorder. Here are the options,
 * Ctrl-C, and the data set for nrg train.
 */
#include <signal.h>

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/calibrate/gpu.h"
#include "cli/calibrate/meter.h"
#include "cli/data.h"
#include "cli/stop.h"
#include "report/calibration.h"
#include "report/prediction/report.h"

#define EXIT_INTERRUPTED (128 + SIGINT)

struct values {
    const char *output, *json, *device, *from;
    struct nrg_idle_full cpu_watts;
    struct nrg_list sensors;
    double error_percent;
    int64_t window_ns, limit_ns, idle_ns;
    int threads, idle_rule;
    unsigned families; /* bits; 0: all */
    bool quick, gpu;
};

static const struct values defaults = {.error_percent = 3};

static const struct nrg_choice idle_rules[] = {
    {"apart", NRG_IDLE_APART, "above idle; default"},
    {"share", NRG_IDLE_SHARE, "with idle energy"},
    {0},
};

static const struct nrg_choice families[] = {
    {"gemm", NRG_POINT_GEMM, NULL},
    {"conv", NRG_POINT_CONV, NULL},
    {"stream", NRG_POINT_STREAM, NULL},
    {0},
};
_Static_assert(sizeof families / sizeof *families == NRG_POINT_FAMILIES + 1, "a word for each");

#define TEXT(number) #number
#define UP_TO(most)  "1 to " TEXT(most)

static const struct nrg_opt options[] = {
    {"output", 'o', NRG_OPT_STRING, "FILE",
     "a data set for nrg train: CSV, or JSON when the name ends in .json",
     offsetof(struct values, output)},
    {"quick", 0, NRG_OPT_FLAG, NULL, "fewer sizes and shorter readings: less than a minute",
     offsetof(struct values, quick)},
    {"threads", 'n', NRG_OPT_COUNT_IN(1, NRG_STREAM_MEMBERS, UP_TO(NRG_STREAM_MEMBERS)), "N",
     "threads (default: all CPUs that nrg may use)", offsetof(struct values, threads)},
    {"only", 0, NRG_OPT_CHOICES(families), "WHAT,WHAT",
     "only these of: ", offsetof(struct values, families)},
    {"error", 'e', NRG_OPT_NUMBER_IN(1e-9, 100, "a percentage above 0"), "PERCENT",
     "repeat each point until its energy is known so well (default 3)",
     offsetof(struct values, error_percent)},
    {"limit", 't', NRG_OPT_DURATION, "TIME", "but no longer per point (default 10s, quick 2s)",
     offsetof(struct values, limit_ns)},
    {"window", 'w', NRG_OPT_DURATION, "TIME", "length of one reading (default 500ms, quick 200ms)",
     offsetof(struct values, window_ns)},
    {"idle-time", 0, NRG_OPT_DURATION, "TIME",
     "measure the idle machine so long, before and after (default 3s, quick 1s)",
     offsetof(struct values, idle_ns)},
    {"idle", 0, NRG_OPT_CHOICE(idle_rules), "RULE",
     "energies of the data set: ", offsetof(struct values, idle_rule)},
    {"device", 0, NRG_OPT_STRING, "NAME", "the device's name in the data set",
     offsetof(struct values, device)},
    {"sensor", 's', NRG_OPT_LIST, "DRIVER[:ARG]",
     "only these drivers, as for nrg run; may be repeated", offsetof(struct values, sensors)},
    {"cpu-watts", 0, NRG_OPT_WATTS, "IDLE:FULL", "this machine's power, for the estimate",
     offsetof(struct values, cpu_watts)},
    {"gpu", 0, NRG_OPT_FLAG, NULL,
     "instead: how a GPU's power sensor samples; -o FILE is for --sensor-profile",
     offsetof(struct values, gpu)},
    {"from", 0, NRG_OPT_STRING, "FILE", "--gpu: from a recording of such a load; nothing is run",
     offsetof(struct values, from)},
    {"json", 'j', NRG_OPT_FILE, "FILE", "everything as JSON, to stdout or FILE",
     offsetof(struct values, json)},
    {0},
};

struct job {
    struct nrg_cli *cli;
    const struct values *v;
    struct nrg_calibrate_options how;
    struct nrg_points_options what;
    struct nrg_caches caches;
    struct nrg_points points;
    struct nrg_recorder_meter meter;
    struct nrg_calibration calibration;
    double seconds;
    struct nrg_error err;
};

/* ---- options ---- */

static unsigned allowed_cpus(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    return n < 1 ? 1 : n > NRG_STREAM_MEMBERS ? NRG_STREAM_MEMBERS : (unsigned)n;
}

static double seconds_or(int64_t ns, double usual)
{
    return ns ? (double)ns / 1e9 : usual;
}

static int read_options(struct job *job, int argc)
{
    const struct values *v = job->v;
    if (argc)
        return nrg_usage(job->cli, "takes no operands: nrg calibrate -o data.csv");
    job->how =
        (struct nrg_calibrate_options){.relative_error = v->error_percent / 100,
                                       .window_s = seconds_or(v->window_ns, v->quick ? 0.2 : 0.5),
                                       .limit_s = seconds_or(v->limit_ns, v->quick ? 2 : 10),
                                       .idle_s = seconds_or(v->idle_ns, v->quick ? 1 : 3)};
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    job->what.memory_bytes = pages > 0 && page > 0 ? (size_t)pages / 8 * (size_t)page : 64 << 20;
    job->what.threads = v->threads ? (unsigned)v->threads : allowed_cpus();
    job->what.quick = v->quick;
    job->meter.sensors.only = v->sensors.items;
    job->meter.sensors.cpu_idle_w = v->cpu_watts.idle_w;
    job->meter.sensors.cpu_full_w = v->cpu_watts.full_w;
    for (int f = 0; f < NRG_POINT_FAMILIES; f++)
        job->what.families[f] = !v->families || v->families >> f & 1;
    return 0;
}

/* ---- measuring ---- */

static bool asked_to_stop(void *arg)
{
    return nrg_stop_asked();
}

static void show_progress(void *arg, size_t at, size_t n, const char *what)
{
    const struct nrg_recorder_meter *meter = arg;
    if (meter->cli->quiet)
        return;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[Knrg: %zu of %zu: %s", at > n ? n : at, n, what);
    else
        nrg_say("%zu of %zu: %s", at > n ? n : at, n, what);
}

static int measure_points(struct job *job)
{
    const struct nrg_meter meter = {.arg = &job->meter,
                                    .measure = nrg_recorder_meter_measure,
                                    .stop = asked_to_stop,
                                    .progress = show_progress};
    struct nrg_team *team = NULL;
    int64_t begin_ns = nrg_now_ns();
    job->meter.cli = job->cli;
    nrg_root_complete(&job->cli->ctx.root, NRG_PART_PROC);
    nrg_caches_read(&job->cli->ctx.root, &job->caches);
    int rc = nrg_points_make(&job->points, &job->caches, &job->what);
    if (rc)
        return nrg_fail(&job->err, rc, NULL, "out of memory");
    rc = nrg_recorder_meter_open(&job->meter, &job->err);
    if (!rc)
        rc = nrg_team_new(&team, job->what.threads, &job->err);
    if (!rc) {
        nrg_stop_catch();
        rc = nrg_calibrate(&job->calibration, &job->points, team, &meter, &job->how, &job->err);
        if (!job->cli->quiet && isatty(STDERR_FILENO))
            fprintf(stderr, "\r\033[K");
    }
    nrg_team_free(team);
    nrg_recorder_meter_close(&job->meter);
    job->seconds = (double)(nrg_now_ns() - begin_ns) / 1e9;
    return rc;
}

/* ---- results ---- */

static int add_point_row(struct nrg_dataset *set, const struct job *job, const char *device,
                         const struct nrg_point_result *r, struct nrg_draft *draft)
{
    const struct nrg_point *p = r->point;
    const char *provenance = nrg_provenance_name(job->meter.provenance);
    uint32_t at;
    double energy_j = job->v->idle_rule == NRG_IDLE_SHARE ? r->energy_j : r->above_j;
    if (isnan(energy_j))
        return nrg_dataset_note(set, "calibration", -1,
                                "a point used no more than the idle machine: left out");
    nrg_draft_clear(draft);
    draft->row.device = nrg_dataset_text(set, device, strlen(device));
    draft->row.model = nrg_dataset_text(set, "calibration", 11);
    draft->row.node = nrg_dataset_text(set, p->name, strlen(p->name));
    draft->row.kind = nrg_dataset_text(set, p->kind, strlen(p->kind));
    draft->row.provenance = nrg_dataset_text(set, provenance, strlen(provenance));
    if (!draft->row.device || !draft->row.model || !draft->row.node || !draft->row.kind ||
        !draft->row.provenance)
        return -ENOMEM;
    draft->row.level = NRG_NODE_OPERATOR;
    draft->row.energy_j = energy_j;
    draft->row.repeats = r->calls;
    draft->features[NRG_F_MACS] = p->macs;
    draft->features[NRG_F_READ_BYTES] = p->read_bytes;
    draft->features[NRG_F_WRITTEN_BYTES] = p->written_bytes;
    draft->features[NRG_F_TIME_S] = r->time_s;
    return nrg_dataset_add(set, draft, &at);
}

static int write_data(struct job *job, const char *device)
{
    struct nrg_dataset set;
    struct nrg_draft draft = {0};
    int rc = 0, code = 1;
    nrg_dataset_init(&set);
    rc = nrg_dataset_counted_by(&set, "nrg", "calibration", &job->err);
    for (size_t i = 0; !rc && i < job->calibration.n; i++)
        rc = add_point_row(&set, job, device, &job->calibration.results[i], &draft);
    if (rc)
        nrg_fail(&job->err, rc, NULL, "out of memory");
    else if (!(rc = nrg_dataset_finish(&set, &job->err)))
        code = nrg_data_write(&set, job->v->output);
    if (rc == -ENODATA)
        nrg_fail(&job->err, rc, job->v->output,
                 "not written: no point used more than the idle machine (--idle share keeps idle "
                 "energy in)");
    if (rc)
        nrg_complain(&job->err, 1);
    for (size_t i = 0; !rc && i < set.n_notes; i++)
        nrg_log(&job->cli->ctx, NRG_WARNING, "%s: %s (%zu of %zu)", job->v->output,
                set.notes[i].text, set.notes[i].count, job->calibration.n);
    nrg_draft_release(&draft);
    nrg_dataset_release(&set);
    return code;
}

static int show_results(struct job *job)
{
    const struct values *v = job->v;
    const char *cpu = job->meter.device[0] ? job->meter.device : "unknown processor";
    const char *device = v->device ? v->device : cpu;
    const struct nrg_calibration_report report = {.calibration = &job->calibration,
                                                  .caches = &job->caches,
                                                  .points = &job->points,
                                                  .device = device,
                                                  .domains = job->meter.domains,
                                                  .provenance =
                                                      nrg_provenance_name(job->meter.provenance),
                                                  .threads = job->what.threads,
                                                  .seconds = job->seconds};
    int code = 0;
    if (!nrg_is_stdout(v->json))
        nrg_calibration_text(&report, stdout);
    if (v->json)
        code = nrg_print_json(nrg_calibration_json(&report), v->json);
    if (!code && v->output)
        code = write_data(job, device);
    return code;
}

static int calibrate_gpu(struct nrg_cli *cli, const struct values *v, char **argv)
{
    const struct nrg_gpu_calibration how = {
        .from = v->from, .output = v->output, .json = v->json, .command = argv};
    int code = nrg_output_check(v->output);
    if (!code)
        code = nrg_output_check(v->json);
    return code ? code : nrg_calibrate_gpu(cli, &how);
}

static int run_calibrate(struct nrg_cli *cli, void *values, int argc, char **argv)
{
    struct job job = {.cli = cli, .v = values};
    if (job.v->from && !job.v->gpu)
        return nrg_usage(cli, "--from belongs to --gpu");
    if (job.v->gpu)
        return calibrate_gpu(cli, job.v, argv);
    int code = read_options(&job, argc);
    if (!code)
        code = nrg_output_check(job.v->output);
    if (!code)
        code = nrg_output_check(job.v->json);
    if (code)
        return code;
    if (measure_points(&job))
        code = nrg_complain(&job.err, 1);
    else if (!job.calibration.n && job.calibration.interrupted)
        nrg_say("interrupted before the first point was measured");
    else
        code = show_results(&job);
    if (!code && job.calibration.interrupted)
        code = EXIT_INTERRUPTED;
    nrg_calibration_release(&job.calibration);
    nrg_points_release(&job.points);
    return code;
}

const struct nrg_command nrg_cmd_calibrate = {
    .name = "calibrate",
    .summary = "joules per MAC, per byte and at idle of this machine",
    .synopsis = "[OPTIONS] [-o data.csv] | --gpu [-o sensor.json] [--from FILE.nrg | -- COMMAND]",
    .about =
        "Measures what this machine's arithmetic and memory cost, without any framework: matrix\n"
        "products and convolutions of graded sizes, memory streams from the first cache to well\n"
        "beyond the last, and the idle machine before and after. Each is repeated until its\n"
        "energy is known to 3 %, or for 10 seconds. Energy comes from what nrg run measures with;\n"
        "where that is the estimate, everything says so.\n\n"
        "The data set that -o writes makes a profile for nrg predict. It knows operators only:\n"
        "predictions say so, and have wide intervals. Ctrl-C keeps what was measured.\n\n"
        "With --gpu it finds out how often the power sensor of a GPU updates, and which part of\n"
        "the time it sees. COMMAND is a load that marks spans 'on' and 'off'; without one it is\n"
        "python3 -m nrg.gpu_load, matrix products of PyTorch (docs/calibrate.md).",
    .examples =
        "  nrg calibrate --quick\n"
        "  nrg calibrate -o here.csv && nrg train here.csv -o here.json\n"
        "  nrg calibrate --threads 1 --only gemm --json\n"
        "  nrg calibrate --gpu -o a100.json && nrg run --sensor-profile a100.json ./train\n",
    .options = options,
    .values_size = sizeof(struct values),
    .defaults = &defaults,
    .opens_sensors = true,
    .run = run_calibrate,
};
