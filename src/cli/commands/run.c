/*
 * nrg run: measures a command, given processes, or the whole machine for a while.
 *
 * A failure of nrg after the command has started is reported on stderr, but the command runs on and
 * its exit code is returned. stdout belongs to the command; the table goes to stderr.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mapped.h"
#include "base/mem.h"
#include "cli/desk.h"
#include "cli/privilege.h"
#include "cli/run/begin.h"
#include "cli/run/gpu_trace.h"
#include "cli/run/graph.h"
#include "cli/run/heap.h"
#include "cli/run/launch.h"
#include "cli/run/outlook.h"
#include "cli/run/pids.h"
#include "cli/run/torch.h"
#include "cli/run/witness.h"
#include "cli/show.h"
#include "cli/stop.h"
#include "record/sampler/recorder.h"
#include "record/spans/segment.h"

enum {
    EXIT_NRG_FAILED = 125,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
    EXIT_INTERRUPTED = 128 + SIGINT
};

struct values {
    struct nrg_show_options show;
    const char *output;
    bool force, system, per_cpu, durable;
    double rate_hz;
    int64_t for_ns, baseline_ns;
    int repeat;
    struct nrg_run_pids given;
    struct nrg_list notes, sensors;
    struct nrg_desk desk;
    struct nrg_idle_full cpu_watts;
    const char *graph, *graph_params;
    int torch;     /* enum nrg_torch_mode */
    int gpu_trace; /* enum nrg_gpu_trace */
    const char *llm;
};

static const struct nrg_choice torch_modes[] = {
    {"modules", NRG_TORCH_MODULES, "default"},
    {"operators", NRG_TORCH_OPERATORS, "and modules"},
    {0},
};

static const struct nrg_choice gpu_traces[] = {
    {"on", NRG_GPU_TRACE_ON, "default; with --torch where there is a GPU"},
    {"off", NRG_GPU_TRACE_OFF, "not with --torch either"},
    {0},
};

static const struct nrg_opt options[] = {
    {"output", 'o', NRG_OPT_STRING, "FILE", "the recording (default: nrg-DATE-TIME-PID.nrg)",
     offsetof(struct values, output)},
    {"force", 'f', NRG_OPT_FLAG, NULL, "overwrite the recording", offsetof(struct values, force)},
    {"durable", 0, NRG_OPT_FLAG, NULL, "a power cut takes at most the last second, else five",
     offsetof(struct values, durable)},
    {"rate", 'r', NRG_OPT_RATE, "RATE", "readings per second; 10Hz, with spans 100Hz; 1kHz works",
     offsetof(struct values, rate_hz)},
    {"repeat", 'n', NRG_OPT_COUNT, "N", "run the command N times: mean, spread, 95 % interval",
     offsetof(struct values, repeat)},
    {"baseline", 'b', NRG_OPT_DURATION, "TIME",
     "measure the idle machine for TIME before, and after the command again",
     offsetof(struct values, baseline_ns)},
    {"pid", 'p', NRG_OPT_PIDS, "PID", "follow this process and its descendants instead",
     offsetof(struct values, given)},
    {"system", 'a', NRG_OPT_FLAG, NULL, "the whole machine with all its processes",
     offsetof(struct values, system)},
    {"for", 't', NRG_OPT_DURATION, "TIME", "with --system or --pid: stop after TIME",
     offsetof(struct values, for_ns)},
    {"note", 0, NRG_OPT_NOTES, "KEY=VALUE", "keep a note in the recording; may be repeated",
     offsetof(struct values, notes)},
    {"sensor", 's', NRG_OPT_LIST, "DRIVER[:ARG]",
     "only these drivers, and the machine's load; may be repeated",
     offsetof(struct values, sensors)},
    NRG_DESK_OPTIONS(struct values, desk),
    {"cpu-watts", 0, NRG_OPT_WATTS, "IDLE:FULL", "this machine's power, for the estimate",
     offsetof(struct values, cpu_watts)},
    {"graph", 'g', NRG_OPT_STRING, "FILE", "keep the model's graph in the recording (nrg graph)",
     offsetof(struct values, graph)},
    {"graph-params", 0, NRG_OPT_STRING, "FILE", "shapes of its parameters, as nrg graph --params",
     offsetof(struct values, graph_params)},
    {"torch", 0, NRG_OPT_OPTIONAL_CHOICE(torch_modes), "WHAT",
     "what to mark of PyTorch in an unchanged Python program: ", offsetof(struct values, torch)},
    {"gpu-trace", 0, NRG_OPT_OPTIONAL_CHOICE(gpu_traces), "WHEN",
     "spans of kernels and copies of CUDA and ROCm, and of ranges (NVTX, roctx): ",
     offsetof(struct values, gpu_trace)},
    {"llm", 0, NRG_OPT_STRING, "URL",
     "count tokens of the language model's server there (vLLM, SGLang, llama.cpp, TGI, ...)",
     offsetof(struct values, llm)},
    {"per-cpu", 0, NRG_OPT_FLAG, NULL, "record the utilisation of every CPU",
     offsetof(struct values, per_cpu)},
    NRG_SHOW_OPTIONS(struct values, show),
    {0},
};

