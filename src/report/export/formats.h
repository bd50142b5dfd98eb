/*
 * A recording in forms that other programs read: docs/export.md is the specification of all of
 * them. CSV, JSON and AIPowerMeter's files are streamed: memory does not grow with the length of
 * the recording.
 *
 * All functions return 0 or -errno with err filled; -EPIPE and the like come from the stream.
 */
#ifndef NRG_REPORT_EXPORT_FORMATS_H
#define NRG_REPORT_EXPORT_FORMATS_H

#include <stdio.h>

#include "attribute/attribution.h"
#include "record/read/recording.h"

/* One row per reading, exact. */
int nrg_export_csv_long(struct nrg_recording *recording, FILE *out, struct nrg_error *err);
/* One row per period, one column per channel: means. */
int nrg_export_csv_wide(struct nrg_recording *recording, int64_t period_ns, FILE *out,
                        struct nrg_error *err);
/* One row per reading of a process. */
int nrg_export_csv_processes(struct nrg_recording *recording, FILE *out, struct nrg_error *err);

/* Everything that the recording holds, as one document of schema nrg.recording/1. */
int nrg_export_json(struct nrg_recording *recording, FILE *out, struct nrg_error *err);

/* AIPowerMeter's folder: power_metrics.json and metadata.json, one record per period. */
int nrg_export_aipowermeter(struct nrg_recording *recording, int64_t period_ns, const char *folder,
                            bool overwrite, struct nrg_error *err);

/*
 * For speedscope and the Firefox Profiler, from an attribution by path with buckets. left_out:
 * spans beyond what such a page can hold.
 */
#define NRG_EXPORT_BUCKETS 1000
int nrg_export_speedscope(struct nrg_recording *recording,
                          const struct nrg_attribution *attribution, FILE *out, uint64_t *left_out,
                          struct nrg_error *err);
int nrg_export_firefox(struct nrg_recording *recording, const struct nrg_attribution *attribution,
                       FILE *out, uint64_t *left_out, struct nrg_error *err);

/* Where time_s is 0: the recording's beginning. -ENODATA when it holds nothing. */
int nrg_export_origin_ns(struct nrg_recording *recording, int64_t *origin_ns,
                         struct nrg_error *err);

#endif
