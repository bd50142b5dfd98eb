/*
 * nrg run: measures a command, given processes, or the whole machine for a while.
 *
 * Whatever fails in nrg after the command has started is said and survived: the command runs on
 * and its exit code comes through. stdout belongs to the command; the table goes to stderr.
 */
#include <errno.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/parse.h"
#include "cli/desk.h"
#include "cli/run/launch.h"
#include "cli/run/graph.h"
#include "cli/run/torch.h"
#include "cli/show.h"
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
    bool force, system, per_cpu;
    double rate_hz;
    int64_t for_ns, baseline_ns;
    int repeat;
    struct nrg_list pids, notes, sensors;
    struct nrg_desk desk;
    const char *cpu_watts;
    const char *graph, *graph_params;
    const char *torch;
};

static const struct nrg_opt options[] = {
    {"output", 'o', NRG_OPT_STRING, "FILE", "the recording (default: nrg-DATE-TIME-PID.nrg)",
     offsetof(struct values, output)},
    {"force", 'f', NRG_OPT_FLAG, NULL, "overwrite the recording", offsetof(struct values, force)},
    {"rate", 'r', NRG_OPT_RATE, "RATE", "readings per second, 10Hz unless given; 1kHz works",
     offsetof(struct values, rate_hz)},
    {"repeat", 'n', NRG_OPT_COUNT, "N", "run the command N times: mean, spread, 95 % interval",
     offsetof(struct values, repeat)},
    {"baseline", 'b', NRG_OPT_DURATION, "TIME", "measure the idle machine first for TIME",
     offsetof(struct values, baseline_ns)},
    {"pid", 'p', NRG_OPT_LIST, "PID", "follow this process and its descendants instead",
     offsetof(struct values, pids)},
    {"system", 'a', NRG_OPT_FLAG, NULL, "the whole machine with all its processes",
     offsetof(struct values, system)},
    {"for", 't', NRG_OPT_DURATION, "TIME", "with --system or --pid: stop after TIME",
     offsetof(struct values, for_ns)},
    {"note", 0, NRG_OPT_LIST, "KEY=VALUE", "keep a note in the recording; may be repeated",
     offsetof(struct values, notes)},
    {"sensor", 's', NRG_OPT_LIST, "DRIVER[:ARG]",
     "only these drivers, and the machine's load; may be repeated",
     offsetof(struct values, sensors)},
    NRG_DESK_OPTIONS(struct values, desk),
    {"cpu-watts", 0, NRG_OPT_STRING, "IDLE:FULL", "this machine's power, for the estimate",
     offsetof(struct values, cpu_watts)},
    {"graph", 'g', NRG_OPT_STRING, "FILE", "keep the model's graph in the recording (nrg graph)",
     offsetof(struct values, graph)},
    {"graph-params", 0, NRG_OPT_STRING, "FILE", "shapes of its parameters, as nrg graph --params",
     offsetof(struct values, graph_params)},
    {"torch", 0, NRG_OPT_FILE, "WHAT",
     "mark the PyTorch modules of an unchanged Python program (modules), or also operators",
     offsetof(struct values, torch)},
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
    char **argv;
    int64_t next_run;
    int32_t pids[64];
    size_t n_pids;
    struct nrg_run_graph graph;
    struct nrg_run_torch torch;
    struct nrg_span_segment spans; /* where the command can mark spans */
    char spans_variable[NRG_RING_VARIABLE_SIZE];
    bool started; /* the measured part has begun: there is something to show */
};

static volatile sig_atomic_t stop_asked;

static void on_stop(int signal)
{
    (void)signal;
    stop_asked = 1;
}

/* A file name for today in the working directory, or in the temporary one if that can't be. */
static void default_path(struct session *s)
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &tm);
    const char *dir = "";
    if (access(".", W_OK)) {
        const char *given = getenv("TMPDIR");
        dir = given ? given : "/tmp";
        fprintf(stderr, "nrg: this folder can't be written: the recording goes to %s\n", dir);
    }
    snprintf(s->path, sizeof s->path, "%s%snrg-%s-%d.nrg", dir, *dir ? "/" : "", stamp, getpid());
}

