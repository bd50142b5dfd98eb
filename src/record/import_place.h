/*
 * Places the spans of a layer file on the clock of a recording: by its clock pairs when the file
 * has dates, by an offset that is given, or by one that is found (align.h). Inside src/record.
 */
#ifndef NRG_RECORD_IMPORT_PLACE_H
#define NRG_RECORD_IMPORT_PLACE_H

#include "import/layers/read.h"
#include "record/read/recording.h"

/*
 * Moves the spans of im->sink to the recording's clock and fills placed, offset and uncertainty of
 * im->file. recording NULL: there is no power, dates stay dates. Fails when it can't be known where
 * the file belongs.
 */
int nrg_import_place(struct nrg_layer_import *im, struct nrg_recording *recording,
                     struct nrg_error *err);

#endif
