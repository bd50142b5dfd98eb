/*
 * rapl-emulator: a RAPL device of known truth for tests of the command line. It writes a powercap
 * tree into DIR from a scenario (src/sensors/virtual/scenario.h) and keeps the energy_uj files
 * moving, as a process of its own: what nrg measures is compared with an answer that nrg had no
 * part in.
 *
 *   rapl-emulator [--step 1ms] [--for 10s] SCENARIO DIR
 *   rapl-emulator --truth SCENARIO --zero NS --from NS --to NS
 *
 * DIR/truth.json appears (by rename) when the tree is complete: wait for it, then start. It holds
 * zero_ns, the CLOCK_MONOTONIC time of the scenario's time 0; --truth turns any two monotonic
 * times into joules per domain. Ended by --for, SIGTERM or SIGINT the emulator prints the energy
 * of its own life as JSON, with the per-busy-cpu part that --truth cannot know.
 *
 * Every value is computed for the moment at which it is written (the loop has absolute deadlines;
 * a late one is late, not wrong), so a reader sees at most one step plus the wake-up's delay of
 * age. How a value is written whole is told in emulator_tree.c.
 *
 * Refuses: gauges and domains that RAPL does not have; a DIR that has a tree already.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "emulator/emulator_tree.h"
#include "sensors/virtual/scenario_truth.h"

struct options {
    int64_t step_ns, for_ns; /* for_ns 0: until a signal */
    const char *truth;       /* scenario of --truth */
    int64_t zero_ns, from_ns, to_ns;
    bool have_zero, have_from, have_to;
};

static volatile sig_atomic_t stop; /* the one thing that a signal handler can reach */

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static int usage(void)
{
    fprintf(stderr, "usage: rapl-emulator [--step 1ms] [--for 10s] SCENARIO DIR\n"
                    "       rapl-emulator --truth SCENARIO --zero NS --from NS --to NS\n");
    return 2;
}

static int complain(const struct nrg_error *err)
{
    char text[800];
    fprintf(stderr, "rapl-emulator: %s\n", nrg_error_text(err, text, sizeof text));
    return 1;
}

static int store(struct options *o, int code, const char *text)
{
    size_t len = strlen(text);
    switch (code) {
    case 's':
        return nrg_parse_duration_ns(text, &o->step_ns) || o->step_ns < 1000 ? -EINVAL : 0;
    case 'f':
        return nrg_parse_duration_ns(text, &o->for_ns);
    case 't':
        o->truth = text;
        return 0;
    case 'z':
        o->have_zero = true;
        return nrg_parse_i64(text, len, &o->zero_ns);
    case 'a':
        o->have_from = true;
        return nrg_parse_i64(text, len, &o->from_ns);
    case 'b':
        o->have_to = true;
        return nrg_parse_i64(text, len, &o->to_ns);
    default:
        return -EINVAL;
    }
}

static int parse_options(struct options *o, int argc, char **argv)
{
    static const struct option longs[] = {{"step", required_argument, NULL, 's'},
                                          {"for", required_argument, NULL, 'f'},
                                          {"truth", required_argument, NULL, 't'},
                                          {"zero", required_argument, NULL, 'z'},
                                          {"from", required_argument, NULL, 'a'},
                                          {"to", required_argument, NULL, 'b'},
                                          {NULL, 0, NULL, 0}};
    int code;
    *o = (struct options){.step_ns = NRG_NS_PER_MS};
    while ((code = getopt_long(argc, argv, "", longs, NULL)) != -1)
        if (code == '?' || store(o, code, optarg))
            return -EINVAL;
    return optind;
}