static int parse_cpu_watts(const char *text, struct nrg_sensor_options *o)
{
    const char *colon = strchr(text, ':');
    if (!colon || nrg_parse_double(text, (size_t)(colon - text), &o->cpu_idle_w) ||
        nrg_parse_double(colon + 1, strlen(colon + 1), &o->cpu_full_w) || o->cpu_idle_w <= 0 ||
        o->cpu_full_w < o->cpu_idle_w) {
        fprintf(stderr, "nrg run: --cpu-watts wants IDLE:FULL in watts, such as 40:180, not '%s'\n",
                text);
        return -EINVAL;
    }
    return 0;
}

static int parse_pids(struct session *s)
{
    for (size_t i = 0; i < s->values->pids.n; i++) {
        const char *text = s->values->pids.items[i];
        while (*text) {
            size_t len = strcspn(text, ", ");
            int64_t pid;
            if (nrg_parse_i64(text, len, &pid) || pid < 1 || pid > INT32_MAX ||
                s->n_pids >= sizeof s->pids / sizeof *s->pids) {
                fprintf(stderr, "nrg run: --pid wants process numbers, not '%s'\n", text);
                return -EINVAL;
            }
            s->pids[s->n_pids++] = (int32_t)pid;
            text += len + strspn(text + len, ", ");
        }
    }
    return 0;
}

static int check_usage(struct session *s, int argc)
{
    struct values *v = s->values;
    int modes = (argc > 0) + (v->pids.n > 0) + v->system;
    if (modes != 1) {
        fprintf(stderr, modes ? "nrg run: a command, --pid and --system exclude each other\n"
                              : "nrg run: wants a command: nrg run -- python3 train.py\n");
        return 2;
    }
    if (argc && v->for_ns) {
        fprintf(stderr, "nrg run: --for goes with --system or --pid; a command ends by itself\n");
        return 2;
    }
    if (!argc && v->repeat) {
        fprintf(stderr, "nrg run: --repeat goes with a command\n");
        return 2;
    }
    if (!argc && v->torch) {
        fprintf(stderr, "nrg run: --torch goes with a command\n");
        return 2;
    }
    if (v->torch && nrg_run_torch_check(v->torch))
        return 2;
    if (v->system && !v->for_ns && !s->cli->quiet)
        fprintf(stderr, "nrg: measuring the machine until Ctrl-C (or give --for 10s)\n");
    for (size_t i = 0; i < v->notes.n; i++) {
        const char *equals = strchr(v->notes.items[i], '=');
        if (!equals || equals == v->notes.items[i]) {
            fprintf(stderr, "nrg run: --note wants KEY=VALUE, not '%s'\n", v->notes.items[i]);
            return 2;
        }
    }
    return parse_pids(s) ? 2 : nrg_show_check(s->cli, &v->show);
}

static void write_notes(struct session *s, int argc, char **argv)
{
    struct nrg_str line = {0};
    for (int i = 0; i < argc; i++)
        nrg_str_addf(&line, "%s%s", i ? " " : "", argv[i]);
    if (!argc)
        nrg_str_addf(&line, s->values->system ? "(whole machine)" : "(given processes)");
    char clean[1024];
    nrg_copy_clean(clean, sizeof clean, line.text ? line.text : "", line.len);
    nrg_recorder_text(s->recorder, "command_line", clean);
    nrg_str_release(&line);
    for (size_t i = 0; i < s->values->notes.n; i++) {
        char key[64];
        const char *note = s->values->notes.items[i], *equals = strchr(note, '=');
        snprintf(key, sizeof key, "note.%.*s", (int)(equals - note), note);
        nrg_recorder_text(s->recorder, key, equals + 1);
    }
}

/* What can be known of --json=FILE before the workload has run for hours. */
static int check_json_path(const char *path)
{
    char folder[4096];
    struct stat st;
    if (!path || !strcmp(path, "-"))
        return 0;
    if (!stat(path, &st) && S_ISDIR(st.st_mode))
        errno = EISDIR;
    else if (!access(path, W_OK))
        return 0;
    if (errno == ENOENT) {
        nrg_copy(folder, sizeof folder, path);
        if (!access(dirname(folder), W_OK))
            return 0;
    }
    fprintf(stderr, "nrg: %s: cannot write JSON: %s\n", path, strerror(errno));
    return EXIT_NRG_FAILED;
}

