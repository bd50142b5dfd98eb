/* The decoders' structs, one line each; only meter.c, the decoders and their tests include it. */
#ifndef NRG_SENSORS_METER_DECODERS_H
#define NRG_SENSORS_METER_DECODERS_H

#include "sensors/meter/driver.h"

struct nrg_meter_config;

extern const struct nrg_meter_decoder nrg_decoder_emonpi;
extern const struct nrg_meter_decoder nrg_decoder_text;
extern const struct nrg_meter_decoder nrg_decoder_rpict;
extern const struct nrg_meter_decoder nrg_decoder_omegawatt;
extern const struct nrg_meter_decoder nrg_decoder_waveform;

/*
 * Puts the user's layouts into the URI in place of their names (keys layout and layout.N), so
 * that it says all by itself from there on.
 */
int nrg_meter_expand(struct nrg_uri *uri, const struct nrg_meter_config *config,
                     struct nrg_error *err);

#endif
