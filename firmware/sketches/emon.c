/*
 * The meter: a line per window of mains cycles, and asleep in between. A program that has more to
 * do puts it into the loop: it may take up to 4 s a turn without losing a sample.
 *
 * GPIOR0, a register without a pin, changes with every turn of the loop: a simulator or a debugger
 * sees from it how long a turn takes.
 */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <util/delay.h>

#include "config.h"
#include "line.h"
#include "sampler.h"
#include "serial.h"

static const struct meter_settings settings = {
    .rate_mhz = CONFIG_SETS_MHZ,
    .cycles = CONFIG_CYCLES,
    .uv_per_count = CONFIG_UV_PER_COUNT,
    .ua_per_count = {CONFIG_UA_PER_COUNT},
    .late_us = {CONFIG_LATE_US},
};

static struct meter meter;

/* For tests: a loop that is busy with other things, or keeps interrupts off. */
static void be_busy(void)
{
#ifdef CONFIG_BUSY_MS
    _delay_ms(CONFIG_BUSY_MS);
#endif
#ifdef CONFIG_DEAF_US
    cli();
    _delay_us(CONFIG_DEAF_US);
    sei();
#endif
}

static void send_report(struct line *line, const struct meter_report *report)
{
    char text[LINE_MOST];
    serial_send(text, line_format(line, CONFIG_FORM, CONFIG_NODE, report, text));
}

int main(void)
{
    struct line line = {.number = 0};
    struct meter_report report;
    serial_init();
    if (!meter_init(&meter, &settings)) {
        static const char text[] = "config.h: a setting is out of range\r\n";
        sei();
        serial_send(text, sizeof text - 1);
        for (;;)
            sleep_mode();
    }
    sampler_start(&meter);
    set_sleep_mode(SLEEP_MODE_IDLE);
    sei();
    for (bool due = false;;) {
        GPIOR0 ^= 1;
        if (meter_take(&meter, &report)) {
            due = true;
        } else if (due) {
            send_report(&line, &report);
            be_busy();
            due = false;
        } else {
            sleep_mode();
        }
    }
}
