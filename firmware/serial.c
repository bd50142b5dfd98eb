/* The serial line of an ATmega328P, see serial.h. The ring has room for a line of any form, which
 * is sent after 40 ms; lines are 200 ms apart. The sender writes `head`, the interrupt `tail`, and
 * both wrap at 256 by themselves. */
#include "serial.h"

#include <avr/interrupt.h>
#include <avr/io.h>

#include "config.h"

static char ring[256];
static volatile uint8_t head, tail;

void serial_init(void)
{
    UBRR0 = (uint16_t)((CONFIG_CLOCK_HZ / 8 / CONFIG_BAUD - 1) / 2);
    UCSR0C = 1 << UCSZ01 | 1 << UCSZ00;
    UCSR0B = 1 << TXEN0;
}

bool serial_send(const char *text, uint8_t n)
{
    uint8_t at = head;
    if ((uint8_t)(tail - at - 1) < n)
        return false;
    while (n--)
        ring[at++] = *text++;
    __asm__ volatile("" ::: "memory"); /* the bytes before the index that shows them */
    head = at;
    UCSR0B = 1 << TXEN0 | 1 << UDRIE0;
    return true;
}

ISR(USART_UDRE_vect)
{
    uint8_t at = tail;
    if (at == head) {
        UCSR0B = 1 << TXEN0;
        return;
    }
    UDR0 = (uint8_t)ring[at];
    tail = (uint8_t)(at + 1);
}
