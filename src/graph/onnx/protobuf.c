/*
 * See protobuf.h. Every length is compared with what is left of the enclosing message before it is
 * used, so that a field can never reach beyond its parent. Varints longer than ten bytes, field
 * number 0, the reserved wire types and the two group types (gone from protobuf since 2008, and the
 * only ones that would need a stack here) are refused.
 */
#include "graph/onnx/protobuf.h"

#include <errno.h>
#include <string.h>

#define VARINT_BYTES 10
#define LAST_NUMBER  ((UINT64_C(1) << 29) - 1)

struct nrg_pb nrg_pb_of(const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    return (struct nrg_pb){at, at ? at + size : at, NULL};
}

struct nrg_pb nrg_pb_inside(const struct nrg_pb_field *field)
{
    return field->wire == NRG_PB_BYTES ? nrg_pb_of(field->bytes, field->size) : nrg_pb_of(NULL, 0);
}

static int refuse_message(struct nrg_pb *msg, const char *why)
{
    msg->why = why;
    return -EBADMSG;
}

/* 1, 0 at the end, -EBADMSG. */
static int read_varint(struct nrg_pb *msg, uint64_t *value)
{
    uint64_t sum = 0;
    if (msg->at == msg->end)
        return 0;
    for (unsigned i = 0; i < VARINT_BYTES; i++) {
        if (msg->at + i == msg->end)
            return refuse_message(msg, "the file ends inside a number");
        uint8_t byte = msg->at[i];
        if (i == VARINT_BYTES - 1 && byte > 1)
            break;
        sum |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            msg->at += i + 1;
            *value = sum;
            return 1;
        }
    }
    return refuse_message(msg, "a number is longer than 64 bits");
}

static int read_fixed(struct nrg_pb *msg, struct nrg_pb_field *field, size_t size)
{
    field->value = 0;
    if ((size_t)(msg->end - msg->at) < size)
        return refuse_message(msg, "the message ends inside a field");
    for (size_t i = 0; i < size; i++)
        field->value |= (uint64_t)msg->at[i] << (8 * i);
    msg->at += size;
    return 1;
}

static int read_bytes(struct nrg_pb *msg, struct nrg_pb_field *field)
{
    uint64_t size = 0;
    int rc = read_varint(msg, &size);
    if (rc < 0)
        return rc;
    if (!rc || size > (size_t)(msg->end - msg->at))
        return refuse_message(msg,
                              "a field is longer than what holds it: truncated or not protobuf");
    field->bytes = msg->at;
    field->size = (size_t)size;
    msg->at += size;
    return 1;
}

int nrg_pb_next(struct nrg_pb *msg, struct nrg_pb_field *field)
{
    const uint8_t *start = msg->at;
    uint64_t tag = 0;
    int rc = read_varint(msg, &tag);
    if (rc <= 0)
        return rc;
    *field = (struct nrg_pb_field){.wire = (enum nrg_pb_wire)(tag & 7)};
    if (!(tag >> 3) || tag >> 3 > LAST_NUMBER) {
        msg->at = start;
        return refuse_message(msg, "a field has a number that protobuf does not allow");
    }
    field->number = (uint32_t)(tag >> 3);
    switch (field->wire) {
    case NRG_PB_VARINT:
        rc = read_varint(msg, &field->value);
        return rc ? rc : refuse_message(msg, "the message ends inside a field");
    case NRG_PB_FIXED64:
        return read_fixed(msg, field, 8);
    case NRG_PB_FIXED32:
        return read_fixed(msg, field, 4);
    case NRG_PB_BYTES:
        return read_bytes(msg, field);
    }
    msg->at = start;
    return refuse_message(msg, "a field has a wire type that protobuf does not have");
}

size_t nrg_pb_count(struct nrg_pb msg, uint32_t number)
{
    struct nrg_pb_field field;
    size_t n = 0;
    while (nrg_pb_next(&msg, &field) > 0)
        n += field.number == number;
    return n;
}

int nrg_pb_find(struct nrg_pb msg, uint32_t number, struct nrg_pb_field *found)
{
    struct nrg_pb_field field;
    int has = 0;
    while (nrg_pb_next(&msg, &field) > 0)
        if (field.number == number) {
            *found = field;
            has = 1;
        }
    return has;
}

double nrg_pb_float(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return (double)value;
}

double nrg_pb_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

int nrg_pb_number(struct nrg_pb_numbers *n, uint64_t *bits)
{
    struct nrg_pb_field field;
    int rc = 1;
    while (n->run.at == n->run.end) {
        if ((rc = nrg_pb_next(&n->msg, &field)) <= 0)
            return rc;
        if (field.number == n->number && field.wire != NRG_PB_BYTES) {
            *bits = field.value;
            return 1;
        }
        if (field.number == n->number)
            n->run = nrg_pb_inside(&field);
    }
    if (!n->element)
        return read_varint(&n->run, bits);
    rc = read_fixed(&n->run, &field, n->element);
    *bits = field.value;
    return rc;
}
