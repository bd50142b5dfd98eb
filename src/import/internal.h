/*
 * The contract between import.c, which walks over a file twice, and the formats. A format is one
 * const struct in its own import_<name>.c and one line in import.c. Its `record` is called for
 * every line of both passes and says what the line holds through the functions below; they
 * collect channels in the first pass and write rows in the second, so that a format has no passes
 * of its own. Inside src/record.
 */
#ifndef NRG_RECORD_IMPORT_FORMAT_H
#define NRG_RECORD_IMPORT_FORMAT_H

#include "import/log.h"
#include "record/lines.h"
#include "record/rows.h"
#include "record/store/writer.h"

enum { NRG_IMPORT_CHANNELS = 512, NRG_IMPORT_MAX_PID = 4194304 };

struct nrg_import;

struct nrg_import_format {
    const char *name;
    bool (*match)(const char *line, size_t len); /* the first line that is not blank */
    /* One line, NUL-terminated. 0 or -errno with err (its line number is filled by the caller). */
    int (*record)(struct nrg_import *im, const char *line, size_t len, struct nrg_error *err);
};

extern const struct nrg_import_format nrg_import_aipowermeter;
extern const struct nrg_import_format nrg_import_jetson_log;

/* "20250128-13:38:25.941535" in ns since 1970, as if it were UTC; 0 or -EINVAL. */
int nrg_import_compact_time(const char *text, size_t len, int64_t *t_ns);

/* Time between records: every stride-th of them, so that a day at 1 kHz fits into 512 kB. */
struct nrg_import_spacing {
    int64_t *items;
    size_t n, cap, stride, skipped;
    int64_t longest_ns, shortest_pause_ns; /* inside segments; between them */
};

/* What a process used so far; see import_process.c. */
struct nrg_import_processes {
    struct nrg_process_info *infos;
    size_t n, cap;
    int32_t *by_pid; /* index + 1 */
    size_t cap_by_pid;
    struct nrg_rows rows, memory_rows, gpu_rows;
    int series, memory_series, gpu_series;
    bool any, any_gpu;
    bool shares_only; /* CPU time was made from shares */
};

struct nrg_import {
    const struct nrg_import_options *options;
    const struct nrg_import_format *format;
    struct nrg_lines lines;
    struct nrg_store *store; /* NULL: only checking */
    bool writing;            /* second pass */
    bool held;               /* powers become energy counters */
    struct nrg_channel *channels;
    size_t n_channels, cap_channels;
    double *sums;    /* per channel: counters that add up */
    int64_t *cells;  /* of the record in hand */
    int64_t *starts; /* of counters at the beginning of its interval */
    struct nrg_rows rows;
    int series;
    int64_t period_ns;
    struct nrg_import_spacing spacing;
    struct nrg_import_processes processes;
    /* the record in hand */
    int64_t t_ns, interval_ns; /* it stands for the interval that ends at t_ns */
    int64_t begin_ns;          /* where readings cover its interval from; t_ns when they do not */
    bool first_of_segment;
    uint64_t with_interval; /* records that told their interval */
    /* so far */
    bool have_time, in_segment;
    int64_t last_ns, segment_begin_ns;
    struct nrg_import_result result;
};

/* Starts a record. interval_ns 0: the format does not tell; it is then the time since the last. */
int nrg_import_begin(struct nrg_import *im, int64_t t_ns, int64_t interval_ns,
                     struct nrg_error *err);
/* A value of the record. The channel is known by name and quantity; `value` in SI units. */
int nrg_import_value(struct nrg_import *im, const struct nrg_channel *channel, double value,
                     struct nrg_error *err);
/* Adds to a counter that the importer keeps, such as CPU seconds. */
int nrg_import_add(struct nrg_import *im, const struct nrg_channel *channel, double step,
                   struct nrg_error *err);
int nrg_import_end(struct nrg_import *im, struct nrg_error *err);
/* Nothing is known between the last record and the next. */
int nrg_import_end_segment(struct nrg_import *im);

/* import_process.c. Bytes may be NRG_MISSING; cpu_s is what it used in the record's interval. */
int nrg_import_process(struct nrg_import *im, int64_t pid, double cpu_s, int64_t pss_bytes,
                       int64_t uss_bytes);
int nrg_import_gpu_process(struct nrg_import *im, int64_t pid, int64_t gpu, double share,
                           int64_t memory_bytes);
/* Before the second pass. */
int nrg_import_processes_open(struct nrg_import *im);
/* Gives waiting rows to the store; `last`: and the processes themselves. */
int nrg_import_processes_flush(struct nrg_import *im, bool last);
void nrg_import_processes_release(struct nrg_import *im);

/* import_csv.c: logs with a header, which have a reader already (sensors/virtual/replay_source.h). */
bool nrg_import_csv_match(const char *line, size_t len);
int nrg_import_csv(const struct nrg_import_options *options, struct nrg_import_result *result,
                   struct nrg_error *err);

/* What every imported recording says of itself. */
void nrg_import_metadata(struct nrg_store *store, const struct nrg_import_options *options,
                         const char *format, const struct nrg_import_result *result);

/* import_write.c: what import.c calls around the passes. */
int nrg_import_prepare(struct nrg_import *im, struct nrg_error *err);
int nrg_import_flush(struct nrg_import *im);
int nrg_import_finish(struct nrg_import *im);
void nrg_import_release(struct nrg_import *im);

#endif
