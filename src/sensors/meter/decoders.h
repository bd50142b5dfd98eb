/* The decoders' structs; only meter/probe.c, the decoders and their tests include it. */
#ifndef NRG_SENSORS_METER_DECODERS_H
#define NRG_SENSORS_METER_DECODERS_H

#include "sensors/meter/driver.h"

extern const struct nrg_meter_decoder nrg_decoder_emonpi;
extern const struct nrg_meter_decoder nrg_decoder_text;
extern const struct nrg_meter_decoder nrg_decoder_rpict;
extern const struct nrg_meter_decoder nrg_decoder_omegawatt;
extern const struct nrg_meter_decoder nrg_decoder_waveform;

#endif
