/*
 * An ATmega328P at 16 MHz in simavr with mains on its ADC: one sketch in one scenario.
 *
 * board_open loads the program; board_run runs it up to a time of the simulation. Bytes of the
 * serial line go to the caller's function, at their time. What the processor did is counted on
 * the way. One board per process (simavr keeps global state). 0, or -1 after a message on stderr.
 */
#ifndef FIRMWARE_SIM_BOARD_H
#define FIRMWARE_SIM_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "mains.h"

struct avr_t;
struct avr_irq_t;

struct board_count {
    uint64_t cycles, asleep;            /* of the processor */
    uint64_t conversions, adc_cycles;   /* of the ADC's interrupt */
    uint64_t adc_longest, longest_pass; /* cycles; a pass is a turn of the main loop */
    unsigned stack_bytes;               /* at its deepest */
    uint64_t longest_gap, shortest_gap; /* cycles between two conversions */
};

struct board {
    const struct mains_scenario *mains;
    void (*byte)(void *arg, uint8_t byte);
    void *arg;
    struct board_count count;
    struct mains_truth truth, crossings[4], passes[4]; /* the latest is [0] */
    /* of the board's own */
    struct avr_t *avr;
    struct avr_irq_t *adc;
    bool trigger;
    uint64_t adc_since, pass_since, conversion_since, random;
};

int board_open(struct board *board, const char *elf, const struct mains_scenario *mains);
void board_run(struct board *board, double until_s);
double board_time_s(const struct board *board);

#endif
