/*
 * Sampling on a grid, see sampler.h. Timer 1 runs freely; each match of compare unit B starts a
 * conversion. The flag of the match must be cleared before the next match can start one, and only
 * the ADC's interrupt clears it, after it has chosen the next input: a late interrupt loses
 * conversions but can't mix up inputs. What was lost is seen from the timer and counted, up to
 * 65536 cycles (4 ms) at a time.
 */
#include "sampler.h"

#include <avr/interrupt.h>
#include <avr/io.h>

#include "config.h"

#define REFERENCE (1 << REFS0) /* AVcc */
#define PRESCALER (1 << ADPS2 | 1 << ADPS1 | 1 << ADPS0)
#define MIDDLE    512

static struct meter *fed;
static uint8_t slot;

/* The first conversion takes twice as long: it is made here, and thrown away. */
static void start_adc(void)
{
    ADMUX = REFERENCE;
    ADCSRA = 1 << ADEN | 1 << ADSC | PRESCALER;
    while (ADCSRA & 1 << ADSC)
        ;
    ADCSRB = 1 << ADTS2 | 1 << ADTS0; /* timer 1, compare match B */
    ADCSRA = 1 << ADEN | 1 << ADATE | 1 << ADIF | 1 << ADIE | PRESCALER;
}

void sampler_start(struct meter *meter)
{
    fed = meter;
    slot = 0;
    DIDR0 = 0x0f; /* no digital input on the pins of the ADC */
    TCCR1B = TCCR1A = 0;
    TCNT1 = 0;
    OCR1B = CONFIG_CONVERSION_CYCLES;
    TIFR1 = 1 << OCF1B;
    start_adc();
    TCCR1B = 1 << CS10;
}

/* The next match. If its time has passed and it did not come, the one after it. */
static void set_next_trigger(void)
{
    uint16_t next = (uint16_t)(OCR1B + CONFIG_CONVERSION_CYCLES), lost = 0;
    TIFR1 = 1 << OCF1B;
    OCR1B = next;
    while ((int16_t)(TCNT1 - next) >= 0 && !(TIFR1 & 1 << OCF1B)) {
        next = (uint16_t)(next + CONFIG_CONVERSION_CYCLES);
        OCR1B = next;
        lost++;
    }
    if (lost)
        meter_lost(fed, lost);
}

ISR(ADC_vect)
{
    int16_t sample = (int16_t)(ADC - MIDDLE);
    uint8_t taken = slot;
    slot = taken == METER_CLAMPS ? 0 : (uint8_t)(taken + 1);
    ADMUX = (uint8_t)(REFERENCE | slot);
    set_next_trigger();
    if (taken)
        meter_current(fed, (uint8_t)(taken - 1), sample);
    else
        meter_voltage(fed, sample);
}
