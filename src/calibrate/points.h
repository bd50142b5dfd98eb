/*
 * What nrg calibrate measures: products and convolutions of graded sizes, and streams over working
 * sets from the first cache to well beyond the last. A point is one of them; a workload is a point
 * with its buffers, ready to run.
 *
 * Points are plain data. Workloads: open, run, close; they use the team of the caller.
 */
#ifndef NRG_CALIBRATE_POINTS_H
#define NRG_CALIBRATE_POINTS_H

#include "calibrate/caches.h"
#include "calibrate/gemm.h"
#include "calibrate/stream.h"

enum nrg_point_family { NRG_POINT_GEMM, NRG_POINT_CONV, NRG_POINT_STREAM, NRG_POINT_FAMILIES };
extern const char *const nrg_point_families[NRG_POINT_FAMILIES];

struct nrg_point {
    enum nrg_point_family family;
    char name[64];    /* "256 x 256 x 256" */
    const char *kind; /* of operator, in PyTorch's names */
    size_t m, n, k;   /* products */
    struct nrg_conv conv;
    enum nrg_stream_kind stream;
    size_t set_bytes;  /* working set of a stream, of all threads */
    const char *level; /* of a stream: the level that holds the set, "L1" to "L4" or "memory" */
    double macs, read_bytes, written_bytes; /* of one call, as nrg graph counts */
};

struct nrg_points {
    struct nrg_point *items;
    size_t n, cap;
    bool caches_assumed; /* the kernel lists no caches: usual sizes were taken */
    bool memory_short;   /* no room for a set well beyond the last cache */
};

struct nrg_points_options {
    unsigned threads;
    bool quick;
    bool families[NRG_POINT_FAMILIES];
    size_t memory_bytes; /* that a working set may have at most */
};

/* 0 or -ENOMEM. */
int nrg_points_make(struct nrg_points *points, const struct nrg_caches *caches,
                    const struct nrg_points_options *options);
void nrg_points_release(struct nrg_points *points);

struct nrg_workload {
    const struct nrg_point *point;
    struct nrg_team *team;
    float *memory; /* all buffers */
    float *a, *b, *c, *columns, *room;
};

int nrg_workload_open(struct nrg_workload *workload, const struct nrg_point *point,
                      struct nrg_team *team, struct nrg_error *err);
/* Makes `calls` calls. */
void nrg_workload_run(struct nrg_workload *workload, unsigned calls);
void nrg_workload_close(struct nrg_workload *workload);

#endif
