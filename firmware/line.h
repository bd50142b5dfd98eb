/*
 * A report as the line of text that receivers of the OpenEnergyMonitor family print and that
 * nrg's emonpi driver reads (docs/meters.md). Pure functions on the caller's memory; no errors.
 *
 * Payloads are packed little-endian structs, printed as "OK node b0 b1 ...":
 *
 *   LINE_NOTES   int16 power1, power2, power3, Vrms (1/100 V)                layout=notes
 *   LINE_EMONPI  int16 power1, power2, power1_plus_2, Vrms, six temperatures
 *                (300.0 degrees: not there), uint32 pulses (0)               layout=emonpi
 *   LINE_JOULES  as LINE_NOTES, then uint32 E1, E2, E3 in 1/10 J             layout=power1,power2,
 *                power3,Vrms,E1:uint32*0.1J,E2:uint32*0.1J,E3:uint32*0.1J
 *   LINE_MSG     "MSG:n,Vrms:230.12,P1:104.2,...,E1:12,...,lost:0", E in Wh  layout=msg
 */
#ifndef FIRMWARE_LINE_H
#define FIRMWARE_LINE_H

#include "meter.h"

#define LINE_MOST 144

enum line_form { LINE_NOTES, LINE_EMONPI, LINE_JOULES, LINE_MSG };

struct line {
    int32_t rest_mw[METER_CLAMPS]; /* what rounding to watts left, for the next line */
    uint32_t number;
    uint32_t lost; /* as last told */
};

/* Writes the line with "\r\n" and returns its length, at most LINE_MOST. A text line goes before a
 * packet when more conversions were lost since the last one. */
uint8_t line_format(struct line *line, enum line_form form, uint8_t node,
                    const struct meter_report *report, char *text);

#endif
