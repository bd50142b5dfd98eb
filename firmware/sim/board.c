/*
 * The board, see board.h. Three things that simavr 1.6 does not do by itself:
 *
 * - It knows of the ADC's triggers only that of the ADC itself, so the flag of timer 1's compare
 *   unit B is wired to the ADC here: its rising edge starts a conversion, as in the chip.
 * - Inputs are in whole millivolts and scaled by 1023: the count is computed here, in the way of a
 *   10-bit ADC, and handed over as the voltage that gives that count.
 * - A sleeping processor makes it sleep in real time, too; here it just goes on.
 */
#include "board.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <simavr/avr_adc.h>
#include <simavr/avr_timer.h>
#include <simavr/avr_uart.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>

#include "config.h"

#define VECTOR_COMPARE_1B 12
#define VECTOR_ADC        21
#define ADDRESS_GPIOR0    0x3e
#define ADDRESS_SP        0x5d
#define RAM_END           0x8ff
#define REFERENCE_MV      5000
#define TRUTH_KEPT        4

static const double ua_per_count[MAINS_CLAMPS] = {CONFIG_UA_PER_COUNT};
static const double late_us[MAINS_CLAMPS] = {CONFIG_LATE_US};

static double time_of(uint64_t cycles)
{
    return (double)cycles / CONFIG_CLOCK_HZ;
}

double board_time_s(const struct board *board)
{
    return time_of(board->avr->cycle);
}

/* About normal: the sum of four uniform ones has a variance of 4/12. */
static double random_normal(struct board *board)
{
    double sum = 0;
    for (int k = 0; k < 4; k++) {
        board->random = board->random * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(board->random >> 11) / 9007199254740992.0 - .5;
    }
    return sum * sqrt(3);
}

/* What the ADC makes of an input now; a clamp shows the current of a little earlier. */
static unsigned count_of(struct board *board, unsigned input)
{
    double t_s = board_time_s(board), counts;
    if (input == 0) {
        counts = mains_value(board->mains, t_s).v / (CONFIG_UV_PER_COUNT * 1e-6);
    } else {
        unsigned c = input - 1;
        double i = mains_value(board->mains, t_s - late_us[c] * 1e-6).i[c];
        counts = i / (ua_per_count[c] * 1e-6);
    }
    counts += 512 + board->mains->bias + board->mains->drift * t_s;
    counts += board->mains->noise * random_normal(board);
    return counts < 0 ? 0 : counts > 1023 ? 1023 : (unsigned)(counts + .5);
}

static void on_conversion(struct avr_irq_t *irq, uint32_t value, void *arg)
{
    struct board *board = arg;
    union {
        uint32_t value;
        avr_adc_mux_t mux;
    } from = {.value = value};
    unsigned input = from.mux.src;
    uint64_t now = board->avr->cycle, gap = now - board->conversion_since;
    (void)irq;
    if (input > MAINS_CLAMPS)
        return;
    if (!board->count.conversions) /* nothing before this could be measured */
        board->truth.t_s = board->truth.begin_s = board_time_s(board);
    unsigned millivolts = (count_of(board, input) * REFERENCE_MV + 1022) / 1023;
    avr_raise_irq(board->adc + ADC_IRQ_ADC0 + input, millivolts);
    if (board->count.conversions > 1 && gap > board->count.longest_gap)
        board->count.longest_gap = gap;
    if (board->count.conversions > 1 && gap < board->count.shortest_gap)
        board->count.shortest_gap = gap;
    board->conversion_since = now;
    board->count.conversions++;
}

static void on_compare(struct avr_irq_t *irq, uint32_t value, void *arg)
{
    struct board *board = arg;
    (void)irq;
    if (value && !board->trigger)
        avr_raise_irq(board->adc + ADC_IRQ_IN_TRIGGER, 1);
    board->trigger = value;
}

static void on_adc_interrupt(struct avr_irq_t *irq, uint32_t running, void *arg)
{
    struct board *board = arg;
    (void)irq;
    if (running) {
        board->adc_since = board->avr->cycle;
        return;
    }
    uint64_t cycles = board->avr->cycle - board->adc_since;
    board->count.adc_cycles += cycles;
    if (cycles > board->count.adc_longest)
        board->count.adc_longest = cycles;
}

