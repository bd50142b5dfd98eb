/*
 * For tests: a recording written through the store from a few calls, with channels, spans, CPU
 * times and runs of one's own choosing, opened for reading. Times are seconds after MADE_ZERO.
 * Every function aborts the test (via assert) when it can't do its job.
 */
#ifndef NRG_TESTS_MADE_H
#define NRG_TESTS_MADE_H

#include "record/read/recording.h"
#include "record/store/writer.h"

#define MADE_ZERO (1000 * NRG_NS_PER_S)

struct made {
    char path[64];
    struct nrg_store *store;
    struct nrg_rows spans, threads, processes;
    int64_t names, tracks, paths, process_ids, runs;
    struct nrg_recording *recording;
};

int64_t made_ns(double t_s);
void made_init(struct made *made);
/* Closes the store and opens the recording. */
void made_open(struct made *made);
void made_release(struct made *made);

/* Energy counter in uJ, power gauge in mW; change what differs before made_channel. */
struct nrg_channel made_counter(const char *name);
struct nrg_channel made_gauge(const char *name);
/* n readings; raw NULL: of power_w(arg, t), integrated exactly for a counter. */
void made_channel(struct made *made, const struct nrg_channel *channel, const double *t_s,
                  const int64_t *raw, size_t n);
/* Readings every step_s from begin_s to end_s. */
void made_power(struct made *made, const struct nrg_channel *channel, double begin_s, double end_s,
                double step_s, double (*energy_j)(void *arg, double t_s),
                double (*power_w)(void *arg, double t_s), void *arg);
void made_constant(struct made *made, const struct nrg_channel *channel, double begin_s,
                   double end_s, double step_s, double power_w);
/* Busy CPU seconds of the machine: cpu.busy, every 0.1 s. */
void made_busy(struct made *made, double begin_s, double end_s, double cpus);
/* An estimate as nrg's own: machine with its idle part and both ends of its band, low and high
 * times its energy. */
void made_estimate(struct made *made, double begin_s, double end_s, double power_w, double idle_w,
                   double low, double high);

int64_t made_name(struct made *made, const char *kind, const char *text);
int64_t made_track(struct made *made, const char *kind, int32_t pid, int32_t tid,
                   const char *domain);
int64_t made_path(struct made *made, int64_t parent, int64_t name);
void made_event(struct made *made, double t_s, int64_t track, enum nrg_span_event event,
                int64_t name, int64_t value, int64_t parent);
void made_begin(struct made *made, double t_s, int64_t track, int64_t name);
void made_end(struct made *made, double t_s, int64_t track);
void made_span(struct made *made, double begin_s, double end_s, int64_t track, int64_t name);
/* CPU time of a thread: `cpus` busy from begin to end, a row every 0.1 s. */
void made_thread(struct made *made, int64_t track, double begin_s, double end_s, double cpus);
/* One reading of it. */
void made_thread_row(struct made *made, int64_t track, double t_s, double cpu_s);
/* CPU time of a process, which is made, in the same way. */
int64_t made_process(struct made *made, int32_t pid, double begin_s, double end_s, double cpus);
void made_run(struct made *made, const char *kind, double begin_s, double end_s);

#endif
