/*
 * The documents of a Redfish service (DMTF DSP0266, DSP8010) as far as a machine's power goes: JSON
 * that a management controller sent, taken apart. No network here (driver.c).
 *
 * A document is foreign data. Links are taken only as paths of the same service, so that no answer
 * can send our password elsewhere. What is no reading is an error, never 0 W. Pure functions; any
 * thread.
 */
#ifndef NRG_SENSORS_REDFISH_DOCUMENT_H
#define NRG_SENSORS_REDFISH_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NRG_REDFISH_PATH    200
#define NRG_REDFISH_MEMBERS 32

/* What a document is, by what it holds. All paths may be "". */
struct nrg_redfish_document {
    char id[40];                        /* clean text */
    bool is_machine;                    /* a chassis that can be a whole server, by its type */
    char power[NRG_REDFISH_PATH];       /* of a chassis: its Power, */
    char environment[NRG_REDFISH_PATH]; /* its EnvironmentMetrics */
    char chassis[NRG_REDFISH_PATH];     /* of the service's root: the collection */
    char source[NRG_REDFISH_PATH];      /* of a reading: the Sensor that it comes from */
    size_t n_members;                   /* of a collection */
    char members[NRG_REDFISH_MEMBERS][NRG_REDFISH_PATH];
    int error;        /* of the reading: 0; -ENOENT: the document has none; -ENODATA: no value
                         now, or 0 W; -ERANGE: no power that a machine draws */
    double watts;     /* where error is 0 */
    int64_t stamp_ns; /* ReadingTime, since 1970 by the controller's clock; NRG_MISSING */
};

/* 0, or -EPROTO: it is no JSON object; -ENOMEM. */
int nrg_redfish_parse(const char *body, size_t len, struct nrg_redfish_document *out);

#endif
