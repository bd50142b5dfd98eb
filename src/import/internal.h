/*
 * What the files of src/import share: lines of text files, the contract between log.c and the log
 * formats, what every imported recording needs, and writing and placing the spans of a sink.
 *
 * A log format is one const struct in a file of its own and one line in log.c, which reads a log
 * twice. The format's `record` is called for every line of both passes and reports what the line
 * holds through the functions below. They collect channels in the first pass and write rows in the
 * second, so that a format need not know about passes.
 *
 * Errors are negative errno, with err where a function takes one. One thread at a time.
 */
#ifndef NRG_IMPORT_INTERNAL_H
#define NRG_IMPORT_INTERNAL_H

#include "base/csv.h"
#include "base/mem.h"
#include "import/log.h"
#include "import/span_sink.h"
#include "record/read/recording.h"
#include "record/rows.h"
#include "record/store/writer.h"

enum {
    NRG_IMPORT_CHANNELS = 512,
    NRG_IMPORT_MAX_PID = 4194304,
    NRG_IMPORT_FLUSH_ROWS = 16384 /* a large chunk of the recording */
};

/* ---- lines.c: a text file by lines of bounded length; {.in = stream}, which is the caller's ----
 */

#define NRG_LINE_MAX ((size_t)16 << 20)

struct nrg_lines {
    FILE *in;
    struct nrg_str text; /* the line without its end, NUL-terminated; the caller releases it */
    long long number;    /* of that line, from 1 */
    bool unfinished;     /* it is the last one and has no line end */
};

/* 1: a line; 0: the end; -EMSGSIZE: longer than NRG_LINE_MAX; -EIO, -ENOMEM. */
int nrg_lines_next(struct nrg_lines *lines);
/* Back to the first line; 0 or -errno. */
int nrg_lines_rewind(struct nrg_lines *lines);

/* ---- formats of logs ---- */

struct nrg_import;

struct nrg_import_format {
    const char *name;
    bool (*match)(const char *line, size_t len); /* the first line that is not blank */
    /* One line, NUL-terminated, which the format may use up. 0 or -errno with err (the caller adds
     * the line number). */
    int (*record)(struct nrg_import *im, char *line, size_t len, struct nrg_error *err);
    /* May be NULL. After the last line of each pass; the caller adds the file to err. */
    int (*finish)(struct nrg_import *im, struct nrg_error *err);
    size_t state_size;            /* of im->state, which is zero before the first pass */
    void (*release)(void *state); /* may be NULL: nothing but the state itself */
    bool means;                   /* powers may be means over the interval before (`held`) */
    bool takes_turns; /* a record is of one device of several, which its first value names */
};

extern const struct nrg_import_format nrg_import_aipowermeter;
extern const struct nrg_import_format nrg_import_codecarbon;
extern const struct nrg_import_format nrg_import_jetson_log;
extern const struct nrg_import_format nrg_import_nvidia_smi;
extern const struct nrg_import_format nrg_import_perf_stat;
extern const struct nrg_import_format nrg_import_tegrastats;
extern const struct nrg_import_format nrg_import_zeus_energy;
extern const struct nrg_import_format nrg_import_zeus_power;

/* "20250128-13:38:25.941535" in ns since 1970, as if it were UTC; 0 or -EINVAL. */
int nrg_import_compact_time(const char *text, size_t len, int64_t *t_ns);

/* Time between records: every stride-th of them, so that a day at 1 kHz fits into 512 kB. */
struct nrg_import_spacing {
    int64_t *items;
    size_t n, cap, stride, skipped;
    int64_t longest_ns, shortest_pause_ns; /* inside segments; between them */
};

/* The series of processes. */
enum { NRG_IMPORT_CPU, NRG_IMPORT_MEMORY, NRG_IMPORT_GPU, NRG_IMPORT_TABLES };

/* What processes have used so far; see process.c. */
struct nrg_import_processes {
    struct nrg_process_info *infos;
    size_t n, cap;
    struct nrg_map by_pid; /* entries in the order of infos */
    struct nrg_rows rows[NRG_IMPORT_TABLES];
    int series[NRG_IMPORT_TABLES];
    bool any, any_gpu;
    bool shares_only; /* CPU time was computed from shares */
};

struct nrg_import {
    const struct nrg_import_options *options;
    const struct nrg_import_format *format;
    void *state; /* the format's own */
    struct nrg_lines lines;
    struct nrg_store *store; /* NULL: only checking */
    bool writing;            /* second pass */
    bool held;               /* powers become energy counters */
    struct nrg_channel *channels;
    size_t n_channels, cap_channels;
    double *sums;    /* per channel: counters that add up */
    int64_t *cells;  /* of the current record */
    int64_t *starts; /* counters at the beginning of its interval */
    struct nrg_rows rows;
    int series;
    int64_t period_ns;
    int64_t known_period_ns; /* the format found it by itself; 0: by the spacing of records */
    struct nrg_import_spacing spacing;
    struct nrg_import_processes processes;
    /* the current record */
    int64_t t_ns, interval_ns; /* it describes the interval that ends at t_ns */
    int64_t begin_ns;          /* from where readings cover its interval; t_ns when they do not */
    bool first_of_segment, first_value;
    bool undated;           /* times count from a start of the log's own */
    uint64_t with_interval; /* records that state their interval */
    /* so far */
    bool have_time, in_segment;
    int64_t last_ns, segment_begin_ns;
    int64_t led_ns[NRG_IMPORT_CHANNELS]; /* when a record last began with this channel */
    struct nrg_import_result result;
};

