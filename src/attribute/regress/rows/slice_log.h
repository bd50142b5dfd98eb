/*
 * Slices of activity, written down: the regressions of the domains get them one after the other, so
 * that only one of them holds its slices at a time. A slice takes some 10 bytes: what is as in the
 * slice before, or as usual, is not written.
 *
 * Add, rewind, read; release. In order of begin_ns. Adding fails with -ENOMEM. One thread at a
 * time.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_ROWS_SLICE_LOG_H
#define NRG_ATTRIBUTE_REGRESS_ROWS_SLICE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nrg_slice {
    int64_t begin_ns, end_ns;
    double rate;
    uint32_t class_, pool, track;
    uint32_t cell, group; /* see struct nrg_class_activity */
    float calls;          /* negative: its stretch goes on; of others, see unsure2 there */
};

struct nrg_slice_log {
    uint8_t *bytes;
    size_t n, cap;
    struct nrg_slice last; /* that was added */
};

struct nrg_slice_reader {
    const uint8_t *next, *end;
    struct nrg_slice slice; /* that was read */
};

int nrg_slice_log_add(struct nrg_slice_log *log, const struct nrg_slice *slice);
void nrg_slice_log_release(struct nrg_slice_log *log);

void nrg_slice_reader_init(struct nrg_slice_reader *reader, const struct nrg_slice_log *log);
/* false: there is no other one. */
bool nrg_slice_read(struct nrg_slice_reader *reader);

#endif
