/*
 * Real power, Vrms and energy of three clamps from raw samples, in integers, without a heap.
 *
 * The ADC takes the voltage and then each clamp's current in turn; these four samples are a set.
 * The interrupt calls meter_voltage and meter_current for each sample. They only add products to
 * sums of 32 bits (sums.c). At the end of a window of whole mains cycles the sums change hands:
 * the main loop calls meter_take, which does the divisions (meter.c), while the interrupt fills
 * the other buffer. If the main loop is late, the running window grows instead; up to
 * METER_MOST_SETS sets (4 s at 2 kHz) nothing is lost.
 *
 * The caller owns the state, which is plain memory. meter_voltage, meter_current and meter_lost
 * belong to one interrupt, the others to the main loop. No lock is needed: the flag `full` hands
 * a buffer over, and each side only touches what is its own at that time.
 *
 * The same source is compiled for the ATmega328P and for the host's unit tests.
 */
#ifndef FIRMWARE_METER_H
#define FIRMWARE_METER_H

#include <stdbool.h>
#include <stdint.h>

#define METER_CLAMPS    3
#define METER_SLOTS     (METER_CLAMPS + 1) /* conversions per set */
#define METER_TAPS      4
#define METER_MOST_SETS 8000 /* 2^13 products of two 10-bit samples about 0 fit 32 bits */

/* Keeps the compiler from moving accesses to a window across the flag that hands it over. */
#define METER_HAND_OVER() __asm__ volatile("" ::: "memory")

struct meter_settings {
    uint32_t rate_mhz;     /* sets per 1000 s */
    uint8_t cycles;        /* mains cycles per window; at 30 Hz it must fit METER_MOST_SETS */
    uint32_t uv_per_count; /* microvolts of mains per step of the ADC */
    int32_t ua_per_count[METER_CLAMPS]; /* microamperes; negative for a reversed clamp */
    int16_t late_us[METER_CLAMPS];      /* delay of the current by the clamp, relative to the
                                           voltage's; within one set */
};

struct meter_sums {
    int32_t v, vv;
    struct {
        int32_t i, vi[METER_TAPS]; /* vi[t]: current of a set, voltage of the set t - 1 later */
    } clamp[METER_CLAMPS];
};

/* The samples about the zero crossing at which a window begins or ends. */
struct meter_edge {
    int16_t v[5];               /* [1] is the last one before the crossing, [2] the first after */
    int16_t i[METER_CLAMPS][2]; /* [0] before, [1] after */
    int16_t zero;
    bool crossing; /* false: no crossing came for too long */
};

struct meter_window {
    struct meter_sums sums;
    uint16_t n;     /* sets in the sums */
    uint16_t ahead; /* sets before the first crossing: charged, but in no sum */
    uint32_t lost;  /* conversions that did not take place or are in no sum */
    uint8_t cycles;
    bool broken; /* an edge of a cycle was no crossing */
    struct meter_edge begin, end;
};

struct meter {
    /* of the interrupt */
    int16_t v[5];               /* the last sets; [2] is the one that is added now */
    int16_t i[METER_CLAMPS][3]; /* [1] is the one that is added now */
    struct meter_window windows[2];
    uint8_t filling;             /* which window */
    struct meter_window *window; /* that one */
    uint16_t cycle_n;            /* sets in the running cycle */
    uint16_t shortest, longest;
    uint8_t cycles;
    bool armed, begun, adding;
    int16_t zero, hysteresis;
    /* handed over */
    volatile bool full; /* windows[filling ^ 1] and the two below are the main loop's */
    int16_t next_zero, next_hysteresis;
    /* of the main loop */
    uint32_t rate_mhz, uv_per_count;
    uint32_t per_joule[METER_CLAMPS]; /* 1/256 units of a sum of products, per joule */
    int16_t taps[METER_CLAMPS][METER_TAPS];
    int64_t rest[METER_CLAMPS]; /* 1/2560, what is not a tenth of a joule yet */
    uint64_t energy_dj[METER_CLAMPS];
    bool turned[METER_CLAMPS];
    uint32_t lost; /* conversions, since the start */
};

struct meter_report {
    uint16_t v_rms_cv;      /* 1/100 V */
    uint32_t frequency_mhz; /* 0: no mains */
    int32_t power_mw[METER_CLAMPS];
    uint64_t energy_dj[METER_CLAMPS]; /* 1/10 J since the start; never goes back */
    uint32_t lost;                    /* conversions since the start */
};

/* False when a setting is out of range. */
bool meter_init(struct meter *meter, const struct meter_settings *settings);

/* Of the interrupt: a sample about the middle of the ADC's range, -512 to 511. */
void meter_voltage(struct meter *meter, int16_t v);
void meter_current(struct meter *meter, uint8_t clamp, int16_t i);
/* Conversions that did not take place. */
void meter_lost(struct meter *meter, uint16_t conversions);

/* Of the main loop: true, and a report on it, when a window has ended. */
bool meter_take(struct meter *meter, struct meter_report *report);

#endif
