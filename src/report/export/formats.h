/*
 * A recording in forms that other programs read: docs/export.md is the specification of all of
 * them. Everything is streamed; memory does not grow with the length of the recording.
 *
 * All functions return 0 or -errno with err filled; -EPIPE and the like come from the stream.
 */
#ifndef NRG_REPORT_EXPORT_FORMATS_H
#define NRG_REPORT_EXPORT_FORMATS_H

#include <stdio.h>

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

/* Where time_s is 0: the recording's beginning. -ENODATA when it holds nothing. */
int nrg_export_origin_ns(struct nrg_recording *recording, int64_t *origin_ns,
                         struct nrg_error *err);

#endif
