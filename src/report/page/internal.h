/*
 * What the files of report/page share: the stream that data goes into, and the arrays of a
 * recording. A stream of data is, in order:
 *
 *   uint32 n     length of the head
 *   head         JSON, n bytes; its `arrays` list names, types and lengths of what follows
 *   arrays       little endian, in that order
 *
 * The head and every array begin at a multiple of 8 bytes, so that the page can lay typed arrays
 * over the inflated bytes.
 */
#ifndef NRG_REPORT_PAGE_INTERNAL_H
#define NRG_REPORT_PAGE_INTERNAL_H

#include <jansson.h>

#include "attribute/time_buckets.h"
#include "base/arena.h"
#include "base/inflate.h"
#include "base/map.h"
#include "report/page/page.h"

/* blob.c: packs bytes, codes them in base64 and writes them. */
struct nrg_page_blob {
    FILE *out;
    struct nrg_gzip *gzip;
    uint8_t left[3];
    size_t n_left;
    size_t size; /* bytes before packing */
};

int nrg_page_blob_open(struct nrg_page_blob *blob, FILE *out, struct nrg_error *err);
int nrg_page_blob_put(struct nrg_page_blob *blob, const void *bytes, size_t n);
/* Fills up to a multiple of 8. */
int nrg_page_blob_align(struct nrg_page_blob *blob);
int nrg_page_blob_close(struct nrg_page_blob *blob);

/* One array; `type` as in the head: f8 f4 u4 i4 u1. */
struct nrg_page_array {
    const char *name, *type;
    const void *data;
    size_t n;
};

enum { NRG_PAGE_ARRAYS = 64 };

struct nrg_page_data {
    const struct nrg_page_run *run;
    struct nrg_arena memory; /* of what follows */
    json_t *head;
    struct nrg_page_array arrays[NRG_PAGE_ARRAYS];
    size_t n_arrays;
    struct nrg_map strings; /* texts by number, from 1 */
    struct nrg_page_spans *spans;
};

/* Adds an array; the data stays the caller's. */
void nrg_page_array(struct nrg_page_data *data, const char *name, const char *type,
                    const void *items, size_t n);
/* Number of a text in the head's list; 0 is the empty one, also when out of memory. */
uint32_t nrg_page_string(struct nrg_page_data *data, const char *text);

/* head.c: what is said once. */
int nrg_page_head(struct nrg_page_data *data);
/* redact.c: leaves out what may name people or places. The summary is the one that the report is
 * of; prediction and comparison may be NULL. */
void nrg_page_redact_report(json_t *report, const struct nrg_summary *summary);
void nrg_page_redact_others(json_t *prediction, json_t *comparison);
/* tables.c: rows and buckets. */
int nrg_page_tables(struct nrg_page_data *data);
/* series.c: channels over time, and CPU time of processes. */
int nrg_page_series(struct nrg_page_data *data, struct nrg_error *err);
/* spans.c: lanes. */
int nrg_page_lanes(struct nrg_page_data *data, struct nrg_error *err);
void nrg_page_lanes_release(struct nrg_page_data *data);

#endif
