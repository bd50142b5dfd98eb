/*
 * See runner.h: waiting after a run until the machine is as it was before the first one. Back is
 * when its power is within 5 % of what it was, and its hottest sensor within 3 °C; of these, what
 * can be read. Where neither can, nothing tells, and the whole time is waited.
 *
 * The idle machine is measured once and its recording kept, so that a comparison that was
 * interrupted does not take a warm machine for an idle one when it goes on.
 */
#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/compare/internal.h"
#include "cli/stop.h"

#define POWER_TOLERANCE 0.05
#define WARMER_C        3.0

/* Of a recording of the whole machine. */
static struct nrg_idle_machine read_machine(const char *path)
{
    struct nrg_idle_machine found = {NAN, NAN};
    struct nrg_compare_side side = {0};
    struct nrg_error err;
    if (!nrg_compare_side_add(&side, path, &err) && side.n_runs) {
        found.power_w = side.runs[0].energy_j / side.runs[0].duration_s;
        found.temperature_c = side.runs[0].temperature_c;
    }
    nrg_compare_side_release(&side);
    return found;
}

static void forget(const char *path, bool all)
{
    struct nrg_str log = {0};
    if (!nrg_str_addf(&log, "%s.log", path))
        unlink(log.text);
    if (all)
        unlink(path);
    nrg_str_release(&log);
}

struct nrg_idle_machine nrg_compare_measure_idle(const struct nrg_compare_session *s)
{
    struct nrg_idle_machine found = {NAN, NAN};
    struct nrg_str path = {0};
    if (nrg_str_addf(&path, "%s/idle.nrg", s->r->made_folder))
        return found;
    if (access(path.text, F_OK)) {
        if (!s->cli->quiet)
            fprintf(stderr, "nrg: measuring the idle machine for 3 s\n");
        if (nrg_compare_record(s, path.text, (const char *const[]){"--system", "--for", "3s", NULL},
                               NULL))
            unlink(path.text);
        forget(path.text, false);
    }
    found = read_machine(path.text);
    nrg_str_release(&path);
    return found;
}

static struct nrg_idle_machine measure_now(const struct nrg_compare_session *s)
{
    struct nrg_idle_machine found = {NAN, NAN};
    struct nrg_str path = {0};
    if (nrg_str_addf(&path, "%s/cooling.nrg", s->r->made_folder))
        return found;
    if (!nrg_compare_record(s, path.text, (const char *const[]){"--system", "--for", "1s", NULL},
                            NULL))
        found = read_machine(path.text);
    forget(path.text, true);
    nrg_str_release(&path);
    return found;
}

/* What is not known on either side is no reason to wait. */
static bool is_back(const struct nrg_idle_machine *idle, const struct nrg_idle_machine *now)
{
    return !(now->power_w > idle->power_w * (1 + POWER_TOLERANCE)) &&
           !(now->temperature_c > idle->temperature_c + WARMER_C);
}

void nrg_compare_cool_down(const struct nrg_compare_session *s)
{
    int64_t until_ns = nrg_now_ns() + s->r->cool_ns;
    bool blind = isnan(s->idle.power_w) && isnan(s->idle.temperature_c);
    while (nrg_now_ns() < until_ns && !nrg_stop_asked()) {
        struct nrg_idle_machine now = {NAN, NAN};
        int64_t left_ns = until_ns - nrg_now_ns();
        if (blind)
            nanosleep(&(struct timespec){.tv_sec = left_ns / NRG_NS_PER_S,
                                         .tv_nsec = left_ns % NRG_NS_PER_S},
                      NULL);
        else
            now = measure_now(s);
        if (!blind && is_back(&s->idle, &now))
            return;
    }
}