/* Given processes may be those of a captured tree. */
static bool process_in_root(const struct session *s)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", s->n_pids ? s->pids[0] : 1);
    return nrg_root_exists(&s->cli->ctx.root, path);
}

/*
 * Without the machine's load no energy can be shared out among processes, so it is read also when
 * sensors are named; not beside a replay, whose load was another one.
 */
static int add_load(struct nrg_list *sensors)
{
    for (size_t i = 0; i < sensors->n; i++)
        if (!strncmp(sensors->items[i], "machine", 7) || !strncmp(sensors->items[i], "replay", 6))
            return 0;
    if (!sensors->n)
        return 0;
    if (nrg_reserve(&sensors->items, &sensors->cap, sensors->n + 2, sizeof *sensors->items))
        return -ENOMEM;
    sensors->items[sensors->n++] = "machine";
    sensors->items[sensors->n] = NULL;
    return 0;
}

/* A command without a place for its spans is measured all the same; the report says it. */
static void offer_spans(struct session *s, struct nrg_error *why)
{
    if (!nrg_span_segment_init(&s->spans, false, why))
        nrg_span_segment_offer(&s->spans, s->spans_variable);
}

static int open_recorder(struct session *s, int argc, char **argv)
{
    struct values *v = s->values;
    struct nrg_error err, no_spans = {0};
    if (add_load(&v->sensors))
        return EXIT_NRG_FAILED;
    struct nrg_recorder_options o = {.path = s->path,
                                     .overwrite = v->force,
                                     .rate_hz = v->rate_hz,
                                     .whole_system = v->system,
                                     .sensors = {.only = v->sensors.items, .per_cpu = v->per_cpu}};
    /* A command runs on this machine, also when its sensors are a fake or a captured tree. */
    o.live_processes = argc > 0 || !process_in_root(s);
    nrg_root_complete(&s->cli->ctx.root, NRG_PART_PROC);
    if (nrg_desk_read(&v->desk, s->cli, &o.sensors, &err))
        return nrg_complain(&err, EXIT_NRG_FAILED);
    if (v->cpu_watts && parse_cpu_watts(v->cpu_watts, &o.sensors))
        return 2;
    int code = check_json_path(v->show.json);
    if (code)
        return code;
    if (v->output)
        nrg_copy(s->path, sizeof s->path, v->output);
    else
        default_path(s);
    if (v->graph && nrg_run_graph_read(&s->graph, v->graph, v->graph_params, &err))
        return nrg_complain(&err, EXIT_NRG_FAILED);
    if (argc)
        offer_spans(s, &no_spans);
    o.spans = s->spans.header ? &s->spans : NULL;
    if (nrg_recorder_new(&s->cli->ctx, &o, &s->recorder, &err))
        return nrg_complain(&err, EXIT_NRG_FAILED);
    write_notes(s, argc, argv);
    if (v->graph && nrg_run_graph_store(&s->graph, s->recorder, &err))
        return nrg_complain(&err, EXIT_NRG_FAILED);
    if (nrg_recorder_begin(s->recorder, &err))
        return nrg_complain(&err, EXIT_NRG_FAILED);
    nrg_recorder_await_pushed(s->recorder, 0);
    if (no_spans.code)
        nrg_recorder_event(s->recorder, "unavailable", "spans", no_spans.what);
    return 0;
}

static void sleep_ns(int64_t ns)
{
    struct timespec ts = {ns / NRG_NS_PER_S, ns % NRG_NS_PER_S};
    while (!stop_asked && nanosleep(&ts, &ts) && errno == EINTR)
        ;
}

/* For when no child is there to be asked; a signal that was ignored when we began stays so. */
static void catch_stop(void (*handler)(int))
{
    static const int signals[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction old, new = {.sa_handler = handler};
        if (!sigaction(signals[i], NULL, &old) && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &new, NULL);
    }
}

