/*
 * nrg llm proxy: relays requests on the main thread while the recorder's threads read the sensors;
 * at the end the results are shown from what was recorded.
 */
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/llm/actions.h"
#include "cli/privilege.h"
#include "cli/run/begin.h"
#include "cli/run/heap.h"
#include "cli/run/launch.h"
#include "cli/run/outlook.h"
#include "cli/stop.h"
#include "llm/provisional.h"
#include "llm/request_log.h"
#include "record/sampler/live.h"

#define DRAIN_NS (30 * NRG_NS_PER_S)

struct relay {
    struct nrg_cli *cli;
    struct nrg_llm_values *values;
    struct nrg_recorder *recorder;
    struct nrg_proxy *proxy;
    struct nrg_request_log log;
    struct nrg_provisional provisional;
    double *begun_j; /* per slot: the provisional figure at its begin */
    char path[4096];
    struct stat made; /* the file that the recorder writes */
    double idle_w;
    int64_t until_ns, stopping_ns;
    int show_code;
};

static void on_begin(void *arg, const struct nrg_proxy_request *request)
{
    struct relay *r = arg;
    nrg_provisional_runs(&r->provisional, request->begin_ns, 1);
    r->begun_j[request->slot] = nrg_provisional_at(&r->provisional, request->begin_ns);
    nrg_request_log_begin(&r->log, request);
}

static void on_first(void *arg, const struct nrg_proxy_request *request)
{
    struct relay *r = arg;
    nrg_request_log_first(&r->log, request);
}

static void on_texts(void *arg, const struct nrg_proxy_request *request, uint64_t n, int64_t t_ns)
{
    struct relay *r = arg;
    nrg_request_log_texts(&r->log, request, n, t_ns);
}

static void on_end(void *arg, const struct nrg_proxy_request *request)
{
    struct relay *r = arg;
    nrg_provisional_runs(&r->provisional, nrg_now_ns(), -1);
    nrg_request_log_end(&r->log, request);
}

static double on_joules(void *arg, const struct nrg_proxy_request *request)
{
    struct relay *r = arg;
    return nrg_provisional_at(&r->provisional, nrg_now_ns()) - r->begun_j[request->slot];
}

static void on_notice(void *arg, const char *text)
{
    (void)arg;
    nrg_say("%s", text);
}

static bool on_stop(void *arg)
{
    struct relay *r = arg;
    int64_t now_ns = nrg_now_ns();
    nrg_request_log_hand_over(&r->log, now_ns, false);
    if (!nrg_stop_asked() && now_ns < r->until_ns)
        return false;
    r->stopping_ns = now_ns;
    nrg_stop_forget(); /* the next one means at once */
    return true;
}

static bool on_hurry(void *arg)
{
    struct relay *r = arg;
    int64_t now_ns = nrg_now_ns();
    nrg_request_log_hand_over(&r->log, now_ns, false);
    return nrg_stop_asked() || now_ns - r->stopping_ns > DRAIN_NS;
}

static void limit_connections(struct nrg_llm_values *v)
{
    int wanted = v->connections ? v->connections : NRG_PROXY_CONNECTIONS;
    v->connections = nrg_llm_most_connections(wanted);
    if (v->connections < wanted)
        nrg_say("%d clients at a time instead of %d: the limit of open files (ulimit -Hn) allows "
                "no more; others wait",
                v->connections, wanted);
}

static int open_proxy(struct relay *r)
{
    struct nrg_error err;
    const struct nrg_llm_values *v = r->values;
    const struct nrg_proxy_options options = {.upstream = v->upstream,
                                              .listen = v->listen ? v->listen : "127.0.0.1:8081",
                                              .joules = v->header,
                                              .ask_usage = v->ask_usage,
                                              .allowed = (const char *const *)v->allowed.items,
                                              .connections = (size_t)v->connections,
                                              .gather_ns = v->gather_ns};
    const struct nrg_proxy_events events = {r,         on_begin,  on_first, on_texts, on_end,
                                            on_joules, on_notice, on_stop,  on_hurry};
    if (nrg_proxy_new(&r->proxy, &options, &events, &err))
        return nrg_complain(&err, 1);
    if (!nrg_proxy_is_local(r->proxy))
        nrg_say("anybody who reaches %s can use the server: the proxy asks for no key of its own",
                nrg_proxy_address(r->proxy));
    return 0;
}

static int open_recorder(struct relay *r)
{
    struct nrg_llm_values *v = r->values;
    struct nrg_error err;
    struct nrg_recorder_options o = {.path = r->path,
                                     .overwrite = v->force,
                                     .rate_hz = v->rate_hz,
                                     .own_spans = true,
                                     .live = true,
                                     .sensors = {.only = v->sensors.items}};
    if (nrg_run_add_load(&v->sensors))
        return nrg_out_of_memory();
    o.sensors.only = v->sensors.items;
    nrg_root_complete(&r->cli->ctx.root, NRG_PART_PROC);
    o.live_processes = nrg_root_part_is_live(&r->cli->ctx.root, NRG_PART_PROC);
    if (nrg_desk_read(&v->desk, r->cli, &o.sensors, &err))
        return nrg_complain(&err, 1);
    o.sensors.cpu_idle_w = v->cpu_watts.idle_w;
    o.sensors.cpu_full_w = v->cpu_watts.full_w;
    if (nrg_output_check(v->json))
        return 1;
    if (nrg_run_output_path(v->output, r->path, sizeof r->path))
        return 1;
    if (nrg_recorder_new(&r->cli->ctx, &o, &r->recorder, &err))
        return nrg_complain(&err, 1);
    r->cli->ctx.gave_up_privileges = nrg_privilege_drop();
    nrg_run_write_notes(r->recorder, r->cli, "(requests to a language model)", &v->notes);
    if (nrg_recorder_begin(r->recorder, &err))
        return nrg_complain(&err, 1);
    lstat(r->path, &r->made);
    return 0;
}

