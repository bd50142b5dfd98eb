/*
 * Samples in memory: their type, and where each channel is in a frame (one sample of every
 * channel). Types have plain names, "s16le", "f32be", "u8", or those of the kernel's industrial
 * I/O, "le:s12/16>>4": twelve bits, signed, in sixteen, shifted by four. Everything is bounded and
 * nothing is allocated; errors are a negative errno; any thread.
 */
#ifndef NRG_SENSORS_WAVEFORM_FORMAT_H
#define NRG_SENSORS_WAVEFORM_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define NRG_FRAME_CHANNELS 32
#define NRG_FRAME_BYTES    256

struct nrg_sample_type {
    uint8_t bytes, bits, shift; /* bytes: 1..8; bits: how many of theirs hold the value */
    bool big, is_signed, is_float;
    uint8_t repeat; /* values of this type one after the other, 1 for most */
    bool kernel;    /* has a kernel's name: aligned to its own size */
};

struct nrg_sample_frame {
    struct {
        struct nrg_sample_type type;
        unsigned offset;
    } of[NRG_FRAME_CHANNELS];
    unsigned n, bytes;
};

/* 0 or -EINVAL. */
int nrg_sample_type_parse(const char *text, size_t len, struct nrg_sample_type *out);
/* In counts; a float as it is. */
double nrg_sample_value(const struct nrg_sample_type *type, const uint8_t *bytes);

/* Adds a channel (or `repeat` of them). 0 or -ENOSPC. */
int nrg_sample_frame_add(struct nrg_sample_frame *frame, const struct nrg_sample_type *type);
/* Call after the last channel: sets the frame's size, with the kernel's padding. */
void nrg_sample_frame_close(struct nrg_sample_frame *frame);
/* Types separated by commas; a single plain one stands for all `channels`. 0 or -EINVAL, err. */
int nrg_sample_frame_parse(struct nrg_sample_frame *frame, const char *text, unsigned channels,
                           struct nrg_error *err);

#endif
