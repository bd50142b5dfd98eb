/*
 * What a run used: the result that `nrg run` and `nrg report` show, from a recording alone.
 *
 * Laws: every energy has a method and a provenance; a number that is not known is NAN, never 0;
 * sum(processes) + other_processes_j + idle_j = the processors' energy to rounding; the total
 * adds disjoint domains only; program + other_processes_j + idle_j + unattributed = total.
 *
 * Make, release. A summary points into its recording, which must outlive it. 0 or -errno with err.
 * One thread at a time.
 */
#ifndef NRG_ENERGY_SUMMARY_H
#define NRG_ENERGY_SUMMARY_H

#include <math.h>

#include "record/read/recording.h"

#define NRG_MOSTLY_COVERED 0.999 /* what readings cover less of has gaps, and that is said */

struct nrg_domain {
    const struct nrg_recorded_channel *channel;
    const char *method; /* "counter difference", "trapezoid", ... */
    double energy_j, uncertainty_j, low_j, high_j, mean_w, peak_w;
    double covered;               /* part of the run that readings cover, 0..1 */
    double covered_uncertainty_j; /* of that part alone; uncertainty_j is that of the whole run */
    double edges_below_j, edges_above_j; /* what the edges of the run cost (edges.h) */
    double unread_w; /* that it was taken to draw at most in the rest of the run */
    /* Of a part-time sensor in step with the load: how far power may have been below and above its
     * mean where it did not look. */
    double missed_below_w, missed_above_w;
    bool in_total;
    bool wall_part; /* one of the parts that the wall is compared with */
    /* Of a GPU: what the program used of it, and may have, the sensor's own error aside. */
    struct {
        bool shared; /* the driver names processes */
        double energy_j, least_j, most_j;
    } program;
    /* Another channel that measures the same part (of a GPU), the one that differs most; NULL. */
    const struct nrg_recorded_channel *second;
    double second_j, second_uncertainty_j;
    bool disputed; /* they differ by more than their uncertainties */
};

/* The widest meter against the parts that it contains (wall.c). */
struct nrg_wall {
    const struct nrg_domain *domain; /* its first line; NULL: nothing to compare */
    char name[200];                  /* "wall", "power1 + power2" */
    double energy_j, uncertainty_j, mean_w, covered;
    size_t n_parts;
    double parts_j, parts_w; /* in the time that the wall's readings cover */
    double ratio;            /* wall over parts; NAN */
    double left_over_j, left_over_uncertainty_j, left_over_w;
};

struct nrg_process_energy {
    const struct nrg_process_info *info;
    double cpu_time_s;                      /* within the run */
    double cpu_j, dram_j, gpu_j;            /* NAN: not known */
    int64_t peak_rss_bytes, peak_pss_bytes; /* NRG_MISSING */
    bool still_running;
};

/*
 * What the measured program used of the total: the sum over its processes. Its parts are added end
 * to end: what the sensors may be off by, what idle power may be (shares.c), how the others' watts
 * per CPU second may differ, and domains that can't be shared out, which may be all its.
 */
struct nrg_program {
    double energy_j, low_j, high_j; /* NAN: not known */
    double unattributed_j;          /* of the total: neither its, nor others', nor idle; NAN */
    char share_method[160];         /* "CPU time above idle (baseline)" */
    char why[128];                  /* not known: why */
};

struct nrg_missing {
    char what[128], why[320];
    bool recorded; /* in the recorder's words, which may quote paths, arguments and hosts */
};

enum nrg_split {
    NRG_SPLIT_ACTIVE,   /* energy above idle, by CPU time */
    NRG_SPLIT_BUSY_TIME /* all energy, by share of busy time: AIPowerMeter's rule */
};

/* Idle power of the processors' domains as it was found. In a cell of time that used less, less is
 * idle: nrg_summary's idle_w is the mean of that. */
struct nrg_idle_power {
    double power_w;        /* NAN: not known */
    double less_w, more_w; /* that it may be */
};

/* One execution, or the mean over several. */
struct nrg_summary {
    int64_t begin_ns, end_ns;
    double duration_s;
    int exit_code; /* -1: none */
    struct nrg_domain *domains;
    size_t n_domains;
    double total_j, total_uncertainty_j, total_low_j, total_high_j;
    double total_mean_w;            /* sum of the parts' means, each in its covered time */
    double total_covered;           /* of the part that is covered least */
    double measured_j, estimated_j; /* parts of the total */
    double absent_j;                /* at most, of parts without any reading; in total_high_j */
    enum nrg_provenance total_provenance;
    const struct nrg_domain *widest; /* shown beside the total as a check; NULL */
    struct nrg_wall wall;
    struct nrg_process_energy *processes;
    size_t n_processes;
    struct nrg_program program;
    double idle_j, other_processes_j, cpu_domain_j; /* NAN: not known */
    double idle_w;
    struct nrg_idle_power idle_found;
    const char *idle_method; /* "baseline", "estimate", "regression", NULL: not known */
    enum nrg_split split;
    bool processes_elsewhere; /* on another machine than the sensors': none of the energy is theirs
                               */
    double cpu_utilisation;   /* of the whole machine, 0..1; NAN */
    double cpu_time_s;        /* of the workload */
    double recorder_cpu_s;    /* of nrg itself; NAN: not recorded */
    double peak_memory_bytes; /* of the workload (sum of RSS at one time); NAN */
    struct nrg_missing *missing;
    size_t n_missing, cap_missing;
};

int nrg_summary_make(struct nrg_summary *summary, struct nrg_recording *recording,
                     const struct nrg_run *run, enum nrg_split split, struct nrg_error *err);
/* The same with the timelines of a frame, for who has one: they need not be read again. */
struct nrg_frame;
int nrg_summary_of(struct nrg_summary *summary, struct nrg_frame *frame, const struct nrg_run *run,
                   enum nrg_split split, struct nrg_error *err);
void nrg_summary_release(struct nrg_summary *summary);

/* Whether a domain's energy is the processors', or memory's: by what it is shared out. */
bool nrg_is_cpu_domain(const struct nrg_domain *domain);
bool nrg_is_dram_domain(const struct nrg_domain *domain);

/* A sum of what is known: NAN only while nothing is. */
static inline double nrg_sum_known(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : a + b;
}

/* Sums over the processes of a container. `first` stands for it: of any other process, or one that
 * is in no container, all is 0. */
struct nrg_container_use {
    size_t processes;
    double cpu_time_s, cpu_j; /* NAN: not known */
};
struct nrg_container_use nrg_container_use(const struct nrg_summary *summary, size_t first);

#endif