static int follow_server(struct relay *r)
{
    for (size_t i = 0; i < r->values->given.n; i++) {
        if (nrg_recorder_follow(r->recorder, r->values->given.pids[i], false)) {
            nrg_say("there is no process %d", r->values->given.pids[i]);
            return 1;
        }
    }
    return 0;
}

/* Requests wait meanwhile in the queue of the listening socket. */
static void measure_baseline(struct relay *r)
{
    struct nrg_live_sum sum;
    struct nrg_run run = nrg_run_begin(r->recorder, 1, "baseline");
    int64_t until_ns = run.begin_ns + r->values->baseline_ns, now_ns;
    if (!r->cli->quiet)
        nrg_say("measuring the machine without requests for %.3g s",
                (double)r->values->baseline_ns / 1e9);
    nrg_recorder_run(r->recorder, &run);
    while (!nrg_stop_asked() && (now_ns = nrg_now_ns()) < until_ns) {
        int64_t left_ns = until_ns - now_ns;
        usleep(
            (useconds_t)((left_ns < 100 * NRG_NS_PER_MS ? left_ns : 100 * NRG_NS_PER_MS) / 1000));
    }
    nrg_run_end(r->recorder, &run);
    if (!nrg_recorder_energy(r->recorder, &sum) && sum.t_ns > run.begin_ns)
        r->idle_w = sum.energy_j / ((double)(sum.t_ns - run.begin_ns) * 1e-9);
}

static void say_outlook(struct relay *r)
{
    const struct nrg_run_outlook outlook = {.sensors = nrg_recorder_sensors(r->recorder),
                                            .rate_hz = r->values->rate_hz,
                                            .has_baseline = r->values->baseline_ns > 0};
    if (r->cli->quiet)
        return;
    nrg_run_outlook_print(&outlook, stderr);
    nrg_say("relaying http://%s to %s until Ctrl-C", nrg_proxy_address(r->proxy),
            r->values->upstream);
}

static int relay_requests(struct relay *r)
{
    struct nrg_error err;
    size_t connections = (size_t)r->values->connections;
    r->begun_j = nrg_calloc(connections, sizeof *r->begun_j);
    if (!r->begun_j || nrg_request_log_init(&r->log, r->recorder, connections))
        return nrg_out_of_memory();
    struct nrg_run run = nrg_run_begin(r->recorder, 2, "system");
    nrg_recorder_run(r->recorder, &run);
    nrg_provisional_init(&r->provisional, r->recorder, r->idle_w, run.begin_ns);
    r->until_ns = r->values->for_ns ? run.begin_ns + r->values->for_ns : INT64_MAX;
    say_outlook(r);
    int rc = nrg_proxy_run(r->proxy, &err);
    nrg_launch_catch_late();
    nrg_proxy_free(r->proxy); /* requests that still run end here */
    r->proxy = NULL;
    nrg_request_log_hand_over(&r->log, nrg_now_ns(), true);
    nrg_run_end(r->recorder, &run);
    return rc ? nrg_complain(&err, 1) : 0;
}

static void show_from_database(void *arg, struct sqlite3 *database)
{
    struct relay *r = arg;
    struct nrg_recording *recording;
    struct nrg_error err;
    if (nrg_recording_from_database(database, r->path, &recording, &err)) {
        r->show_code = nrg_complain(&err, 1);
        return;
    }
    if (r->log.any)
        r->show_code = nrg_llm_show(recording, r->values, r->cli->quiet ? NULL : stderr);
    else
        nrg_say("no request came");
    nrg_recording_close(recording);
}

static int show_results(struct relay *r)
{
    struct nrg_error err;
    if (!r->cli->quiet)
        fputc('\n', stderr);
    if (nrg_recorder_end(r->recorder, show_from_database, r, &err))
        return nrg_complain(&err, 1);
    if (!r->cli->quiet)
        fprintf(stderr, "\nrecording: %s   (nrg llm report, nrg report)\n", r->path);
    return r->show_code;
}

/* A recording of nothing would only puzzle whoever finds it later. */
static void remove_useless(const struct relay *r)
{
    struct stat st;
    if (r->made.st_ino && !lstat(r->path, &st) && st.st_dev == r->made.st_dev &&
        st.st_ino == r->made.st_ino)
        unlink(r->path);
}

int nrg_llm_cmd_proxy(struct nrg_cli *cli, struct nrg_llm_values *values)
{
    struct relay r = {.cli = cli, .values = values};
    if (!values->upstream)
        return nrg_usage(cli, "proxy wants --upstream URL");
    nrg_run_heap_keep_small();
    limit_connections(values);
    int code = open_proxy(&r);
    bool begun = false;
    if (!code && !(code = open_recorder(&r))) {
        nrg_privilege_hide_memory(); /* no prompt and no key is in it yet */
        nrg_launch_survive_pipes();
        nrg_stop_catch();
        code = follow_server(&r);
        if (!code && values->baseline_ns)
            measure_baseline(&r);
        begun = !code && !nrg_stop_asked();
        if (begun)
            code = relay_requests(&r);
    }
    int shown = begun ? show_results(&r) : 0;
    nrg_proxy_free(r.proxy);
    nrg_recorder_free(r.recorder);
    if (!begun)
        remove_useless(&r);
    nrg_request_log_release(&r.log);
    free(r.begun_j);
    return code ? code : shown;
}
