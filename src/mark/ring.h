/*
 * The memory that programs share with a recorder: what mark/client.c writes and spans/drain.c
 * reads. One sealed memfd per recorder, sparse, so that unused parts cost nothing:
 *
 *     0          struct nrg_ring_header                    a page
 *     4096       NRG_RING_SLOTS x struct nrg_ring_slot     who writes to which ring
 *     NAMES_AT   NRG_RING_NAMES_BYTES                      names, appended, never changed
 *     RINGS_AT   NRG_RING_SLOTS x NRG_RING_RECORDS x 16    a ring per slot
 *
 * A ring has one writer, the thread that owns the slot, and one reader, the recorder. head and
 * tail count all records since the start; a record's place is its number modulo the size of the
 * ring. The writer fills records, then moves head (release); the reader moves tail when it is
 * done with them.
 *
 * The recorder trusts none of it: any program that has the descriptor can overwrite it.
 * Client and recorder must be of one layout; `version` is raised when it changes. Depends on
 * nothing but libc.
 */
#ifndef NRG_MARK_RING_H
#define NRG_MARK_RING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a span's name, of its kind and of its detail; longer ones are cut. */
#define NRG_SPAN_NAME_MAX   16384
#define NRG_SPAN_KIND_MAX   15
#define NRG_SPAN_DETAIL_MAX 127

#define NRG_RING_MAGIC       UINT64_C(0x31736e617073676e) /* "ngspans1" */
#define NRG_RING_VERSION     2
#define NRG_RING_SLOTS       256
#define NRG_RING_RECORDS     65536 /* a power of two: 1 MB, 32768 spans */
#define NRG_RING_NAMES_BYTES (UINT32_C(16) << 20)
#define NRG_RING_TOKEN_BYTES 16

/* NRG_SPANS=1,FD,INODE,TOKEN,PATH: FD is inherited; PATH opens it again where FD was closed. */
#define NRG_RING_VARIABLE      "NRG_SPANS"
#define NRG_RING_VARIABLE_SIZE 160

enum nrg_ring_clock { NRG_RING_MONOTONIC, NRG_RING_TSC };

struct nrg_ring_header {
    uint64_t magic;
    uint32_t version;
    uint32_t clock; /* enum nrg_ring_clock: of the time stamps in records */
    uint8_t token[NRG_RING_TOKEN_BYTES];
    uint32_t n_slots, n_records, names_bytes;
    _Alignas(64) _Atomic uint32_t listening; /* 0: the recorder has ended */
    /* Raised by each thread that takes a slot. Also a futex, on which a recorder sleeps until there
     * is a thread to watch. */
    _Alignas(64) _Atomic uint32_t claims;
    _Atomic uint32_t names_used; /* in units of NRG_RING_NAME_UNIT */
    _Atomic uint32_t launches;   /* 1: past spans will name the threads that launched them */
    _Atomic uint64_t unplaced;   /* events of threads that found no slot, or had no room */
};

/*
 * At this place of the first page in every layout, with magic, version and token at the front of
 * the header: a program whose libnrg is of another layout marks nothing, and counts itself here. A
 * recorder from before that has no magic here; then the first of such programs says it itself.
 */
struct nrg_ring_refusals {
    uint64_t magic;
    _Atomic uint32_t programs;
    _Atomic uint32_t version; /* of the last one */
};

/* pid << 32 | tid of the owner, 0: free */
typedef _Atomic uint64_t nrg_ring_owner;

enum nrg_ring_phase { NRG_RING_CLAIMED, NRG_RING_READY, NRG_RING_CLOSED };

struct nrg_ring_slot {
    _Alignas(64) nrg_ring_owner owner;
    _Atomic uint32_t phase; /* what follows is valid once ready; closed: its thread has ended */
    uint64_t pid_namespace; /* inode; pids of another one mean nothing to the recorder */
    int64_t start_ticks;    /* of the process: field 22 of its stat, 0: not known */
    char name[16];          /* of the thread */
    _Alignas(64) _Atomic uint64_t head;
    _Atomic uint64_t dropped;  /* spans, marks and counts that are not in the ring */
    _Atomic uint64_t too_deep; /* of these, what was nested too deeply */
    _Atomic uint64_t nameless; /* of these, what found no room for its name; the rest: no room */
    _Alignas(64) _Atomic uint64_t tail;
};

enum nrg_ring_op {
    NRG_RING_NOTHING,
    NRG_RING_BEGIN,
    NRG_RING_END,
    NRG_RING_MARK,
    NRG_RING_COUNT,
    NRG_RING_PAST,  /* clock: when it began, in CLOCK_MONOTONIC ns; value: when it ended */
    NRG_RING_CPU,   /* value: CPU time of the thread in ns */
    NRG_RING_VALUE, /* second half of the record before */
    /* Of the past span that follows: a thread of the same process launched its work.
     * clock: when, in CLOCK_MONOTONIC ns; name: the thread's number */
    NRG_RING_LAUNCH,
    NRG_RING_OP_MASK = 0xff,
    NRG_RING_HAS_VALUE = 0x100 /* a record of NRG_RING_VALUE follows */
};

struct nrg_ring_record {
    uint64_t clock; /* of NRG_RING_VALUE: the value */
    uint32_t op;
    uint32_t name; /* number of a name; of NRG_RING_VALUE after a past span: of its track */
};

/*
 * A name's number is its place in the names, in units; 0 is none. Bytes: kind, detail and text,
 * each with a NUL. A track's name has the kind NRG_RING_TRACK_KIND and its domain as detail.
 */
#define NRG_RING_NAME_UNIT  8u
#define NRG_RING_TRACK_KIND "(track)"

struct nrg_ring_name {
    _Atomic uint32_t number; /* its own, written last */
    uint32_t text_bytes;
    uint8_t kind_bytes, detail_bytes;
    uint8_t cut; /* the text was longer */
    char bytes[];
};

#define NRG_RING_REFUSALS_AT    2048u
#define NRG_RING_REFUSALS_MAGIC UINT64_C(0x3173757366657267) /* "grefsus1" */
#define NRG_RING_SLOTS_AT       4096u
#define NRG_RING_NAMES_AT                                                                          \
    (NRG_RING_SLOTS_AT + (uint32_t)(NRG_RING_SLOTS * sizeof(struct nrg_ring_slot)))
#define NRG_RING_RINGS_AT   (NRG_RING_NAMES_AT + NRG_RING_NAMES_BYTES)
#define NRG_RING_RING_BYTES (NRG_RING_RECORDS * sizeof(struct nrg_ring_record))
#define NRG_RING_BYTES      (NRG_RING_RINGS_AT + NRG_RING_SLOTS * NRG_RING_RING_BYTES)

_Static_assert(sizeof(struct nrg_ring_slot) == 192, "counts fill what alignment leaves");
_Static_assert(sizeof(struct nrg_ring_record) == 16, "records are two words");
_Static_assert(sizeof(struct nrg_ring_header) <= NRG_RING_REFUSALS_AT, "the header is a page");
_Static_assert(NRG_RING_NAMES_AT % 4096 == 0, "pages are not shared between parts");
_Static_assert((NRG_RING_RECORDS & (NRG_RING_RECORDS - 1)) == 0, "rings wrap by a mask");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "atomics work across processes");

#endif
