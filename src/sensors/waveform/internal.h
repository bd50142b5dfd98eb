/*
 * The parts of the waveform meter, private to waveform/: keys.c reads its URI, iio.c asks the
 * kernel about an ADC, meter.c turns bytes to readings. Columns count from 1 in URIs and from 0
 * here. Plain data, nothing to release; errors are a negative errno with a reason; any thread.
 */
#ifndef NRG_SENSORS_WAVEFORM_INTERNAL_H
#define NRG_SENSORS_WAVEFORM_INTERNAL_H

#include "sensors/meter/driver.h"
#include "sensors/meter/line.h"
#include "sensors/waveform/engine.h"
#include "sensors/waveform/format.h"
#include "sensors/waveform/wav.h"

#define NRG_WAVE_NAME 32

enum nrg_wave_source { NRG_WAVE_RAW, NRG_WAVE_WAV, NRG_WAVE_CSV };

/* A column by its number, or by a name that must still be found in a header. */
struct nrg_wave_column {
    char name[NRG_WAVE_NAME]; /* "" for a number */
    unsigned index;
};

struct nrg_wave_keys {
    enum nrg_wave_source source;
    struct nrg_wave_settings set; /* rate_hz 0: the stream tells it */
    unsigned channels;            /* of NRG_WAVE_RAW, as is the frame */
    struct nrg_sample_frame frame;
    struct nrg_wave_column v, i[NRG_WAVE_CURRENTS], time;
    bool have_time;  /* CSV: a column of seconds gives the rate */
    double mains_hz; /* converts degrees to time */
    double phase_deg[NRG_WAVE_CURRENTS];
    bool by_samples; /* a file: time follows its samples, not their arrival */
};

/* 0, or -EINVAL with err. */
int nrg_wave_keys_read(struct nrg_wave_keys *keys, struct nrg_uri *uri, struct nrg_error *err);

/* Fills the fields for n currents; returns how many there are. */
size_t nrg_wave_fields(struct nrg_meter_field *fields, unsigned n_currents);

/*
 * What the kernel says of /dev/iio:deviceN, as keys of a URI ("format=le:s12/16>>4,...&rate=...
 * &names=voltage0,..."), without those that `uri` has. 0; 1: the place is not such a device; or
 * -errno with err, which says how to set it up.
 */
int nrg_wave_iio_keys(const struct nrg_root *root, struct nrg_uri *uri, char *keys, size_t size,
                      struct nrg_error *err);

#endif