struct session {
    struct nrg_cli *cli;
    struct values *values;
    struct nrg_recorder *recorder;
    char path[4096];
    struct stat made; /* the file that the recorder writes */
    char **argv;
    int64_t next_run;
    struct nrg_run_graph graph;
    struct nrg_run_torch torch;
    struct nrg_span_segment spans; /* where the command can mark spans */
    char spans_variable[NRG_RING_VARIABLE_SIZE];
    bool begun;    /* the file is there, and ours */
    bool started;  /* the measured part has begun: there is something to show */
    int show_code; /* of showing it */
};

static int check_usage(struct session *s, int argc)
{
    struct values *v = s->values;
    int modes = (argc > 0) + (v->given.n > 0) + v->system;
    if (modes != 1)
        return nrg_usage(s->cli, modes ? "a command, --pid and --system exclude each other"
                                       : "wants a command: nrg run -- python3 train.py");
    if (!nrg_show_fits(&v->show))
        return nrg_usage(s->cli, "--print and --json both want stdout: give --json=FILE");
    if (argc && v->for_ns)
        return nrg_usage(s->cli, "--for goes with --system or --pid; a command ends by itself");
    if (!argc && (v->repeat || v->torch || v->gpu_trace == NRG_GPU_TRACE_ON))
        return nrg_usage(s->cli, "--%s goes with a command",
                         v->repeat  ? "repeat"
                         : v->torch ? "torch"
                                    : "gpu-trace");
    if (v->system && !v->for_ns && !s->cli->quiet)
        nrg_say("measuring the machine until Ctrl-C (or give --for 10s)");
    return 0;
}

static bool marks_spans(const struct values *v)
{
    return v->torch || v->gpu_trace == NRG_GPU_TRACE_ON;
}

static void write_notes(struct session *s, int argc, char **argv)
{
    struct nrg_str line = {0};
    for (int i = 0; i < argc; i++)
        nrg_str_addf(&line, "%s%s", i ? " " : "", argv[i]);
    if (!argc)
        nrg_str_addf(&line, s->values->system ? "(whole machine)" : "(given processes)");
    nrg_run_write_notes(s->recorder, s->cli, line.text ? line.text : "", &s->values->notes);
    nrg_str_release(&line);
}

