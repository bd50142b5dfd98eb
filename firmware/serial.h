/*
 * The serial line, 8N1, sending only. Lines go into a ring that the transmit interrupt empties, so
 * nobody ever waits for it. One sender (the main loop); the state is the file's own, because an
 * interrupt gets no argument.
 */
#ifndef FIRMWARE_SERIAL_H
#define FIRMWARE_SERIAL_H

#include <stdbool.h>
#include <stdint.h>

void serial_init(void);
/* All of the text or, when the ring has no room for it, nothing: false. At most 255 bytes. */
bool serial_send(const char *text, uint8_t n);

#endif