static void measure_baseline(struct session *s)
{
    if (!s->cli->quiet)
        fprintf(stderr, "nrg: measuring the idle machine for %.3g s\n",
                (double)s->values->baseline_ns / 1e9);
    struct nrg_run run = {.id = ++s->next_run, .kind = "baseline", .exit_code = -1};
    catch_stop(on_stop);
    nrg_recorder_read_now(s->recorder);
    run.begin_ns = nrg_now_ns();
    sleep_ns(s->values->baseline_ns);
    catch_stop(SIG_DFL);
    run.end_ns = nrg_now_ns();
    nrg_recorder_read_now(s->recorder);
    nrg_recorder_await_pushed(s->recorder, run.end_ns);
    nrg_recorder_run(s->recorder, &run);
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
        if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT)) {
            if (errno == EINTR)
                continue;
            return EXIT_NRG_FAILED;
        }
        /* A zombie's CPU clock still answers: read it before it is waited for. */
        nrg_recorder_exiting(s->recorder, info.si_pid);
        *end_ns = nrg_now_ns();
        if (info.si_pid == child)
            nrg_recorder_read_now(s->recorder);
        if (wait4(info.si_pid, &status, 0, &usage) < 0)
            continue;
        nrg_recorder_waited(s->recorder, info.si_pid, rusage_ns(&usage));
        if (info.si_pid == child)
            return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
}

static int run_once(struct session *s)
{
    struct nrg_error err;
    struct nrg_run run = {.id = ++s->next_run, .kind = "run", .exit_code = -1};
    nrg_recorder_read_now(s->recorder);
    run.begin_ns = nrg_now_ns();
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
    s->started = true;
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
        nrg_run_torch_prepare(&s->torch, s->values->torch);
    nrg_launch_adopt_orphans();
    for (int i = 0; i < times && !stop_asked; i++) {
        if (times > 1 && !s->cli->quiet)
            fprintf(stderr, "nrg: run %d of %d\n", i + 1, times);
        code = run_once(s);
        nrg_run_torch_collect(&s->torch, s->recorder);
        if (code || nrg_launch_asked_to_end())
            break;
    }
    nrg_run_torch_release(&s->torch);
    return code;
}

#define MAX_GIVEN (sizeof((struct session *)0)->pids / sizeof(int32_t))
#define LOOK_NS   (200 * NRG_NS_PER_MS) /* how often, on kernels without pidfd */

/* Descriptors that become readable when the processes end, -1 for those that have. */
static bool open_pidfds(const struct session *s, struct pollfd *fds)
{
    bool supported = true;
    for (size_t i = 0; i < s->n_pids; i++) {
        fds[i].events = POLLIN;
        fds[i].fd = (int)syscall(SYS_pidfd_open, s->pids[i], 0);
        supported &= fds[i].fd >= 0 || errno == ESRCH;
    }
    return supported;
}

static size_t count_alive(const struct session *s, struct pollfd *fds, bool by_fd)
{
    size_t alive = 0;
    for (size_t i = 0; i < s->n_pids; i++) {
        if (fds[i].fd >= 0 && fds[i].revents) {
            close(fds[i].fd);
            fds[i].fd = -1;
        }
        alive += by_fd ? fds[i].fd >= 0 : !kill(s->pids[i], 0) || errno == EPERM;
    }
    return alive;
}