static int open_recorder(struct session *s, int argc, char **argv)
{
    struct values *v = s->values;
    struct nrg_error err, no_spans = {0};
    if (nrg_run_add_load(&v->sensors))
        return EXIT_NRG_FAILED;
    struct nrg_recorder_options o = {.path = s->path,
                                     .overwrite = v->force,
                                     .durable = v->durable,
                                     .rate_hz = v->rate_hz,
                                     .quick = v->rate_hz > 0 ? NRG_QUICK_NEVER

                                              : marks_spans(v) ? NRG_QUICK_ALWAYS
                                                               : NRG_QUICK_WITH_SPANS,
                                     .whole_system = v->system,
                                     .sensors = {.only = v->sensors.items, .per_cpu = v->per_cpu}};
    /* A command runs on this machine, also when its sensors are a fake or a captured tree. Given
     * processes, or all, are those of the tree's /proc, where it has one. */
    nrg_root_complete(&s->cli->ctx.root, NRG_PART_PROC);
    o.live_processes = argc > 0 || nrg_root_part_is_live(&s->cli->ctx.root, NRG_PART_PROC);
    if (nrg_desk_read(&v->desk, s->cli, &o.sensors, &err))
        return nrg_complain(&err, EXIT_NRG_FAILED);
    o.sensors.cpu_idle_w = v->cpu_watts.idle_w;
    o.sensors.cpu_full_w = v->cpu_watts.full_w;
    o.sensors.llm = v->llm;
    if (nrg_output_check(v->show.json))
        return EXIT_NRG_FAILED;
    if (nrg_run_output_path(v->output, s->path, sizeof s->path))
        return EXIT_NRG_FAILED;
    /* A command is measured even when it can't mark spans; the report says so. */
    if (argc)
        nrg_span_segment_init(&s->spans, false, &no_spans);
    o.spans = s->spans.header ? &s->spans : NULL;
    if (nrg_recorder_new(&s->cli->ctx, &o, &s->recorder, &err))
        return nrg_complain(&err, EXIT_NRG_FAILED);
    /* The sensors are open: nothing that follows, threads and parsers, has a capability. */
    s->cli->ctx.gave_up_privileges = nrg_privilege_drop();
    if (v->graph && nrg_run_graph_read(&s->graph, v->graph, v->graph_params, &err))
        return nrg_complain(&err, EXIT_NRG_FAILED);
    write_notes(s, argc, argv);
    if (v->graph && nrg_run_graph_store(&s->graph, s->recorder, &err))
        return nrg_complain(&err, EXIT_NRG_FAILED);
    if (nrg_recorder_begin(s->recorder, &err))
        return nrg_complain(&err, EXIT_NRG_FAILED);
    s->begun = true;
    lstat(s->path, &s->made); /* it has its name now */
    nrg_recorder_await_pushed(s->recorder, 0);
    if (no_spans.code)
        nrg_recorder_event(s->recorder, "unavailable", "spans", no_spans.what);
    return 0;
}

static bool asked_to_stop(void)
{
    return nrg_stop_asked() || nrg_launch_asked_to_end();
}

static void sleep_ns(int64_t ns)
{
    struct timespec ts = {ns / NRG_NS_PER_S, ns % NRG_NS_PER_S};
    while (!asked_to_stop() && nanosleep(&ts, &ts) && errno == EINTR)
        ;
}

static struct nrg_run begin_run(struct session *s, const char *kind)
{
    return nrg_run_begin(s->recorder, ++s->next_run, kind);
}

static void measure_baseline(struct session *s)
{
    if (!s->cli->quiet)
        nrg_say("measuring the idle machine for %.3g s", (double)s->values->baseline_ns / 1e9);
    nrg_stop_catch();
    struct nrg_run run = begin_run(s, "baseline");
    sleep_ns(s->values->baseline_ns);
    nrg_stop_release();
    nrg_run_end(s->recorder, &run);
}

/*
 * Once more after the command: idle power drifts with the temperature. A sensor that averages still
 * shows the command for a while, so there is a rest first. A signal skips it; less than half of it
 * says nothing and is left out.
 */
static void measure_baseline_again(struct session *s)
{
    int64_t baseline_ns = s->values->baseline_ns, rest_ns = baseline_ns / 4;
    if (asked_to_stop())
        return;
    if (!s->cli->quiet)
        nrg_say("measuring the idle machine again for %.3g s (Ctrl-C skips it)",
                (double)baseline_ns / 1e9);
    nrg_stop_catch();
    sleep_ns(rest_ns < NRG_NS_PER_S ? rest_ns : NRG_NS_PER_S);
    if (!asked_to_stop()) {
        struct nrg_run run = begin_run(s, "baseline");
        sleep_ns(baseline_ns);
        if (!asked_to_stop() || nrg_now_ns() - run.begin_ns >= baseline_ns / 2)
            nrg_run_end(s->recorder, &run);
    }
    nrg_launch_catch_late();
}

static int64_t rusage_ns(const struct rusage *u)
{
    return ((int64_t)u->ru_utime.tv_sec + u->ru_stime.tv_sec) * NRG_NS_PER_S +
           ((int64_t)u->ru_utime.tv_usec + u->ru_stime.tv_usec) * 1000;
}

/*
 * Waits for the child, and reaps orphans that were handed to us meanwhile. The run ends when the
 * child's end is noticed, before the readings that mark it: they cover all of the run then.
 */
