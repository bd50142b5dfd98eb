/*
 * Lines of text, see line.h. Numbers are written by hand: printf would be the largest part of the
 * program. Whole watts are what the payload has room for; what rounding leaves is carried to the
 * next line, so that the mean over many lines is right to less than a watt.
 */
#include "line.h"

#include <string.h>

#define NO_TEMPERATURE 3000 /* 1/10 degree */
#define MW_PER_W       1000
#define DJ_PER_WH      36000

static char *put_text(char *at, const char *text)
{
    while (*text)
        *at++ = *text++;
    return at;
}

/* A byte: most numbers of a packet, and dividing 8 bits is 20 times faster than 32. */
static char *put_byte(char *at, uint8_t byte)
{
    if (byte >= 100)
        *at++ = (char)('0' + byte / 100);
    if (byte >= 10)
        *at++ = (char)('0' + byte / 10 % 10);
    *at++ = (char)('0' + byte % 10);
    return at;
}

static char *put_number(char *at, uint32_t number)
{
    char digits[10];
    uint8_t n = 0;
    do {
        digits[n++] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    while (n)
        *at++ = digits[--n];
    return at;
}

/* With one or two decimals: unit is 10 or 100. */
static char *put_decimal(char *at, uint32_t number, uint8_t unit)
{
    uint8_t rest = (uint8_t)(number % unit);
    at = put_number(at, number / unit);
    *at++ = '.';
    if (unit == 100)
        *at++ = (char)('0' + rest / 10);
    *at++ = (char)('0' + rest % 10);
    return at;
}

static char *put_key(char *at, const char *key, uint8_t number)
{
    at = put_text(at, key);
    *at++ = (char)('0' + number);
    *at++ = ':';
    return at;
}

static uint8_t *pack_value(uint8_t *at, uint32_t value, uint8_t size)
{
    for (; size; size--, value >>= 8)
        *at++ = (uint8_t)value;
    return at;
}

static int16_t whole_watts(struct line *line, const struct meter_report *report, uint8_t c)
{
    int32_t power_mw = report->power_mw[c] + line->rest_mw[c];
    int32_t half = power_mw < 0 ? -MW_PER_W / 2 : MW_PER_W / 2;
    int32_t watts = (power_mw + half) / MW_PER_W;
    if (watts > INT16_MAX || watts < INT16_MIN) {
        line->rest_mw[c] = 0;
        return watts < 0 ? INT16_MIN : INT16_MAX;
    }
    line->rest_mw[c] = power_mw - watts * MW_PER_W;
    return (int16_t)watts;
}

static uint8_t pack_report(struct line *line, enum line_form form,
                           const struct meter_report *report, uint8_t *bytes)
{
    uint8_t *at = bytes;
    int16_t watts[METER_CLAMPS];
    for (uint8_t c = 0; c < METER_CLAMPS; c++)
        watts[c] = whole_watts(line, report, c);
    if (form == LINE_EMONPI)
        watts[2] = (int16_t)(watts[0] + watts[1]);
    for (uint8_t c = 0; c < METER_CLAMPS; c++)
        at = pack_value(at, (uint32_t)watts[c], 2);
    at = pack_value(at, report->v_rms_cv, 2);
    if (form == LINE_EMONPI) {
        for (uint8_t t = 0; t < 6; t++)
            at = pack_value(at, NO_TEMPERATURE, 2);
        at = pack_value(at, 0, 4);
    }
    for (uint8_t c = 0; form == LINE_JOULES && c < METER_CLAMPS; c++)
        at = pack_value(at, (uint32_t)report->energy_dj[c], 4);
    return (uint8_t)(at - bytes);
}

static char *put_packet(struct line *line, enum line_form form, uint8_t node,
                        const struct meter_report *report, char *at)
{
    uint8_t bytes[24], n = pack_report(line, form, report, bytes);
    if (report->lost != line->lost) {
        at = put_text(at, "lost ");
        at = put_number(at, report->lost - line->lost);
        at = put_text(at, " conversions\r\n");
    }
    at = put_text(at, "OK ");
    at = put_byte(at, node);
    for (uint8_t k = 0; k < n; k++) {
        *at++ = ' ';
        at = put_byte(at, bytes[k]);
    }
    return put_text(at, " (-0)");
}

static char *put_message(struct line *line, const struct meter_report *report, char *at)
{
    at = put_text(at, "MSG:");
    at = put_number(at, ++line->number);
    at = put_text(at, ",Vrms:");
    at = put_decimal(at, report->v_rms_cv, 100);
    for (uint8_t c = 0; c < METER_CLAMPS; c++) {
        int32_t power_mw = report->power_mw[c];
        uint32_t size_mw = (uint32_t)(power_mw < 0 ? -power_mw : power_mw);
        at = put_key(at, ",P", (uint8_t)(c + 1));
        if (power_mw < 0)
            *at++ = '-';
        at = put_decimal(at, (size_mw + 50) / 100, 10);
    }
    for (uint8_t c = 0; c < METER_CLAMPS; c++)
        at = put_number(put_key(at, ",E", (uint8_t)(c + 1)),
                        (uint32_t)(report->energy_dj[c] / DJ_PER_WH));
    at = put_text(at, ",lost:");
    return put_number(at, report->lost);
}

uint8_t line_format(struct line *line, enum line_form form, uint8_t node,
                    const struct meter_report *report, char *text)
{
    char *at = form == LINE_MSG ? put_message(line, report, text)
                                : put_packet(line, form, node, report, text);
    line->lost = report->lost;
    return (uint8_t)(put_text(at, "\r\n") - text);
}
