/*
 * Packets as receivers of the OpenEnergyMonitor family print them: "OK 5 105 0 (-28)". The pieces
 * of such a line; emonpi.c knows what they mean. Pure functions on text that ends with a NUL. They
 * return why the text makes no sense, or NULL when it does.
 */
#ifndef NRG_SENSORS_METER_EMONPI_PACKET_H
#define NRG_SENSORS_METER_EMONPI_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NRG_EMON_PAYLOAD 66 /* bytes that the radio sends at most */

struct nrg_emon_packet {
    long node;
    uint8_t bytes[NRG_EMON_PAYLOAD];
    bool spoilt[NRG_EMON_PAYLOAD];
    size_t n, faults; /* faults: spoilt bytes, and other oddities of the line */
    double rssi_dbm;
};

/*
 * The node and the bytes, up to *end. Numbers are separated by blanks; with by_numbers by anything
 * but digits, for a line where noise hit a blank.
 */
const char *nrg_emon_decimal(const char *at, bool by_numbers, struct nrg_emon_packet *packet,
                             const char **end);
const char *nrg_emon_hex(const char *at, struct nrg_emon_packet *packet, const char **end);

/* The text after the bytes: signal strength and acknowledgement. False: not understood. */
bool nrg_emon_tail(const char *at, double *rssi_dbm);

/* The text after the group, if the line names one. */
const char *nrg_emon_skip_group(const char *at);

#endif
