/*
 * A recording as a source for the replay driver: nrg_context.open_recording points here. See
 * sensors/virtual/replay_source.h for the contract, which says who closes the source.
 */
#ifndef NRG_RECORD_READ_REPLAY_H
#define NRG_RECORD_READ_REPLAY_H

#include "base/error.h"

struct nrg_replay_source;

int nrg_replay_recording_open(struct nrg_replay_source **source, const char *path,
                              struct nrg_error *err);

#endif
