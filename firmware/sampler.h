/*
 * The ADC, triggered by timer 1: voltage, clamp 1, clamp 2, clamp 3 (ADC0 to ADC3) in turn, every
 * CONFIG_CONVERSION_CYCLES, without the processor's help. The interrupt feeds a meter.
 *
 * One sampler, because there is one ADC; the meter must outlive it. Interrupts must be on.
 */
#ifndef FIRMWARE_SAMPLER_H
#define FIRMWARE_SAMPLER_H

#include "meter.h"

void sampler_start(struct meter *meter);

#endif