static int print_json(json_t *doc)
{
    int rc = json_dumpf(doc, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    putchar('\n');
    json_decref(doc);
    return rc || fflush(stdout) ? 1 : 0;
}

static int print_truth(const struct options *o)
{
    struct nrg_scenario scenario;
    struct nrg_error err = {0};
    if (!o->have_zero || !o->have_from || !o->have_to)
        return usage();
    if (nrg_scenario_load(&scenario, o->truth, &err))
        return complain(&err);
    int rc = 0;
    json_t *domains = json_array();
    for (size_t i = 0; i < scenario.n_domains; i++) {
        const struct nrg_scenario_domain *d = &scenario.domains[i];
        double energy_j = nrg_scenario_true_j(d, o->from_ns - o->zero_ns, o->to_ns - o->zero_ns);
        if (d->per_busy_cpu_w > 0) {
            fprintf(stderr,
                    "rapl-emulator: %s follows busy CPUs: its truth is only in the "
                    "emulator's own report\n",
                    d->name);
            rc = 1;
        }
        json_array_append_new(domains,
                              json_pack("{s:s, s:f}", "name", d->name, "energy_j", energy_j));
    }
    nrg_scenario_release(&scenario);
    if (rc) {
        json_decref(domains);
        return rc;
    }
    return print_json(json_pack("{s:s, s:I, s:I, s:o}", "schema", "nrg.emulator_truth/1",
                                "start_ns", (json_int_t)o->from_ns, "end_ns", (json_int_t)o->to_ns,
                                "domains", domains));
}

struct run {
    struct nrg_scenario scenario;
    struct emulator_tree tree;
    struct nrg_sim_meter meters[NRG_SCENARIO_DOMAINS];
    int stat_fd;
    double busy_zero_s, busy_s;
    int64_t zero_ns, end_ns;
    unsigned long long steps, late;
};

/* Announces the zero; by rename, so that who sees the file sees all of it and a complete tree. */
static int write_zero(const struct run *r, const char *scenario, const char *dir)
{
    char path[512], temporary[520];
    snprintf(path, sizeof path, "%.480s/truth.json", dir);
    snprintf(temporary, sizeof temporary, "%s.new", path);
    json_t *doc = json_pack("{s:s, s:I, s:s, s:i}", "schema", "nrg.emulator/1", "zero_ns",
                            (json_int_t)r->zero_ns, "scenario", scenario, "pid", (int)getpid());
    int rc = doc && !json_dump_file(doc, temporary, JSON_INDENT(2)) ? 0 : -EIO;
    json_decref(doc);
    return rc ? rc : rename(temporary, path) ? -errno : 0;
}

static void update(struct run *r, int64_t t_ns)
{
    if (r->stat_fd >= 0)
        nrg_sim_busy_cpu_s(r->stat_fd, &r->busy_s); /* a failed read leaves the last value */
    for (size_t i = 0; i < r->scenario.n_domains; i++) {
        int64_t raw = 0;
        int rc = nrg_scenario_gone(&r->scenario, t_ns)
                     ? -ENODEV
                     : nrg_sim_meter_read(&r->meters[i], t_ns, r->busy_s, &raw);
        emulator_tree_show(&r->tree, i, rc, raw);
    }
}

static void loop(struct run *r, const struct options *o)
{
    int64_t end_ns = o->for_ns ? r->zero_ns + o->for_ns : INT64_MAX;
    int64_t deadline_ns = r->zero_ns;
    while (!stop && deadline_ns < end_ns) {
        deadline_ns += o->step_ns;
        struct timespec deadline = {deadline_ns / NRG_NS_PER_S, deadline_ns % NRG_NS_PER_S};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL);
        int64_t now_ns = nrg_now_ns();
        update(r, now_ns - r->zero_ns);
        r->steps++;
        if (now_ns - deadline_ns >= o->step_ns) { /* deadlines already gone are not caught up */
            int64_t missed = (now_ns - deadline_ns) / o->step_ns;
            r->late += (unsigned long long)missed;
            deadline_ns += missed * o->step_ns;
        }
    }
    r->end_ns = nrg_now_ns();
}

static int report(const struct run *r)
{
    json_t *domains = json_array();
    for (size_t i = 0; i < r->scenario.n_domains; i++) {
        const struct nrg_scenario_domain *d = &r->scenario.domains[i];
        double energy_j = nrg_scenario_true_j(d, 0, r->end_ns - r->zero_ns) +
                          d->per_busy_cpu_w * (r->busy_s - r->busy_zero_s);
        json_array_append_new(domains, json_pack("{s:s, s:I, s:I, s:f}", "name", d->name,
                                                 "start_ns", (json_int_t)r->zero_ns, "end_ns",
                                                 (json_int_t)r->end_ns, "energy_j", energy_j));
    }
    return print_json(json_pack("{s:s, s:I, s:I, s:I, s:I, s:o}", "schema", "nrg.emulator/1",
                                "zero_ns", (json_int_t)r->zero_ns, "end_ns", (json_int_t)r->end_ns,
                                "steps", (json_int_t)r->steps, "missed_steps", (json_int_t)r->late,
                                "domains", domains));
}

static int start(struct run *r, const char *scenario, const char *dir, struct nrg_error *err)
{
    int rc = nrg_scenario_load(&r->scenario, scenario, err);
    if (!rc)
        rc = emulator_tree_make(&r->tree, &r->scenario, dir, err);
    if (!rc && nrg_scenario_needs_busy_cpu(&r->scenario)) {
        r->stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
        rc = r->stat_fd < 0 ? -errno : nrg_sim_busy_cpu_s(r->stat_fd, &r->busy_zero_s);
        if (rc)
            return nrg_fail(err, rc, "/proc/stat", "cannot read: %s", strerror(-rc));
    }
    if (rc)
        return rc;
    r->busy_s = r->busy_zero_s;
    for (size_t i = 0; i < r->scenario.n_domains; i++)
        nrg_sim_meter_init(&r->meters[i], &r->scenario, i, r->busy_s);
    r->zero_ns = nrg_now_ns();
    update(r, 0);
    rc = write_zero(r, scenario, dir);
    return rc ? nrg_fail(err, rc, dir, "cannot write truth.json: %s", strerror(-rc)) : 0;
}

int main(int argc, char **argv)
{
    static struct run r = {.stat_fd = -1};
    struct options o;
    struct nrg_error err = {0};
    int first = parse_options(&o, argc, argv);
    if (first < 0)
        return usage();
    if (o.truth)
        return first == argc ? print_truth(&o) : usage();
    if (argc - first != 2)
        return usage();
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    prctl(PR_SET_TIMERSLACK, 1UL);
    int rc = start(&r, argv[first], argv[first + 1], &err);
    if (!rc)
        loop(&r, &o);
    rc = rc ? complain(&err) : report(&r);
    emulator_tree_release(&r.tree);
    nrg_scenario_release(&r.scenario);
    if (r.stat_fd >= 0)
        close(r.stat_fd);
    return rc;
}
