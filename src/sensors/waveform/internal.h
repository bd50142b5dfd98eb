/*
 * The parts of the waveform meter: wave_keys.c reads its URI, wave_iio.c asks the kernel about an
 * ADC, wave_meter.c turns bytes to readings. Columns count from 1 in URIs and from 0 here.
 */
#ifndef NRG_SENSORS_WAVE_METER_H
#define NRG_SENSORS_WAVE_METER_H

#include "sensors/meter/driver.h"
#include "sensors/meter/line.h"
#include "sensors/waveform/format.h"
#include "sensors/waveform/wav.h"
#include "sensors/waveform/engine.h"

#define NRG_WAVE_NAME 32

enum nrg_wave_source { NRG_WAVE_RAW, NRG_WAVE_WAV, NRG_WAVE_CSV };

/* A column by number, or by a name that is still to be found in a header. */
struct nrg_wave_column {
    char name[NRG_WAVE_NAME]; /* "" for a number */
    unsigned index;
};

struct nrg_wave_keys {
    enum nrg_wave_source source;
    struct nrg_wave_settings set;  /* rate_hz 0: told by the stream */
    struct nrg_sample_frame frame; /* of NRG_WAVE_RAW */
    struct nrg_wave_column v, i[NRG_WAVE_CURRENTS], time;
    bool have_time;  /* CSV: a column of seconds gives the rate */
    double mains_hz; /* that degrees are of */
    double phase_deg[NRG_WAVE_CURRENTS];
    bool by_samples; /* a file: time goes by its samples, not by their arrival */
};

/* 0, or -EINVAL with err. */
int nrg_wave_keys_read(struct nrg_wave_keys *keys, struct nrg_uri *uri, struct nrg_error *err);

/* Fields of n currents; returns how many. */
size_t nrg_wave_fields(struct nrg_meter_field *fields, unsigned n_currents);

/*
 * What the kernel says of /dev/iio:deviceN, as keys of a URI ("format=le:s12/16>>4,...&rate=...
 * &names=voltage0,..."), without those that `argument` has. 0; 1: it is no such device; or -errno
 * with err, which says how to set it up.
 */
int nrg_wave_iio_keys(const struct nrg_root *root, const char *argument, char *keys, size_t size,
                      struct nrg_error *err);

#endif
