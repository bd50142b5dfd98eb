/*
 * What the files of src/energy share: the steps that make a summary (summary.h), and the processes'
 * part of bins.c.
 *
 * A summary owns what the steps allocate; nrg_summary_release frees it. Functions return 0 or a
 * negative errno. One thread at a time.
 */
#ifndef NRG_ENERGY_INTERNAL_H
#define NRG_ENERGY_INTERNAL_H

#include "energy/bins.h"
#include "energy/frame.h"
#include "energy/summary.h"
#include "record/read/cursor.h"
#include "sensors/total.h"

/* domains.c: energy per domain and the total. */
int nrg_domains_make(struct nrg_summary *summary, struct nrg_frame *frame);
/* Sets energy, mean power, covered time, method and uncertainty of d, whose channel is set. */
void nrg_domain_energy(struct nrg_domain *d, struct nrg_frame *frame, const struct nrg_timeline *tl,
                       const struct nrg_summary *summary);

/* Makes its interval wider. */
void nrg_domain_widen(struct nrg_domain *d, double below_j, double above_j);

/* unread.c: what the time without readings may have used, in the interval of a domain. */
void nrg_unread_add(struct nrg_domain *d, const struct nrg_timeline *tl,
                    const struct nrg_summary *summary);
/* Says when its counter stood still. True: it did so in all of the run. */
bool nrg_unread_note_still(struct nrg_summary *summary, struct nrg_frame *frame,
                           const struct nrg_domain *d);
/* The same by what its like drew: another package, another module. Needs all domains. */
void nrg_unread_alike(struct nrg_summary *summary);
/* Of parts that have no reading in the run at all, in the interval of the total. */
void nrg_unread_absent(struct nrg_summary *summary, struct nrg_frame *frame);

/* What an energy may be too high (below) or too low (above) by. */
struct nrg_doubt {
    double below_j, above_j;
    double missed; /* part of the spans' time that was not seen, on balance; NAN: not known */
    bool creeping; /* readings are as those of a load in step with the sensor */
};

/* updates/part_time.c: a gauge that sees a part of each update only, and what that means for the
 * energy of the run. */
bool nrg_is_part_time(const struct nrg_channel *channel);
struct nrg_doubt nrg_part_time_doubt(struct nrg_frame *frame, const struct nrg_channel *channel,
                                     const struct nrg_timeline *tl,
                                     const struct nrg_summary *summary, double mean_w);
/* The same for any other gauge, of what power did between its readings; 0 where it sees all. */
double nrg_sampling_doubt_j(struct nrg_frame *frame, const struct nrg_channel *channel,
                            const struct nrg_timeline *tl, const struct nrg_summary *summary);

/* updates/unseen.c: see there. NAN: no spans, or readings do not show when the sensor updates. */
double nrg_unseen_share(struct nrg_frame *frame, const struct nrg_channel *channel,
                        const struct nrg_timeline *tl, const struct nrg_summary *summary);

/* The variance of a mean of readings that are of one moment of each update, to that of moments at
 * random: more where they are in step with the spans, less where spans are long. 0: not known. */
double nrg_uneven_moments(struct nrg_frame *frame, const struct nrg_channel *channel,
                          const struct nrg_timeline *tl, const struct nrg_summary *summary);

/* second.c: compares a GPU's energy with what its other channels say, and widens the interval by
 * their disagreement. Drops the timelines of those channels. */
void nrg_domain_compare(struct nrg_domain *d, struct nrg_frame *frame, struct nrg_summary *summary);

/* wall.c: fills summary->wall where there are parts to compare. `items`: one for each domain. */
void nrg_wall_make(struct nrg_summary *summary, const struct nrg_total_item *items);

/* idle_power.c: idle energy of each cell, never more than the cell has; idle_method and idle_found
 * of the summary. Needs the domains, and the energy and busy time of the cells (if has_busy). */
struct nrg_share_cells;
void nrg_idle_fill(struct nrg_summary *summary, struct nrg_frame *frame,
                   struct nrg_share_cells *cells, bool has_busy);

/* Idle power of one domain by its baselines, and what it may be off by; NAN: there are none, or the
 * run does not allow them, which is said. */
double nrg_domain_idle_w(struct nrg_summary *summary, struct nrg_frame *frame,
                         const struct nrg_domain *domain, double *doubt_w);

/* shares.c: energy per process, idle, others. Needs the domains. */
int nrg_shares_make(struct nrg_summary *summary, struct nrg_frame *frame);

/* The processors' energy of a cell of time, as shares.c divided it. */
struct nrg_cpu_cell {
    double cpu_j, idle_j;
    double idle_least_j, idle_most_j; /* what of it may be idle */
    double share;                     /* of the workload, in what is not idle */
};

/* program.c: what the workload may have used of the processors' energy; part of nrg_shares_make.
 * `told_apart`: the processes' watts per CPU second are known. */
void nrg_program_cpu(struct nrg_summary *summary, const struct nrg_cpu_cell *cells, size_t n,
                     bool told_apart);
/* Fills summary->program. Needs all shares. */
void nrg_program_make(struct nrg_summary *summary, struct nrg_frame *frame);
/* gpu_shares.c: adds the GPUs' energy to the processes. Needs both. */
int nrg_gpu_shares_make(struct nrg_summary *summary, struct nrg_frame *frame);

/* summary.c: adds a line to the list of what was not measured. */
int nrg_summary_missing(struct nrg_summary *summary, const char *what, const char *why, ...)
    __attribute__((format(printf, 3, 4)));

/* A bin that can still change. */
struct nrg_open_bin {
    struct nrg_bin_cell *cells;
    struct nrg_bin_process *processes;
    size_t n_processes, cap_processes;
    struct nrg_bin_gpu_process *gpu;
    size_t n_gpu, cap_gpu;
};

struct nrg_bin_process_state {
    const struct nrg_process_info *info;
    int64_t t_ns, cpu_ns, rss_bytes, pss_bytes, uss_bytes;
    int64_t bin;  /* the last bin that it has an entry in; -1: none */
    size_t entry; /* its index there */
};

/* bins_process.c */
struct nrg_bin_processes {
    struct nrg_bin_process_state *by_id;
    size_t n_ids;
};

/* CPU time between two readings of one process. */
struct nrg_process_stretch {
    size_t id;
    int64_t from_ns, to_ns;
    double cpu_s;
};

int nrg_bin_processes_init(struct nrg_bin_processes *p, struct nrg_recording *recording);
void nrg_bin_processes_release(struct nrg_bin_processes *p);
/* A row of NRG_PROCESSES or NRG_PROCESS_MEMORY. 1: *stretch is to be added; 0: nothing is. */
int nrg_bin_processes_row(struct nrg_bin_processes *p, const struct nrg_cursor_row *row,
                          struct nrg_process_stretch *stretch);
/* Adds the part of a stretch that lies in the bin of number k. */
int nrg_bin_processes_add(struct nrg_bin_processes *p, struct nrg_open_bin *bin, int64_t k,
                          const struct nrg_process_stretch *stretch, struct nrg_span_ns edges);
/* A row of NRG_GPU_PROCESSES. */
int nrg_bin_gpu_add(struct nrg_open_bin *bin, const int64_t *cells);

#endif
