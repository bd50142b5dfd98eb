/*
 * What the files of src/attribute/waiting share: names.c says which name means which kind of
 * waiting, states.c finds the state of each GPU at each instant, spans.c gives the changes as
 * spans, waiting.c lets the engine find their energy.
 */
#ifndef NRG_ATTRIBUTE_WAITING_INTERNAL_H
#define NRG_ATTRIBUTE_WAITING_INTERNAL_H

#include "attribute/internal.h"
#include "attribute/waiting/waiting.h"

/* What a span on a GPU's track is: NRG_WAIT_NOT, or one of the kinds that are active. */
enum nrg_wait_kind nrg_wait_on_device(const struct nrg_span_name *name);
/* What a process waits for in a span of one of its threads; NRG_WAIT_NOT: for nothing. */
enum nrg_wait_kind nrg_wait_on_host(const struct nrg_span_name *name);

/* States beside the kinds of waiting. Work with communication or a copy under it uses other power
 * than work alone, and stands where such waiting does: apart, so that neither is taken for the
 * other. */
enum {
    NRG_STATE_OVER_COLLECTIVE = NRG_WAIT_KINDS,
    NRG_STATE_OVER_COPY,
    NRG_STATE_UNTOLD,
    NRG_STATE_OUTSIDE,
    NRG_STATE_OF_KERNEL /* the first of those of work by one kernel, see nrg_states.n_kernels */
};

/* Kernels that have a state of their own. Waiting comes after some kernels rather than others: with
 * one power of all work, a regression would give it what these differ by. */
#define NRG_STATE_KERNELS 32

struct nrg_state_device {
    char domain[48], rank[48];
    bool kernels;
    int32_t pid; /* 0: not known, or several */
    uint32_t open[NRG_WAIT_KINDS];
    uint32_t works[NRG_STATE_KERNELS + 1]; /* how many of each are open; the last: of no such */
    uint32_t awaited;                      /* calls on hosts that wait for this one alone */
    uint8_t state;
    size_t change; /* its last one, + 1 */
};

struct nrg_state_change {
    int64_t t_ns;
    uint32_t device;
    uint8_t state;
};

struct nrg_states {
    struct nrg_arena memory;
    struct nrg_state_device *devices;
    size_t n_devices;
    size_t n_kernels;                 /* that have states; 0: all work is one */
    struct nrg_state_change *changes; /* in order of time */
    size_t n, cap;
    /* of the source */
    size_t at;
    uint8_t *shown; /* per device: the state that its spans say */
    struct nrg_span_row queue[8];
    size_t queued, taken;
};

/* Reads the spans of a recording; run: as in nrg_attribution_options. Work by each of the kernels
 * that take most time is a state. Init, release. */
int nrg_states_find(struct nrg_states *states, struct nrg_recording *recording, int64_t run,
                    struct nrg_error *err);
/* Makes all work one state. */
void nrg_states_join_work(struct nrg_states *states);
void nrg_states_release(struct nrg_states *states);

/* The states as spans: each GPU one, called as its domain, with `work` and `waiting` in it, and in
 * the latter one of what it waits for; in `work` one while something runs under it, or of the one
 * kernel that runs. */
int nrg_states_catalog(const struct nrg_states *states, struct nrg_span_catalog *catalog);
struct nrg_span_source nrg_states_source(struct nrg_states *states);
#define NRG_WAITING_NAME "waiting"

#endif
