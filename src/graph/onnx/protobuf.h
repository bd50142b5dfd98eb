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
#ifndef NRG_GRAPH_ONNX_PROTOBUF_H
#define NRG_GRAPH_ONNX_PROTOBUF_H

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

/* Fields of `number` up to the end or to where the message is broken: what a loop will see. */
size_t nrg_pb_count(struct nrg_pb msg, uint32_t number);
/* The last field of `number` (protobuf: the last one counts); 1 found, 0 not. */
int nrg_pb_find(struct nrg_pb msg, uint32_t number, struct nrg_pb_field *field);

/* Bits of a fixed32 or fixed64 field as a number. */
double nrg_pb_float(uint64_t bits);
double nrg_pb_double(uint64_t bits);

/*
 * A repeated field of numbers, packed or not. `element`: bytes of each, 0 for varints. Start with
 * msg, number and element; `run` is what is left of a packed field.
 */
struct nrg_pb_numbers {
    struct nrg_pb msg;
    uint32_t number;
    size_t element;
    struct nrg_pb run;
};
/* 1: the bits of the next one; 0: there is none; -EBADMSG with `why` in run or in msg. */
int nrg_pb_number(struct nrg_pb_numbers *numbers, uint64_t *bits);

#endif
