/*
 * Imports the logs of other programs as recordings, so that `nrg report`, `nrg export` and replay
 * work on them. The format is recognised from the first line; log.c has the table of formats.
 *
 * Strict: the first line that can't be understood fails the import, with file, line and reason,
 * before anything is written. Only an unfinished last line (the other program was killed) is a
 * warning. Files are streamed twice: once to check them and to find the channels, once to write.
 *
 * The monotonic clock of an imported recording is the wall clock of the file. Errors are negative
 * errno with err. One thread at a time.
 */
#ifndef NRG_IMPORT_LOG_H
#define NRG_IMPORT_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

struct nrg_import_options {
    const char *path;       /* a file, or AIPowerMeter's folder */
    const char *output;     /* the recording; NULL: none, only check */
    bool overwrite;         /* output */
    int64_t zone_offset_ns; /* local time minus UTC, for dates without a zone */
    double idle_w;          /* kept as metadata; NAN: not known */
    bool held;              /* powers are means over the interval that ends at the date: exact
                               energy counters, instead of trapezoids between dates */
    int64_t period_ns;      /* between records of a log without times, or how long the log of one
                               record lasted; 0: not known */
    bool segments_are_runs; /* each segment is a run, instead of one run with gaps */
};

struct nrg_import_result {
    const char *format; /* "aipowermeter", "jetson-log", ... */
    uint64_t records, segments, channels, processes;
    int64_t begin_ns, end_ns;  /* unix time */
    long long unfinished_line; /* the last line, when it was cut off and left out; 0: none */
    char note[240];            /* how it was read, where that is not obvious; "" for none */
};

int nrg_import(const struct nrg_import_options *options, struct nrg_import_result *result,
               struct nrg_error *err);

/* The same on an open, seekable stream; without an output it only checks. */
int nrg_import_stream(FILE *in, const struct nrg_import_options *options,
                      struct nrg_import_result *result, struct nrg_error *err);

/* Idle power of a Jetson from idling_power.json, {"avg_idle_power": uW}. 0 or -errno. */
int nrg_import_idle_power(const char *path, double *idle_w, struct nrg_error *err);

#endif
