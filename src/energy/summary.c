/* See summary.h. Every step notes what it could not measure: the list is part of the result. */
#include "energy/summary.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "energy/internal.h"

int nrg_summary_missing(struct nrg_summary *s, const char *what, const char *why, ...)
{
    struct nrg_missing m = {0};
    va_list ap;
    nrg_copy(m.what, sizeof m.what, what);
    va_start(ap, why);
    vsnprintf(m.why, sizeof m.why, why, ap);
    va_end(ap);
    for (size_t i = 0; i < s->n_missing; i++)
        if (!strcmp(s->missing[i].what, m.what) && !strcmp(s->missing[i].why, m.why))
            return 0;
    return nrg_append(&s->missing, &s->n_missing, &s->cap_missing, &m, sizeof *s->missing);
}

/* A recorder that was killed could not note the end: the last reading is the end then. */
static int64_t last_time(struct nrg_frame *frame)
{
    int64_t last = 0;
    for (size_t i = 0; i < frame->n; i++) {
        const struct nrg_timeline *tl = nrg_frame_timeline(frame, i);
        if (tl && nrg_point_ns(tl, tl->n - 1) > last)
            last = nrg_point_ns(tl, tl->n - 1);
    }
    return last;
}

static void add_events(struct nrg_summary *s, struct nrg_recording *recording)
{
    size_t n;
    const struct nrg_event *events = nrg_recording_events(recording, &n);
    for (size_t i = 0; i < n; i++) {
        const struct nrg_event *e = &events[i];
        double at_s = (double)(e->t_ns - s->begin_ns) / 1e9;
        size_t before = s->n_missing;
        if (e->t_ns > s->end_ns + NRG_NS_PER_S)
            continue;
        if (!strcmp(e->kind, "unavailable") || !strcmp(e->kind, "processes"))
            nrg_summary_missing(s, e->source, "%s", e->detail);
        else if (!strcmp(e->kind, "recovered") || !strcmp(e->kind, "server"))
            continue;
        else
            nrg_summary_missing(s, e->source, "%s (%s at %.1f s)", e->detail, e->kind, at_s);
        if (s->n_missing > before)
            s->missing[before].recorded = true;
    }
    int64_t late = 0, ticks = 0;
    nrg_recording_integer(recording, "late_ticks", &late);
    nrg_recording_integer(recording, "ticks", &ticks);
    if (late > 0)
        nrg_summary_missing(s, "late readings",
                            "%lld of %lld deadlines were missed because the "
                            "machine was busy; counters lose nothing by it",
                            (long long)late, (long long)nrg_add_i64(late, ticks));
}

/* Its band was that of SPEC's tuned servers, and real hosts lay above it (docs/estimate.md). */
static void note_old_estimate(struct nrg_summary *s, const struct nrg_recording *recording)
{
    const char *version = nrg_recording_text(recording, "nrg_version");
    if (!version || strncmp(version, "0.1.", 4) != 0 ||
        nrg_recording_text(recording, "option.cpu-watts"))
        return;
    for (size_t i = 0; i < s->n_domains; i++)
        if (s->domains[i].in_total && s->domains[i].channel->channel.provenance == NRG_ESTIMATED)
            nrg_summary_missing(s, s->domains[i].channel->channel.name,
                                "estimated by nrg %s, whose band is too narrow: machines that were "
                                "measured drew two to four times as much; record again",
                                version);
}

static int share_energy(struct nrg_summary *s, struct nrg_frame *frame)
{
    int rc = nrg_domains_make(s, frame);
    if (!rc)
        rc = nrg_shares_make(s, frame);
    if (!rc)
        rc = nrg_gpu_shares_make(s, frame);
    if (!rc)
        nrg_program_make(s, frame);
    note_old_estimate(s, frame->recording);
    return rc;
}

/* Energy without a scale is none. Beside other energy it is left out, and said. */
static int check_scales(struct nrg_summary *s, const struct nrg_recording *recording,
                        struct nrg_error *err)
{
    const char *name = nrg_recording_unscaled(recording);
    if (name && !s->n_domains)
        return nrg_fail(err, -EBADMSG, nrg_recording_path(recording),
                        "no energy can be read: `scale` of channel '%s' is not a positive number "
                        "(docs/recording-format.md)",
                        name);
    if (name)
        nrg_summary_missing(s, name, "left out: its `scale` is not a positive number");
    return 0;
}

int nrg_summary_of(struct nrg_summary *s, struct nrg_frame *frame, const struct nrg_run *run,
                   enum nrg_split split, struct nrg_error *err)
{
    const char *path = nrg_recording_path(frame->recording);
    int rc = 0;
    *s = (struct nrg_summary){.begin_ns = run->begin_ns,
                              .end_ns = run->end_ns,
                              .exit_code = run->exit_code,
                              .split = split,
                              .total_j = NAN,
                              .idle_j = NAN,
                              .other_processes_j = NAN,
                              .cpu_domain_j = NAN,
                              .idle_w = NAN,
                              .recorder_cpu_s = NAN};
    if (s->end_ns <= s->begin_ns) {
        s->end_ns = last_time(frame);
        nrg_summary_missing(s, "end of the run",
                            "the recorder did not finish: the recording goes "
                            "up to its last reading");
    }
    if (s->end_ns <= s->begin_ns) {
        rc = nrg_recording_no_run(frame->recording, "readings of the run", err);
    } else {
        s->duration_s = (double)(s->end_ns - s->begin_ns) / 1e9;
        rc = share_energy(s, frame);
        if (rc)
            nrg_fail(err, rc, path, "cannot evaluate: %s", strerror(-rc));
        else
            rc = check_scales(s, frame->recording, err);
        if (!rc)
            add_events(s, frame->recording);
        if (!rc)
            rc = nrg_recording_check(frame->recording, err);
    }
    if (rc)
        nrg_summary_release(s);
    return rc;
}

int nrg_summary_make(struct nrg_summary *s, struct nrg_recording *recording,
                     const struct nrg_run *run, enum nrg_split split, struct nrg_error *err)
{
    struct nrg_frame frame;
    int rc = nrg_frame_init(&frame, recording);
    *s = (struct nrg_summary){0};
    rc = rc ? nrg_fail(err, rc, NULL, "out of memory") : nrg_summary_of(s, &frame, run, split, err);
    nrg_frame_release(&frame);
    return rc;
}

void nrg_summary_release(struct nrg_summary *s)
{
    free(s->domains);
    free(s->processes);
    free(s->missing);
    *s = (struct nrg_summary){0};
}

struct nrg_container_use nrg_container_use(const struct nrg_summary *s, size_t first)
{
    struct nrg_container_use use = {0};
    const char *container = s->processes[first].info->container;
    for (size_t i = 0; container[0] && i < s->n_processes; i++) {
        if (strcmp(s->processes[i].info->container, container))
            continue;
        if (i < first)
            return use;
        use.processes++;
        use.cpu_time_s += s->processes[i].cpu_time_s;
        use.cpu_j += s->processes[i].cpu_j;
    }
    return use;
}
