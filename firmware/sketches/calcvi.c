/*
 * For comparison: the usual way, calcVI(crossings, timeout), written from its description. For one
 * clamp after the other it waits until the voltage is near its middle, then reads voltage and
 * current in a loop until it has seen 20 half waves, and divides the sums by the number of
 * samples. Offsets are followed by a slow filter, the phase is shifted by a straight line through
 * two samples, numbers are floats. Nothing else runs meanwhile, and what the other clamps carry
 * in this time is not seen.
 *
 * Line, payload, calibration and clock are those of the meter (emon.c). Energy is what a program
 * makes of such readings: power times the time since the clamp's last one.
 */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <math.h>

#include "config.h"
#include "line.h"
#include "serial.h"

#define CROSSINGS 20
#define TIMEOUT_S 1
#define TICK_HZ   (CONFIG_CLOCK_HZ / 256.0) /* of timer 1 */
/* The current is read one conversion after the voltage, in a loop of PAIR_US per turn (measured in
 * the simulator). */
#define CONVERSION_US 110.0
#define PAIR_US       366.0

static const float late_us[METER_CLAMPS] = {CONFIG_LATE_US};
static const float ua_per_count[METER_CLAMPS] = {CONFIG_UA_PER_COUNT};

struct calcvi {
    float v_offset, i_offset[METER_CLAMPS];
    float energy_j[METER_CLAMPS];
    uint16_t last[METER_CLAMPS]; /* ticks; a turn of all clamps is shorter than the timer's 1 s */
};

static int16_t read_adc(uint8_t input)
{
    ADMUX = (uint8_t)(1 << REFS0 | input);
    ADCSRA |= 1 << ADSC;
    while (ADCSRA & 1 << ADSC)
        ;
    return (int16_t)ADC;
}

static bool is_late(uint16_t since)
{
    return (uint16_t)(TCNT1 - since) > (uint16_t)(TIMEOUT_S * TICK_HZ);
}

static void wait_for_middle(const struct calcvi *calc)
{
    uint16_t since = TCNT1;
    float size;
    do {
        size = fabsf((float)read_adc(0) - calc->v_offset);
    } while (size > 25 && !is_late(since));
}

struct sums {
    float vv, vi, v_last;
    uint16_t n;
    uint8_t crossed;
    bool above;
};

static void add_pair(struct calcvi *calc, uint8_t c, float phase, struct sums *sums)
{
    float v = (float)read_adc(0), i = (float)read_adc((uint8_t)(c + 1));
    calc->v_offset += (v - calc->v_offset) / 1024;
    calc->i_offset[c] += (i - calc->i_offset[c]) / 1024;
    v -= calc->v_offset;
    i -= calc->i_offset[c];
    float v_last = sums->n ? sums->v_last : v;
    sums->vv += v * v;
    sums->vi += (v_last + phase * (v - v_last)) * i;
    sums->crossed += sums->n && sums->above != (v > 0);
    sums->above = v > 0;
    sums->v_last = v;
    sums->n++;
}

static void measure_clamp(struct calcvi *calc, uint8_t c, struct meter_report *report)
{
    struct sums sums = {.n = 0};
    const float phase = 1 + (float)((CONVERSION_US - late_us[c]) / PAIR_US);
    const float volts = CONFIG_UV_PER_COUNT / 1e6f, amperes = ua_per_count[c] / 1e6f;
    wait_for_middle(calc);
    uint16_t since = TCNT1;
    while (sums.crossed < CROSSINGS && !is_late(since))
        add_pair(calc, c, phase, &sums);
    uint16_t now = TCNT1;
    float power_w = sums.vi / sums.n * volts * amperes;
    calc->energy_j[c] += power_w * (uint16_t)(now - calc->last[c]) / (float)TICK_HZ;
    calc->last[c] = now;
    report->v_rms_cv = (uint16_t)(sqrtf(sums.vv / sums.n) * volts * 100 + .5f);
    report->power_mw[c] = (int32_t)(power_w * 1000);
    report->energy_dj[c] = (uint32_t)(calc->energy_j[c] * 10);
}

int main(void)
{
    struct calcvi calc = {.v_offset = 512, .i_offset = {512, 512, 512}};
    struct meter_report report = {.lost = 0};
    struct line line = {.number = 0};
    char text[LINE_MOST];
    serial_init();
    ADCSRA = 1 << ADEN | 1 << ADPS2 | 1 << ADPS1 | 1 << ADPS0;
    TCCR1A = 0;
    TCCR1B = 1 << CS12;
    sei();
    for (;;) {
        for (uint8_t c = 0; c < METER_CLAMPS; c++) {
            GPIOR0 ^= 1;
            measure_clamp(&calc, c, &report);
        }
        serial_send(text, line_format(&line, CONFIG_FORM, CONFIG_NODE, &report, text));
    }
}
