/*
 * A calibration for people and programs; docs/calibrate.md describes the outputs. The report
 * borrows everything; a stream that fails is seen by the caller (ferror).
 */
#ifndef NRG_REPORT_CALIBRATION_H
#define NRG_REPORT_CALIBRATION_H

#include <jansson.h>
#include <stdio.h>

#include "calibrate/calibration.h"

struct nrg_calibration_report {
    const struct nrg_calibration *calibration;
    const struct nrg_caches *caches;
    const struct nrg_points *points;
    const char *device, *domains, *provenance;
    unsigned threads;
    double seconds; /* that it took */
};

void nrg_calibration_text(const struct nrg_calibration_report *report, FILE *out);
/* A new reference; NULL when out of memory. Schema nrg.calibration/1. */
json_t *nrg_calibration_json(const struct nrg_calibration_report *report);

#endif
