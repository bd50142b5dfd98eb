/*
 * A channel: one stream of a sensor, described so completely that a reader of a recording needs
 * no knowledge of the driver that made it. Plain data, copied by value; nothing fails; any thread.
 *
 * Values cross files as raw int64 with a scale: value in SI unit = raw * scale. Counters keep
 * the hardware's raw count and its wrap range; a reader unwraps them (integrate.h). A missing
 * reading is NRG_MISSING, never 0.
 *
 * The channel tree says what covers what: `parent` names the channel whose energy contains this
 * one's (core-0 in package-0). A *wide* channel (psys, machine, wall, battery) contains parts
 * that no other channel sees: totals add the parts and show the widest beside them as a check
 * (total.h, the one place that decides what is summed).
 */
#ifndef NRG_SENSORS_CHANNEL_H
#define NRG_SENSORS_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nrg/nrg.h> /* enum nrg_provenance */

#define NRG_MISSING INT64_MIN

enum nrg_quantity {
    NRG_ENERGY,      /* J */
    NRG_POWER,       /* W */
    NRG_VOLTAGE,     /* V */
    NRG_CURRENT,     /* A */
    NRG_UTILISATION, /* 0..1 */
    NRG_BYTES,       /* bytes */
    NRG_CLOCK,       /* Hz */
    NRG_TEMPERATURE, /* degree Celsius */
    NRG_SECONDS,     /* s (CPU time, stall time) */
    NRG_APPARENT,    /* VA: apparent power of mains */
    NRG_COUNT,       /* of things: tokens, requests */
    NRG_QUANTITIES
};

enum nrg_kind { NRG_COUNTER, NRG_GAUGE };

struct nrg_channel {
    char name[48];    /* fixed domain names: package-0, core-0, dram-0, psys, gpu-0, machine, ... */
    char parent[48];  /* name of the channel that contains this one, "" for none */
    char source[128]; /* file or call the value comes from */
    enum nrg_quantity quantity;
    enum nrg_kind kind;
    enum nrg_provenance provenance;
    unsigned group;    /* channels of one group are read together and share time stamps */
    bool wide;         /* contains parts that no other channel sees (psys, machine, wall) */
    bool covers_cpu;   /* includes the processors: no estimate is needed beside it */
    double scale;      /* SI value = raw * scale */
    uint64_t wrap;     /* counter range in raw units: it goes 0..wrap-1; 0: 64 bit or unknown */
    int64_t update_ns; /* native update period, 0: unknown */
    int64_t window_ns; /* of a gauge: how long the time before an update is that the value is the
                          mean of; less than update_ns: the rest is never seen; more: a running
                          mean; 0: unknown */
    int64_t lag_ns;    /* time constant of the sensor's own averaging, 0: none or unknown */
    double resolution; /* smallest step in SI units, 0: unknown */
    double limit_w;    /* power that the domain can't exceed: bounds how often a counter can have
                          wrapped between two reads; 0: unknown */
    double error_low;  /* relative error band: truth is in value*(1-low) .. value*(1+high) */
    double error_high;
};

/* NAME.low, NAME.high and NAME.idle accompany an estimate, NAME.polled says a GPU's power another
 * way. */
#define NRG_LOW_SUFFIX    ".low"
#define NRG_HIGH_SUFFIX   ".high"
#define NRG_IDLE_SUFFIX   ".idle"
#define NRG_POLLED_SUFFIX ".polled"

/* Idle energy of the processors' domains, where a source knows it. */
#define NRG_IDLE_CHANNEL "machine" NRG_IDLE_SUFFIX

/* True for all of these: they are not domains. */
bool nrg_channel_is_companion(const struct nrg_channel *channel);

/* True for a gauge that is known to show means of a longer time than there is between two. */
bool nrg_channel_is_running_mean(const struct nrg_channel *channel);

const char *nrg_quantity_name(enum nrg_quantity q);   /* "energy" */
const char *nrg_quantity_unit(enum nrg_quantity q);   /* "J" */
const char *nrg_kind_name(enum nrg_kind kind);        /* "counter" */
const char *nrg_provenance_name(enum nrg_provenance); /* "measured" */

/* Inverse of the names above; -1 when unknown. */
int nrg_quantity_from_name(const char *name);
int nrg_kind_from_name(const char *name);
int nrg_provenance_from_name(const char *name);

#endif
