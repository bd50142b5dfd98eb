/*
 * The recording's format, shared by the store (writes) and the recording (reads). The
 * specification for others is docs/recording-format.md; change both together, and the version.
 *
 * Process-like series have columns of their own instead of channels; their rows are sorted by
 * (first column, time) inside a chunk, which makes each process a run of slowly changing values.
 */
#ifndef NRG_RECORD_FORMAT_H
#define NRG_RECORD_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#define NRG_FORMAT_APPLICATION_ID 0x4e524721 /* "NRG!" */
#define NRG_FORMAT_VERSION        1

/* Times beyond this are damage; sums and differences of the others can't overflow. */
#define NRG_MAX_TIME_NS (INT64_MAX / 4)

static inline bool nrg_is_time(int64_t t_ns)
{
    return t_ns >= 0 && t_ns <= NRG_MAX_TIME_NS;
}

enum nrg_series_kind { NRG_SAMPLES, NRG_PROCESSES, NRG_PROCESS_MEMORY, NRG_GPU_PROCESSES };

/* Columns of NRG_PROCESSES */
enum {
    NRG_P_PROCESS, /* process.id */
    NRG_P_CPU_NS,  /* since the process began, all threads */
    NRG_P_RSS_BYTES,
    NRG_P_THREADS,
    NRG_P_COLUMNS
};
/* Columns of NRG_PROCESS_MEMORY: what costs too much to read at every tick */
enum {
    NRG_M_PROCESS,
    NRG_M_PSS_BYTES,
    NRG_M_USS_BYTES,
    NRG_M_READ_BYTES, /* from and to storage, since the process began */
    NRG_M_WRITTEN_BYTES,
    NRG_M_COLUMNS
};
/* Columns of NRG_GPU_PROCESSES */
enum { NRG_G_PID, NRG_G_GPU, NRG_G_DEVICE_PID, NRG_G_SM_PPM, NRG_G_MEMORY_BYTES, NRG_G_COLUMNS };

extern const char nrg_format_schema[];
/* Made when the recording is closed: kept up while it grows it would cost a page per commit. */
extern const char nrg_format_index[];

const char *nrg_series_kind_name(enum nrg_series_kind kind);
int nrg_series_kind_from_name(const char *name); /* -1: unknown */
/* Fixed column names of a process-like kind, NULL-terminated; NULL for samples. */
const char *const *nrg_series_columns(enum nrg_series_kind kind);

/* What is known of one process. Texts are clean UTF-8. */
struct nrg_process_info {
    int64_t id; /* in this recording, from 1 */
    int32_t pid;
    int32_t parent_pid;
    int64_t start_ticks;       /* field 22 of /proc/PID/stat: with the pid, who it is */
    int64_t first_ns, last_ns; /* when nrg saw it first and last */
    int64_t cpu_ns;            /* at last_ns, all threads */
    int64_t cpu_before_ns;     /* already used when first seen */
    int64_t peak_rss_bytes;
    int32_t uid;       /* -1: unknown */
    int32_t ended;     /* 1: it is known to have ended */
    char name[32];     /* comm */
    char command[512]; /* arguments, joined by blanks, cut */
    char container[80];
    char unit[128]; /* systemd unit or Slurm job from the cgroup path */
};

/* One measured interval: the baseline, or one execution of the command. */
struct nrg_run {
    int64_t id;
    char kind[16]; /* "baseline", "run", "system" */
    int64_t begin_ns, end_ns;
    int32_t exit_code; /* as a shell shows it; -1: not a command or still running */
};

struct nrg_event {
    int64_t t_ns;
    char kind[32];    /* fault, recovered, late, lost, clock-step, disk, processes, ... */
    char source[128]; /* channel, sensor or part */
    char detail[300];
};

#endif
