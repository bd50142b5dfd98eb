/*
 * The side of spans that lives in the marked program: the functions of nrg.h that begin, end and
 * count, on top of a ring per thread (span_ring.h). These are for the recorder in the same
 * process and for tests; the program's own attach is done when the library is loaded.
 *
 * Nothing here may harm the program: every failure means "no spans". Segments are never unmapped,
 * because another thread may be writing to one at this moment.
 */
#ifndef NRG_RECORD_SPAN_CLIENT_H
#define NRG_RECORD_SPAN_CLIENT_H

#include "mark/ring.h"

/* Attaches as the variable NRG_SPANS says. 0 or -errno; -EBUSY when it is attached already. */
int nrg_span_client_open(const char *variable);

/* Marks go to this mapping of NRG_RING_BYTES from now on; -EBUSY when they go elsewhere. */
int nrg_span_client_attach(struct nrg_ring_header *segment);
/* They go nowhere from now on. */
void nrg_span_client_detach(void);

#endif
