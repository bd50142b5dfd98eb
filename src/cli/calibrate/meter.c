/* See meter.h. */
#include "cli/calibrate/meter.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/temp.h"
#include "energy/summary.h"
#include "record/sampler/recorder.h"

int nrg_recorder_meter_open(struct nrg_recorder_meter *m, struct nrg_error *err)
{
    const char *given = nrg_temp_dir();
    const char *places[] = {"/dev/shm", strlen(given) < 40 ? given : "/tmp", "/tmp"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(m->folder, sizeof m->folder, "%.40s/nrg-calibrate-XXXXXX", places[i]);
        if (mkdtemp(m->folder)) {
            snprintf(m->path, sizeof m->path, "%s/reading.nrg", m->folder);
            return 0;
        }
    }
    int rc = -errno;
    m->folder[0] = '\0';
    return nrg_fail(err, rc, "/tmp", "no place for readings: %s", strerror(-rc));
}

void nrg_recorder_meter_close(struct nrg_recorder_meter *m)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char path[128];
    if (!m->folder[0])
        return;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(path, sizeof path, "%s%s", m->path, ends[i]);
        unlink(path);
    }
    rmdir(m->folder);
    m->folder[0] = '\0';
}

/* ---- what a recording tells ---- */

static void note_domains(struct nrg_recorder_meter *m, const struct nrg_summary *s)
{
    struct nrg_str text = {0};
    for (size_t i = 0; i < s->n_domains; i++)
        if (s->domains[i].in_total)
            nrg_str_addf(&text, "%s%s", text.len ? ", " : "", s->domains[i].channel->channel.name);
    nrg_copy(m->domains, sizeof m->domains, text.text ? text.text : "");
    nrg_str_release(&text);
}

/*
 * An estimate is a model of CPU time: it knows its idle power, and what others use meanwhile is
 * theirs by their CPU time. What is left is the idle machine and the work alone.
 */
static void leave_others_out(struct nrg_work_reading *reading, const struct nrg_summary *s)
{
    double own_j = NAN;
    for (size_t i = 0; i < s->n_processes; i++)
        own_j = nrg_sum_known(own_j, s->processes[i].cpu_j);
    if (!s->idle_method || strcmp(s->idle_method, "estimate") != 0 || isnan(own_j))
        return;
    reading->energy_j = s->idle_j + own_j;
    reading->uncertainty_j *= reading->energy_j / s->total_j;
    reading->others_out = true;
}

static int take_reading(struct nrg_recorder_meter *m, struct nrg_recording *recording,
                        struct nrg_work_reading *reading, struct nrg_error *err)
{
    struct nrg_summary summary;
    size_t n;
    const struct nrg_run *runs = nrg_recording_runs(recording, &n);
    const char *cpu = nrg_recording_text(recording, "cpu");
    int rc = n ? nrg_summary_make(&summary, recording, &runs[0], NRG_SPLIT_ACTIVE, err)
               : nrg_fail(err, -ENODATA, NULL, "a reading was not recorded");
    if (rc)
        return rc;
    *reading = (struct nrg_work_reading){.duration_s = summary.duration_s,
                                         .energy_j = summary.total_j,
                                         .uncertainty_j = summary.total_uncertainty_j,
                                         .utilisation = summary.cpu_utilisation};
    if (isnan(reading->uncertainty_j))
        reading->uncertainty_j = 0;
    leave_others_out(reading, &summary);
    if (!(summary.total_j > 0))
        rc = nrg_fail(err, -ENODATA, NULL, "no sensor told any energy (see nrg sensors)");
    if (!m->readings++ || summary.total_provenance > m->provenance)
        m->provenance = summary.total_provenance;
    note_domains(m, &summary);
    nrg_copy(m->device, sizeof m->device, cpu ? cpu : "");
    nrg_summary_release(&summary);
    return rc;
}

static int read_back(struct nrg_recorder_meter *m, struct nrg_work_reading *reading,
                     struct nrg_error *err)
{
    struct nrg_recording *recording;
    int rc = nrg_recording_open(m->path, &recording, err);
    if (rc)
        return rc;
    rc = take_reading(m, recording, reading, err);
    nrg_recording_close(recording);
    return rc;
}

/* ---- a reading ---- */

int nrg_recorder_meter_measure(void *arg, void (*work)(void *), void *work_arg,
                               struct nrg_work_reading *reading, struct nrg_error *err)
{
    struct nrg_recorder_meter *m = arg;
    struct nrg_recorder *recorder = NULL;
    struct nrg_run run = {.id = 1, .kind = "run", .exit_code = -1};
    const struct nrg_recorder_options options = {.path = m->path,
                                                 .overwrite = true,
                                                 .live_processes = true,
                                                 .inside = true,
                                                 .sensors = m->sensors};
    int rc = nrg_recorder_new(&m->cli->ctx, &options, &recorder, err);
    if (!rc)
        rc = nrg_recorder_begin(recorder, err);
    if (rc) {
        nrg_recorder_free(recorder);
        return rc;
    }
    nrg_recorder_follow(recorder, (int32_t)getpid(), false); /* its CPU time tells it from others */
    run.begin_ns = nrg_recorder_read_begin(recorder);
    work(work_arg);
    run.end_ns = nrg_recorder_read_now(recorder);
    nrg_recorder_run(recorder, &run);
    rc = nrg_recorder_end(recorder, NULL, NULL, err);
    nrg_recorder_free(recorder);
    return rc ? rc : read_back(m, reading, err);
}
