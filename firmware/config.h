/*
 * The board: clock, rates, inputs and calibration. Change it here, or with
 * `make CONFIG=-DCONFIG_NODE=8`.
 *
 * Defaults are computed from an emonPi's parts, not calibrated: a 3.3 V reference, a voltage
 * transformer and divider of 256.8 V per volt at the pin, clamps of 100 A : 50 mA (2000 turns)
 * with 22 ohm, and the third with 120 ohm for small loads.
 */
#ifndef FIRMWARE_CONFIG_H
#define FIRMWARE_CONFIG_H

/* Which line is sent, see line.h. */
#ifndef CONFIG_FORM
#define CONFIG_FORM LINE_NOTES
#endif
#ifndef CONFIG_NODE
#define CONFIG_NODE 5
#endif
#define CONFIG_BAUD 38400UL

#define CONFIG_CLOCK_HZ 16000000UL

/* The ADC runs at 125 kHz (at most 200 kHz for 10 bits): a triggered conversion takes 13.5 of its
 * cycles, 1728 of the processor's. The rest is the time in which the interrupt must answer. */
#define CONFIG_CONVERSION_CYCLES 2000UL
#define CONFIG_SETS_MHZ          (CONFIG_CLOCK_HZ / CONFIG_CONVERSION_CYCLES * 1000 / 4)

#ifndef CONFIG_CYCLES
#define CONFIG_CYCLES 10 /* of mains per window; a line per window: 200 ms at 50 Hz */
#endif

/* 3.3 V / 1024 is 3222.66 uV at the pin. */
#ifndef CONFIG_UV_PER_COUNT
#define CONFIG_UV_PER_COUNT 827578UL /* * 256.8 */
#endif
#ifndef CONFIG_UA_PER_COUNT
#define CONFIG_UA_PER_COUNT 292969, 292969, 53711 /* * 2000 / 22, * 2000 / 120, in uA */
#endif

/* Microseconds that a clamp delays the current by, relative to the voltage transformer. Negative
 * when the voltage is the later one, as with most small transformers. */
#ifndef CONFIG_LATE_US
#define CONFIG_LATE_US -120, -120, -60
#endif

#endif