static int wait_for(struct session *s, pid_t child, int64_t *end_ns)
{
    for (;;) {
        siginfo_t info = {0};
        int status;
        struct rusage usage;
        if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOWAIT)) {
            if (errno == EINTR)
                continue;
            return EXIT_NRG_FAILED;
        }
        if (info.si_code == CLD_STOPPED) {
            nrg_launch_stopped(info.si_pid);
            continue;
        }
        /* A zombie's CPU clock still answers: read it before it is waited for. */
        nrg_recorder_exiting(s->recorder, info.si_pid);
        if (info.si_pid == child)
            *end_ns = nrg_recorder_read_now(s->recorder);
        if (wait4(info.si_pid, &status, 0, &usage) < 0)
            continue;
        nrg_recorder_waited(s->recorder, rusage_ns(&usage));
        if (info.si_pid == child)
            return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
}

/* Said once the command is known to run: a wrong one has its own line. */
static void print_outlook(const struct session *s)
{
    const struct nrg_run_outlook outlook = {.sensors = nrg_recorder_sensors(s->recorder),
                                            .rate_hz = s->values->rate_hz,
                                            .has_baseline = s->values->baseline_ns > 0,
                                            .marks_spans = marks_spans(s->values),
                                            .asks_server = s->values->llm != NULL};
    if (!s->cli->quiet && !s->started)
        nrg_run_outlook_print(&outlook, stderr);
}

static int run_once(struct session *s)
{
    struct nrg_error err;
    struct nrg_run run = begin_run(s, "run");
    struct nrg_launch_gift gift = {s->spans.header ? s->spans_variable : NULL, s->spans.fd};
    pid_t child = nrg_launch(s->argv, &gift, &err);
    if (child < 0) {
        nrg_complain(&err, 0);
        return child == -ENOENT                       ? EXIT_NOT_FOUND
               : child == -EAGAIN || child == -ENOMEM ? EXIT_NRG_FAILED
                                                      : EXIT_NOT_EXECUTABLE;
    }
    nrg_recorder_follow(s->recorder, child, true);
    nrg_recorder_run(s->recorder, &run);
    print_outlook(s);
    s->started = s->cli->ran_command = true;
    int code = wait_for(s, child, &run.end_ns);
    nrg_launch_ended();
    nrg_recorder_await_pushed(s->recorder, run.end_ns);
    run.exit_code = code;
    nrg_recorder_run(s->recorder, &run);
    return code;
}

static int run_command(struct session *s)
{
    int code = 0, times = s->values->repeat > 0 ? s->values->repeat : 1;
    if (s->values->torch)
        nrg_run_torch_prepare(&s->torch, nrg_choice_word(torch_modes, s->values->torch));
    bool asked = s->values->gpu_trace == NRG_GPU_TRACE_ON;
    if (asked || (s->values->torch && s->values->gpu_trace != NRG_GPU_TRACE_OFF &&
                  nrg_run_gpu_trace_helps(&s->cli->ctx.root)))
        nrg_run_gpu_trace_prepare(&s->cli->ctx.root, s->argv, asked);
    nrg_launch_prepare(s->argv, s->spans.header ? s->spans.fd : -1);
    nrg_recorder_leave_out(s->recorder, nrg_witness_pid());
    if (s->spans.header)
        nrg_span_segment_offer(&s->spans, nrg_witness_or_self(), s->spans_variable);
    for (int i = 0; i < times && !nrg_stop_asked(); i++) {
        if (times > 1 && !s->cli->quiet)
            nrg_say("run %d of %d", i + 1, times);
        code = run_once(s);
        nrg_run_torch_collect(&s->torch, s->recorder);
        if (code || nrg_launch_asked_to_end())
            break;
    }
    nrg_run_torch_release(&s->torch);
    if (s->started && s->values->baseline_ns)
        measure_baseline_again(s);
    return code;
}

/* --pid and --system: until the time is over, Ctrl-C, or all given processes have ended. */
static int watch_processes(struct session *s)
{
    nrg_stop_catch();
    for (size_t i = 0; i < s->values->given.n; i++) {
        if (nrg_recorder_follow(s->recorder, s->values->given.pids[i], false)) {
            nrg_say("there is no process %d", s->values->given.pids[i]);
            return EXIT_NRG_FAILED;
        }
    }
    struct nrg_run run = begin_run(s, "system");
    nrg_recorder_run(s->recorder, &run);
    s->started = true;
    nrg_run_pids_wait(&s->values->given,
                      s->values->for_ns ? run.begin_ns + s->values->for_ns : INT64_MAX);
    nrg_launch_catch_late();
    nrg_run_end(s->recorder, &run);
    return 0;
}