/* log_write.c. Starts a record. interval_ns 0: not stated, it is the time since the last record. */
int nrg_import_begin(struct nrg_import *im, int64_t t_ns, int64_t interval_ns,
                     struct nrg_error *err);
/* A value of the record. The channel is known by name and quantity; `value` in SI units. */
int nrg_import_value(struct nrg_import *im, const struct nrg_channel *channel, double value,
                     struct nrg_error *err);
/* Adds to a counter that the importer keeps, such as CPU seconds. */
int nrg_import_add(struct nrg_import *im, const struct nrg_channel *channel, double step,
                   struct nrg_error *err);
int nrg_import_end(struct nrg_import *im, struct nrg_error *err);
/* A whole record that tells what was used in the interval that ends at t_ns; a new segment where
 * that interval begins after the last record. */
struct nrg_import_energy {
    struct nrg_channel channel;
    double energy_j; /* NAN: missing */
};
int nrg_import_interval(struct nrg_import *im, int64_t t_ns, int64_t interval_ns,
                        const struct nrg_import_energy *energies, size_t n, struct nrg_error *err);
/* Something that the user should know about how the log was read; once. */
void nrg_import_note(struct nrg_import *im, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Nothing is known between the last record and the next. */
int nrg_import_end_segment(struct nrg_import *im);

/* What log.c calls around the passes. */
int nrg_import_prepare(struct nrg_import *im, struct nrg_error *err);
int nrg_import_finish(struct nrg_import *im);
void nrg_import_release(struct nrg_import *im);

/* process.c. Bytes may be NRG_MISSING; cpu_s is what it used in the record's interval. */
int nrg_import_process(struct nrg_import *im, int64_t pid, double cpu_s, int64_t pss_bytes,
                       int64_t uss_bytes);
int nrg_import_gpu_process(struct nrg_import *im, int64_t pid, int64_t gpu, double share,
                           int64_t memory_bytes);
/* Before the second pass. */
int nrg_import_processes_open(struct nrg_import *im);
/* Gives waiting rows to the store; `last`: and the processes themselves. */
int nrg_import_processes_flush(struct nrg_import *im, bool last);
void nrg_import_processes_release(struct nrg_import *im);

/* ---- table.c: logs that are CSV with a header ---- */

/* The cells of one line, which is used up; the line's own end is not needed. */
int nrg_import_cells(struct nrg_csv *cells, char *line, size_t len, struct nrg_error *err);
/* True when a comma-separated header has a column of that name. */
bool nrg_import_has_column(const char *header, size_t len, const char *name);
/* "gpu12_energy" with "gpu" and "_energy" is 12; -1: something else. */
int nrg_import_numbered(struct nrg_cell cell, const char *before, const char *after);
/* A channel of energy that adds up, in uJ. */
struct nrg_channel nrg_import_energy_channel(const char *name, enum nrg_provenance provenance,
                                             const char *source);

/* csv.c: logs with a header, read by sensors/virtual/replay_source.h. */
bool nrg_import_csv_match(const char *line, size_t len);
int nrg_import_csv(const struct nrg_import_options *options, struct nrg_import_result *result,
                   struct nrg_error *err);

/* ---- recording.c: what every imported recording has ---- */

/* Writes the rows of a series and empties them. */
int nrg_import_flush_rows(struct nrg_store *store, int series, struct nrg_rows *rows);

/* A sensor called after the log, for its channels. Parents that are not among them are dropped. */
int nrg_import_sensor(struct nrg_store *store, const char *format, const char *path,
                      struct nrg_channel *channels, size_t n, int64_t period_ns, int *series);

struct nrg_import_origin {
    const char *path, *format;
    int64_t begin_ns, end_ns;
    double idle_w;   /* NAN: not known */
    bool one_run;    /* that lasts from begin to end */
    bool wall_clock; /* times are unix time */
};

/* Metadata, the run and the clock of an imported recording. */
int nrg_import_describe(struct nrg_store *store, const struct nrg_import_origin *origin);

/* ---- spans ---- */

/* span_write.c */
struct nrg_span_sink_result {
    uint64_t spans;            /* written */
    uint64_t cut;              /* shortened because they overlapped without nesting */
    uint64_t outside;          /* entirely outside the store's samples, if it has any */
    int64_t first_ns, last_ns; /* of the spans; 0, 0 without any */
    uint64_t unclosed;         /* without an end */
    uint64_t empty;            /* of no length */
    int64_t samples_first_ns, samples_last_ns; /* of the store's samples; 0, 0 without any */
};
/*
 * Writes all spans as a series of their own; ids continue after those that the store has already.
 * -ERANGE: beyond the times that a recording can hold.
 */
int nrg_span_sink_write(struct nrg_span_sink *sink, struct nrg_store *store,
                        struct nrg_span_sink_result *result);

/*
 * span_activity.c: the busy part (0..1) of each of n steps from begin_ns on, for aligning with
 * power. Kernels count; without kernels layers and operators; else all spans. Spans that overlap
 * count once.
 */
int nrg_span_sink_activity(const struct nrg_span_sink *sink, int64_t begin_ns, int64_t step_ns,
                           double *busy, size_t n);

/*
 * place.c: moves the spans of im->sink to the clock of the recording and fills placed, offset and
 * uncertainty of im->file. A file with dates is placed by the recording's clock pairs, others by
 * the offset given or by one that align.h finds. recording NULL: there is no power, and dates stay
 * dates. Fails when the place of the file can't be known.
 */
struct nrg_layer_import;
int nrg_import_place(struct nrg_layer_import *im, struct nrg_recording *recording,
                     struct nrg_error *err);

#endif
