/*
 * Streams over memory: what a byte costs, by the cache that it comes from. Every member of a team
 * goes over a working set of its own, so that private caches hold what they are meant to hold.
 *
 * Arrays are the caller's, and so is the team. Nothing fails.
 */
#ifndef NRG_CALIBRATE_STREAM_H
#define NRG_CALIBRATE_STREAM_H

#include <stddef.h>

#include "calibrate/team.h"

enum nrg_stream_kind {
    NRG_STREAM_READ,  /* the sum of an array */
    NRG_STREAM_WRITE, /* fills one */
    NRG_STREAM_COPY,  /* one into another */
    NRG_STREAM_TRIAD, /* a = b + s c */
    NRG_STREAM_KINDS
};
extern const char *const nrg_stream_names[NRG_STREAM_KINDS];

#define NRG_STREAM_MEMBERS 256 /* at most */

struct nrg_stream {
    enum nrg_stream_kind kind;
    size_t floats;    /* of each array, of all members together; a multiple of 16 x members */
    float *a, *b, *c; /* NULL where the kind has fewer arrays */
    unsigned passes;  /* per call */
    float sums[NRG_STREAM_MEMBERS]; /* of members, so that no compiler removes the reads */
};

/* Arrays that a kind has, and how many of these are read. */
unsigned nrg_stream_arrays(enum nrg_stream_kind kind);
unsigned nrg_stream_reads(enum nrg_stream_kind kind);
void nrg_stream(struct nrg_team *team, struct nrg_stream *stream);

#endif
