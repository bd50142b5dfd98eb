/* A libnrg-recorder.so of another version, which libnrg must refuse (NRG_RECORDER_LIBRARY). */
#include "mark/inprocess.h"

const struct nrg_inprocess nrg_inprocess = {.version = "0.0.1"};
