/*
 * What the files of this folder share: the scan of /sys/class/hwmon (hwmon_scan.c), and the
 * batteries of /sys/class/power_supply (battery.c), which are part of the hwmon driver.
 *
 * Ownership: a scan is the caller's (nrg_hwmon_chips_release); nrg_battery_open, read and close
 * follow driver.h. Errors: negative errno. Threads: as in driver.h.
 */
#ifndef NRG_SENSORS_BOARD_INTERNAL_H
#define NRG_SENSORS_BOARD_INTERNAL_H

#include "sensors/driver.h"

/* --- hwmon_scan.c --- */

struct nrg_hwmon_attr {
    bool energy;     /* energyN_input, uJ counter; else power in uW */
    unsigned number; /* N */
    char file[32];   /* power1_average */
    char label[40];  /* or powerN_oem_info, which ACPI meters have instead; "" when there is none */
    bool dropped;    /* set by hwmon.c, which then removes it */
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

/*
 * Every chip that has power or energy files, with those files and their labels. What they mean is
 * for hwmon.c to decide. Two kinds of chip are left out because other drivers read them: ina3221,
 * and the mirror of a battery.
 */
int nrg_hwmon_scan(const struct nrg_root *root, struct nrg_hwmon_chips *out);
void nrg_hwmon_chips_release(struct nrg_hwmon_chips *chips);

/* Last part of the device link ("1-0040", "0000:03:00.0"), or the hwmon directory's name. */
const char *nrg_hwmon_device_name(const struct nrg_hwmon_chip *chip);

/* The period that file DIR/NAME holds in ms; 0 when it holds none that makes sense. */
int64_t nrg_hwmon_interval_ns(const struct nrg_root *root, const char *dir, const char *name);

/* --- grace.c: the ACPI meters of NVIDIA Grace, all of them one sensor --- */

#define NRG_GRACE_LOCATOR "grace" /* found->locator of the sensor */

/* Its files are named by sockets of Grace: not for hwmon.c. */
bool nrg_grace_is_meter(const struct nrg_hwmon_chip *chip);
int nrg_grace_probe(struct nrg_probe *probe, const struct nrg_hwmon_chips *chips);
int nrg_grace_open(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                   struct nrg_error *err);
int nrg_grace_read(void *state, struct nrg_sink *sink);
void nrg_grace_close(void *state);

/* --- battery.c: one channel, `battery`, what the machine draws while it runs on batteries --- */

#define NRG_BATTERY_LOCATOR "battery" /* found->locator of the sensor */

int nrg_battery_probe(struct nrg_probe *probe);
int nrg_battery_open(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                     struct nrg_error *err);
int nrg_battery_read(void *state, struct nrg_sink *sink);
void nrg_battery_close(void *state);

#endif
