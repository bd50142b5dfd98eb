/* Opens CSV logs for replay. See replay_source.h for ownership, errors and threads. */
#ifndef NRG_SENSORS_VIRTUAL_REPLAY_CSV_H
#define NRG_SENSORS_VIRTUAL_REPLAY_CSV_H

#include "sensors/virtual/replay_source.h"

/* A CSV file (docs/simulate.md) of the real file system. err->offset is the line. */
int nrg_replay_csv_open(struct nrg_replay_source **source, const char *path, struct nrg_error *err);

#endif
