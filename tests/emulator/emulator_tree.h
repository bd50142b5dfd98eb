/*
 * The powercap tree that rapl-emulator shows, laid out as the kernel does: real directories under
 * sys/devices/virtual/powercap/intel-rapl, nested, and links to all zones side by side in
 * sys/class/powercap. One thread; release frees mappings but leaves the files.
 */
#ifndef NRG_TESTS_EMULATOR_TREE_H
#define NRG_TESTS_EMULATOR_TREE_H

#include "sensors/virtual/sim_meter.h"

struct emulator_zone {
    char path[512]; /* of energy_uj */
    char *shown;    /* its mapped content */
    double uj_per_raw;
    bool gone;
};

struct emulator_tree {
    size_t n;
    struct emulator_zone zones[NRG_SCENARIO_DOMAINS]; /* as the scenario's domains */
};

int emulator_tree_make(struct emulator_tree *tree, const struct nrg_scenario *scenario,
                       const char *dir, struct nrg_error *err);
/*
 * Shows a value. A regular file can't fail to be read: an errno fault (rc) is shown as text that
 * is not a number, -ENODEV as a file that is no longer there.
 */
void emulator_tree_show(struct emulator_tree *tree, size_t domain, int rc, int64_t raw);
void emulator_tree_release(struct emulator_tree *tree);

#endif