/*
 * From the connection that wrote it: by its name, the file may be another's by now. Also when the
 * recording could not be written.
 */
static void show_from_database(void *arg, struct sqlite3 *database)
{
    struct session *s = arg;
    struct nrg_recording *recording;
    struct nrg_error err;
    if (s->cli->quiet && !s->values->show.json && !s->values->show.print)
        return;
    if (nrg_recording_from_database(database, s->path, &recording, &err)) {
        s->show_code = nrg_complain(&err, 1);
        return;
    }
    s->show_code = nrg_show(recording, &s->values->show, s->cli->quiet ? NULL : stderr);
    nrg_recording_close(recording);
}

static bool is_still_there(const struct session *s)
{
    struct stat st;
    return !lstat(s->path, &st) && st.st_dev == s->made.st_dev && st.st_ino == s->made.st_ino;
}

/* Returns 1 when they could not be shown; the exit code of a command that ran stays its own. */
static int show_results(struct session *s)
{
    struct nrg_error err;
    if (!s->cli->quiet)
        fputc('\n', stderr);
    int rc = nrg_recorder_end(s->recorder, show_from_database, s, &err);
    if (rc)
        return nrg_complain(&err, 1);
    if (!is_still_there(s))
        nrg_say("%s: was removed or replaced by another program: there is no recording", s->path);
    else if (nrg_recorder_status(s->recorder)->spilled[0])
        nrg_say("%s: written completely after all", s->path);
    else if (!s->cli->quiet)
        fprintf(stderr, "\nrecording: %s   (nrg report, nrg export)\n", s->path);
    return s->show_code;
}

static int run_run(struct nrg_cli *cli, void *v, int argc, char **argv)
{
    struct session s = {.cli = cli, .values = v, .argv = argv, .spans = {.fd = -1}};
    nrg_run_heap_keep_small();
    int code = check_usage(&s, argc);
    if (!code)
        code = open_recorder(&s, argc, argv);
    nrg_run_graph_release(&s.graph);
    if (!code) {
        nrg_launch_survive_pipes();
        nrg_mapped_survive(); /* the command can cut the index of our log */
        if (s.values->baseline_ns)
            measure_baseline(&s);
        code = nrg_stop_asked() ? EXIT_INTERRUPTED : argc ? run_command(&s) : watch_processes(&s);
    }
    int shown = s.started ? show_results(&s) : 0;
    if (!argc && !code)
        code = shown;
    bool useless = s.begun && !s.started;
    nrg_recorder_free(s.recorder);
    if (useless &&
        is_still_there(&s)) /* a recording of nothing would only puzzle whoever finds it later */
        unlink(s.path);
    nrg_span_segment_release(&s.spans);
    nrg_desk_release(&s.values->desk);
    nrg_witness_end();
    nrg_launch_die_late();
    return code;
}

const struct nrg_command nrg_cmd_run = {
    .name = "run",
    .summary = "measure a command, processes, or the machine",
    .synopsis = "[OPTIONS] -- COMMAND [ARG...] | --pid PID | --system --for TIME",
    .about =
        "Runs COMMAND and measures the energy of the machine by part and by process until it "
        "ends.\n"
        "The command keeps its terminal, standard streams, signals, limits and exit code; the "
        "table\n"
        "goes to stderr, the recording to a .nrg file that nrg report and nrg export read.\n"
        "Every number says whether it was measured, derived or estimated.\n\n"
        "Exit code: the command's own (128+N when killed by signal N); 125 nrg could not start,\n"
        "126 the command can't be executed, 127 it was not found.",
    .examples = "  nrg run -- python3 train.py\n"
                "  nrg run --rate 100Hz --baseline 5s -o run.nrg -- ./solver input\n"
                "  nrg run --repeat 10 --json=result.json -- python3 infer.py\n"
                "  joules=$(nrg run -q --print energy -- ./solver input | tail -n 1)\n"
                "  nrg run --pid 4242 --for 1min\n"
                "  nrg run --system --for 10s\n"
                "  nrg run --llm http://127.0.0.1:8000 -- vllm serve MODEL   # docs/llm.md\n"
                "  nrg run --meter 'emonpi:/dev/ttyAMA0?node=5' -- ./solver   # docs/meters.md\n",
    .options = options,
    .values_size = sizeof(struct values),
    .not_started_code = EXIT_NRG_FAILED,
    .takes_command = true,
    .opens_sensors = true,
    .run = run_run,
};
