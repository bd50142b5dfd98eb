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
#include <stddef.h>
#include <stdint.h>

#include "mark/ring.h" /* NRG_SPAN_…_MAX */

#define NRG_FORMAT_APPLICATION_ID 0x4e524721 /* "NRG!" */
#define NRG_FORMAT_VERSION        1
#define NRG_FORMAT_REVISION       2 /* raised when a recording holds more; old readers go on */

/* Later times mean a damaged file. Sums and differences of valid times can't overflow. */
#define NRG_MAX_TIME_NS (INT64_MAX / 4)

static inline bool nrg_is_time(int64_t t_ns)
{
    return t_ns >= 0 && t_ns <= NRG_MAX_TIME_NS;
}

enum nrg_series_kind {
    NRG_SAMPLES,
    NRG_PROCESSES,
    NRG_PROCESS_MEMORY,
    NRG_GPU_PROCESSES,
    NRG_SPANS,
    NRG_THREADS
};

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
/* Columns of NRG_GPU_PROCESSES; recordings of nrg 0.2 have no size_ppm */
enum {
    NRG_G_PID,
    NRG_G_GPU,
    NRG_G_DEVICE_PID,
    NRG_G_SM_PPM,
    NRG_G_MEMORY_BYTES,
    NRG_G_SIZE_PPM, /* as in struct nrg_gpu_process */
    NRG_G_COLUMNS
};

/*
 * Columns of NRG_SPANS. A row is an event, not a span. Events come in order of time: a span that
 * lasts for hours needs only a place on a stack, and one that was never closed is seen as such.
 * Within a track events nest. No row of a chunk is earlier than any row of the chunk before.
 */
enum {
    NRG_S_TRACK,  /* span_track.id: a thread, a stream of a GPU, a layer log */
    NRG_S_EVENT,  /* enum nrg_span_event */
    NRG_S_NAME,   /* span_name.id; an end repeats its begin's or is NRG_MISSING */
    NRG_S_VALUE,  /* begin: its number (step 17), or NRG_MISSING; count: the amount; end: the
                     duration in ns that an imported log gives, if it is not end - begin */
    NRG_S_PARENT, /* begin: span_path.id of its parent; NRG_MISSING: nesting says */
    NRG_S_COLUMNS
};
enum nrg_span_event { NRG_SPAN_BEGIN, NRG_SPAN_END, NRG_SPAN_MARK, NRG_SPAN_COUNT };
/* Columns of NRG_THREADS: CPU time of threads that mark spans */
/* Why spans, marks and counts of a program are missing, and how reasons are called: the key of
 * their number in the metadata, the key in JSON, and in words. */
enum nrg_span_drop {
    NRG_DROP_RING,
    NRG_DROP_NAMES,
    NRG_DROP_THREADS,
    NRG_DROP_DEPTH,
    NRG_SPAN_DROPS
};
struct nrg_span_drop_names {
    const char *meta, *json, *words;
};
extern const struct nrg_span_drop_names nrg_span_drop_names[NRG_SPAN_DROPS];

enum { NRG_T_TRACK, NRG_T_CPU_NS, NRG_T_COLUMNS };

/* Kinds of names that reports know; any other short word is allowed. */
#define NRG_KIND_SPAN     "span"  /* nothing more is known */
#define NRG_KIND_PHASE    "phase" /* training, validation */
#define NRG_KIND_EPOCH    "epoch"
#define NRG_KIND_STEP     "step"
#define NRG_KIND_CYCLE    "cycle"    /* one inference of a layer log */
#define NRG_KIND_MODULE   "module"   /* forward; the name is the qualified one, detail the class */
#define NRG_KIND_BACKWARD "backward" /* of the module of that name */
#define NRG_KIND_OPERATOR "operator"
#define NRG_KIND_LAYER    "layer"
#define NRG_KIND_KERNEL   "kernel"
#define NRG_KIND_COUNTER  "counter" /* samples, tokens, requests */

struct nrg_span_name {
    int64_t id; /* from 1 */
    char kind[NRG_SPAN_KIND_MAX + 1];
    char detail[NRG_SPAN_DETAIL_MAX + 1]; /* class of a module, type of a layer; "" */
    char *text;                           /* clean UTF-8, owned by the recording */
};

struct nrg_span_track {
    int64_t id;          /* from 1 */
    char kind[16];       /* "thread", "gpu", "log" (layer times of another program) */
    int32_t pid, tid;    /* 0: not known */
    int64_t start_ticks; /* of the process, see nrg_process_info; 0: not known */
    char domain[48];     /* energy domain that its work uses, "gpu-0"; "": the processors */
    char name[128];
};

/* A place in the tree of spans that nesting does not show, such as the operator of a thread that
 * launched a kernel on a GPU. */
struct nrg_span_path {
    int64_t id, parent, name; /* parent 0: top */
};

extern const char nrg_format_schema[];
/* Tables of spans. Created if missing: an import may add spans to a recording that has none. */
extern const char nrg_format_spans[];
/* Created when the recording is closed: maintaining it would cost a page per commit. */
extern const char nrg_format_index[];

const char *nrg_series_kind_name(enum nrg_series_kind kind);
int nrg_series_kind_from_name(const char *name); /* -1: unknown */
/* Fixed column names of a process-like kind, NULL-terminated; NULL for samples. */
const char *const *nrg_series_columns(enum nrg_series_kind kind);
/* How many; 0 for samples. Others may have written more, but none less. */
size_t nrg_series_n_columns(enum nrg_series_kind kind);
/* Fewer are damage: columns that came later are missing in old recordings. */
size_t nrg_series_least_columns(enum nrg_series_kind kind);

/* Key of a recording's texts: there when processes and sensors are of different machines. */
#define NRG_META_PROCESS_MACHINE "process_machine"
#define NRG_META_RESERVE         "reserve"

/* One process. Texts are clean UTF-8. */
struct nrg_process_info {
    int64_t id; /* in this recording, from 1 */
    int32_t pid;
    int32_t parent_pid;
    int64_t start_ticks;       /* field 22 of /proc/PID/stat; with the pid it is unique */
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
    char kind[32];    /* fault, recovered, late, lost, clock-step, suspend, disk, processes, ... */
    char source[128]; /* channel, sensor or part */
    char detail[300];
};

struct nrg_event nrg_event_now(const char *kind, const char *source, const char *detail);

#endif