static void keep_truth(struct mains_truth *kept, const struct mains_truth *truth)
{
    memmove(kept + 1, kept, (TRUTH_KEPT - 1) * sizeof *kept);
    kept[0] = *truth;
}

static void follow_truth(struct board *board)
{
    struct mains_truth crossing;
    if (board->count.conversions &&
        mains_advance(board->mains, &board->truth, board_time_s(board), &crossing))
        keep_truth(board->crossings, &crossing);
}

static void on_pass(struct avr_t *avr, avr_io_addr_t address, uint8_t value, void *arg)
{
    struct board *board = arg;
    uint64_t cycles = avr->cycle - board->pass_since;
    avr->data[address] = value;
    if (board->pass_since && cycles > board->count.longest_pass)
        board->count.longest_pass = cycles;
    board->pass_since = avr->cycle;
    follow_truth(board);
    keep_truth(board->passes, &board->truth);
}

static void on_byte(struct avr_irq_t *irq, uint32_t value, void *arg)
{
    struct board *board = arg;
    (void)irq;
    follow_truth(board);
    board->byte(board->arg, (uint8_t)value);
}

static void on_sleep(struct avr_t *avr, avr_cycle_count_t cycles)
{
    struct board *board = avr->custom.data;
    board->count.asleep += cycles + 1; /* simavr adds the one */
}

static void on_log(struct avr_t *avr, const int level, const char *format, va_list args)
{
    (void)avr;
    if (level <= LOG_ERROR)
        vfprintf(stderr, format, args);
}

static void wire_pins(struct board *board)
{
    struct avr_t *avr = board->avr;
    uint32_t flags = 0;
    avr_ioctl(avr, AVR_IOCTL_UART_SET_FLAGS('0'), &flags);
    board->adc = avr_io_getirq(avr, AVR_IOCTL_ADC_GETIRQ, 0);
    avr_irq_register_notify(board->adc + ADC_IRQ_OUT_TRIGGER, on_conversion, board);
    avr_irq_register_notify(avr_get_interrupt_irq(avr, VECTOR_COMPARE_1B) + AVR_INT_IRQ_PENDING,
                            on_compare, board);
    avr_irq_register_notify(avr_get_interrupt_irq(avr, VECTOR_ADC) + AVR_INT_IRQ_RUNNING,
                            on_adc_interrupt, board);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUTPUT),
                            on_byte, board);
    avr_register_io_write(avr, ADDRESS_GPIOR0, on_pass, board);
}

int board_open(struct board *board, const char *elf, const struct mains_scenario *mains)
{
    elf_firmware_t firmware;
    memset(&firmware, 0, sizeof firmware);
    avr_global_logger_set(on_log);
    if (elf_read_firmware(elf, &firmware) || !firmware.flashsize) {
        fprintf(stderr, "emon-sim: %s can't be read, or is not an ELF file of an AVR\n", elf);
        return -1;
    }
    struct avr_t *avr = avr_make_mcu_by_name("atmega328p");
    if (!avr || avr_init(avr)) {
        fprintf(stderr, "emon-sim: simavr has no ATmega328P\n");
        return -1;
    }
    firmware.frequency = CONFIG_CLOCK_HZ;
    firmware.vcc = firmware.avcc = firmware.aref = REFERENCE_MV;
    avr_load_firmware(avr, &firmware);
    avr->sleep = on_sleep;
    avr->custom.data = board;
    board->avr = avr;
    board->mains = mains;
    board->random = 1;
    board->count.shortest_gap = UINT64_MAX;
    wire_pins(board);
    return 0;
}

void board_run(struct board *board, double until_s)
{
    struct avr_t *avr = board->avr;
    uint64_t until = (uint64_t)(until_s * CONFIG_CLOCK_HZ);
    while (avr->cycle < until) {
        avr_run(avr);
        unsigned sp = avr->data[ADDRESS_SP] | (unsigned)avr->data[ADDRESS_SP + 1] << 8;
        if (board->count.conversions && RAM_END - sp > board->count.stack_bytes)
            board->count.stack_bytes = RAM_END - sp;
    }
    board->count.cycles = avr->cycle;
}
