/*
 * The protobuf wire format, as a bounded cursor over bytes that stay where they are: no copies,
 * no schema, no allocation. A message is a run of fields; a field has a number and one of four
 * wire types. Callers loop over the fields they know and ignore the rest, as protobuf demands.
 *
 *   struct nrg_pb msg = nrg_pb_of(bytes, size);
 *   struct nrg_pb_field f;
 *   while ((rc = nrg_pb_next(&msg, &f)) > 0) switch (f.number) …
 *
 * Nothing here recurses; a caller that enters nested messages bounds its own depth.
 */
#ifndef NRG_GRAPH_PROTOBUF_H
#define NRG_GRAPH_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

enum nrg_pb_wire { NRG_PB_VARINT = 0, NRG_PB_FIXED64 = 1, NRG_PB_BYTES = 2, NRG_PB_FIXED32 = 5 };

struct nrg_pb {
    const uint8_t *at, *end;
    const char *why; /* after a negative return: what is wrong at `at` */
};

struct nrg_pb_field {
    uint32_t number;
    enum nrg_pb_wire wire;
    uint64_t value;       /* varint and fixed */
    const uint8_t *bytes; /* NRG_PB_BYTES */
    size_t size;
};

struct nrg_pb nrg_pb_of(const void *bytes, size_t size);
/* The message inside a field of wire type NRG_PB_BYTES (empty for others). */
struct nrg_pb nrg_pb_inside(const struct nrg_pb_field *field);

/* 1: a field was read; 0: the message ended; -EBADMSG with `why`. */
int nrg_pb_next(struct nrg_pb *msg, struct nrg_pb_field *field);

/* One varint of a packed run; 1, 0 at the end, -EBADMSG. */
int nrg_pb_varint(struct nrg_pb *msg, uint64_t *value);

/* Fields of `number` up to the end or to where the message is broken: what a loop will see. */
size_t nrg_pb_count(struct nrg_pb msg, uint32_t number);
/* The last field of `number` (protobuf: the last one counts); 1 found, 0 not. */
int nrg_pb_find(struct nrg_pb msg, uint32_t number, struct nrg_pb_field *field);

/* Bits of a fixed32 or fixed64 field as a number. */
double nrg_pb_float(uint64_t bits);
double nrg_pb_double(uint64_t bits);

/*
 * Repeated numbers, packed or not: how many a field holds (element size 0: varints), -EBADMSG when
 * the run is broken.
 */
int64_t nrg_pb_elements(const struct nrg_pb_field *field, size_t element);

#endif
