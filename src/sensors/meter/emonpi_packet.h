/*
 * Packets as receivers of the OpenEnergyMonitor family print them: "OK 5 105 0 (-28)". The pieces
 * of such a line; what they mean is emonpi.c's. Pure functions on text that ends with a NUL; a
 * reason is returned where the text makes no sense, NULL where it does.
 */
#ifndef NRG_SENSORS_EMONPI_PACKET_H
#define NRG_SENSORS_EMONPI_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NRG_EMON_PAYLOAD 66 /* bytes that the radio sends at most */

struct nrg_emon_packet {
    long node;
    uint8_t bytes[NRG_EMON_PAYLOAD];
    bool spoilt[NRG_EMON_PAYLOAD];
    size_t n, faults; /* spoilt bytes, and what else was odd */
    double rssi_dbm;
};

/*
 * The node and the bytes, up to *end. Numbers are separated by blanks, or with by_numbers by
 * whatever is no number, for a line on which noise hit a blank.
 */
const char *nrg_emon_decimal(const char *at, bool by_numbers, struct nrg_emon_packet *packet,
                             const char **end);
const char *nrg_emon_hex(const char *at, struct nrg_emon_packet *packet, const char **end);

/* What stands behind the bytes. False when it is not understood. */
bool nrg_emon_tail(const char *at, double *rssi_dbm);

/* Behind a group, where there is one. */
const char *nrg_emon_skip_group(const char *at);

#endif