/* Until then, a stopping signal, or the end of all given processes; wakes up for nothing else. */
static void wait_until(const struct session *s, int64_t until_ns)
{
    struct pollfd fds[MAX_GIVEN] = {0};
    sigset_t stops, before;
    bool by_fd = open_pidfds(s, fds);
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    sigprocmask(SIG_BLOCK, &stops, &before); /* ppoll lets them in, so none comes just before it */
    for (int64_t now = nrg_now_ns(); !stop_asked && now < until_ns; now = nrg_now_ns()) {
        if (s->n_pids && !count_alive(s, fds, by_fd))
            break;
        int64_t left = by_fd || until_ns - now < LOOK_NS ? until_ns - now : LOOK_NS;
        struct timespec ts = {left / NRG_NS_PER_S, left % NRG_NS_PER_S};
        if (ppoll(fds, by_fd ? s->n_pids : 0, &ts, &before) <= 0)
            for (size_t i = 0; i < s->n_pids; i++)
                fds[i].revents = 0;
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    for (size_t i = 0; i < s->n_pids; i++)
        if (fds[i].fd >= 0)
            close(fds[i].fd);
}

/* --pid and --system: until the time is over, Ctrl-C, or all given processes have ended. */
static int watch(struct session *s)
{
    struct nrg_run run = {.id = ++s->next_run, .kind = "system", .exit_code = -1};
    catch_stop(on_stop);
    for (size_t i = 0; i < s->n_pids; i++) {
        if (nrg_recorder_follow(s->recorder, s->pids[i], false)) {
            fprintf(stderr, "nrg: process %d is not there\n", s->pids[i]);
            return EXIT_NRG_FAILED;
        }
    }
    nrg_recorder_read_now(s->recorder);
    run.begin_ns = nrg_now_ns();
    nrg_recorder_run(s->recorder, &run);
    s->started = true;
    wait_until(s, s->values->for_ns ? run.begin_ns + s->values->for_ns : INT64_MAX);
    run.end_ns = nrg_now_ns();
    nrg_recorder_read_now(s->recorder);
    nrg_recorder_await_pushed(s->recorder, run.end_ns);
    nrg_recorder_run(s->recorder, &run);
    return 0;
}

static void show_from_database(void *arg, struct sqlite3 *database)
{
    struct session *s = arg;
    struct nrg_recording *recording;
    if (nrg_recording_from_database(database, s->path, &recording, NULL))
        return;
    nrg_show(recording, &s->values->show, s->cli->quiet ? NULL : stderr);
    nrg_recording_close(recording);
}

/* The results never change the exit code of a command that ran. */
static void show_results(struct session *s)
{
    struct nrg_recording *recording;
    struct nrg_error err;
    if (!s->cli->quiet)
        fputc('\n', stderr);
    if (nrg_recorder_end(s->recorder, show_from_database, s, &err)) {
        nrg_complain(&err, 1);
        return;
    }
    if (nrg_recorder_status(s->recorder)->spilled[0]) {
        fprintf(stderr, "nrg: %s: written completely after all\n", s->path);
        return;
    }
    if (s->cli->quiet && !s->values->show.json)
        return;
    if (nrg_recording_open(s->path, &recording, &err)) {
        nrg_complain(&err, 1);
        return;
    }
    nrg_show(recording, &s->values->show, s->cli->quiet ? NULL : stderr);
    nrg_recording_close(recording);
    if (!s->cli->quiet)
        fprintf(stderr, "\nrecording: %s   (nrg report, nrg export)\n", s->path);
}

static int run(struct nrg_cli *cli, void *v, int argc, char **argv)
{
    struct session s = {.cli = cli, .values = v, .argv = argv, .spans = {.fd = -1}};
    int code = check_usage(&s, argc);
    if (!code)
        code = open_recorder(&s, argc, argv);
    nrg_run_graph_release(&s.graph);
    if (code) {
        if (s.recorder)
            unlink(s.path);
        nrg_recorder_free(s.recorder);
        nrg_span_segment_release(&s.spans);
        nrg_desk_release(&s.values->desk);
        return code;
    }
    nrg_launch_survive_pipes();
    if (s.values->baseline_ns)
        measure_baseline(&s);
    code = stop_asked ? EXIT_INTERRUPTED : argc ? run_command(&s) : watch(&s);
    if (s.started)
        show_results(&s);
    nrg_recorder_free(s.recorder);
    nrg_span_segment_release(&s.spans);
    nrg_desk_release(&s.values->desk);
    if (!s.started) /* a recording of nothing would only be found later and puzzle */
        unlink(s.path);
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
                "  nrg run --pid 4242 --for 1min\n"
                "  nrg run --system --for 10s\n"
                "  nrg run --meter 'emonpi:/dev/ttyAMA0?node=5' -- ./solver   # docs/meters.md\n",
    .options = options,
    .values_size = sizeof(struct values),
    .takes_command = true,
    .run = run,
};
