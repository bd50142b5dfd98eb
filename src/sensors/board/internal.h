/*
 * What /sys/class/hwmon holds, as data: every chip that has power or energy files, with those
 * files and their labels. No judgement about what they mean (that is hwmon.c's), except that two
 * kinds of chip are left out because others read them: ina3221, and the mirror of a battery.
 */
#ifndef NRG_SENSORS_HWMON_SCAN_H
#define NRG_SENSORS_HWMON_SCAN_H

#include <stdbool.h>

#include "base/root.h"

struct nrg_hwmon_attr {
    bool energy;     /* energyN_input, uJ counter; else power in uW */
    unsigned number; /* N */
    char file[32];   /* power1_average */
    char label[40];  /* "" when there is none */
    bool dropped;    /* set by hwmon.c: counted by another file */
};

struct nrg_hwmon_chip {
    char name[40];    /* "amdgpu" */
    char hwmon[32];   /* "hwmon3": changes between boots, never shown as a name */
    char dir[96];     /* where the files are: hwmon3 or hwmon3/device */
    char device[160]; /* target of the device link, "" when there is none */
    char label[40];   /* the board's own name for this chip, "" when there is none */
    unsigned index;   /* among chips of this name, by device */
    bool alone;       /* no other chip has this name */
    struct nrg_hwmon_attr *attrs;
    size_t n, cap;
};

struct nrg_hwmon_chips {
    struct nrg_hwmon_chip *items;
    size_t n, cap;
};

int nrg_hwmon_scan(const struct nrg_root *root, struct nrg_hwmon_chips *out);
void nrg_hwmon_chips_release(struct nrg_hwmon_chips *chips);

/* Last part of the device link ("1-0040", "0000:03:00.0"), or the hwmon directory's name. */
const char *nrg_hwmon_device_name(const struct nrg_hwmon_chip *chip);

#endif
