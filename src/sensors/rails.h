/*
 * Labels of board rails as NVIDIA's boards have them, and which rail contains which. Used by the
 * driver that reads them and by the importer of tegrastats, which prints them.
 *
 * Module inputs contain the other rails, except those of the carrier board, which has an input of
 * its own beside the module's. AGX boards have no input rail: their rails are disjoint, but for the
 * memory's, which hangs on the 5 V one.
 *
 * Pure functions; nothing fails; any thread.
 */
#ifndef NRG_SENSORS_RAILS_H
#define NRG_SENSORS_RAILS_H

#include <stdbool.h>

/* The supply of a whole module; also "VDD_IN-2", as a second board's input is called. */
bool nrg_rail_is_input(const char *label);

/* A rail that is known to share no watts with any but the one that contains it. */
bool nrg_rail_is_disjoint(const char *label);

/* The label of the rail that contains this one, of those that `is_there` knows; "" for none. */
const char *nrg_rail_parent(const char *label, bool (*is_there)(const char *label, const void *arg),
                            const void *arg);

#endif
