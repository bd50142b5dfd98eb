/*
 * The span client inside the marked program: the functions of nrg.h that begin, end and count, on
 * top of a ring buffer per thread (mark/ring.h). The functions here are for the recorder in the
 * same process and for tests; a program that nrg started attaches when it loads the library.
 *
 * Nothing here may harm the program: every failure means "no spans". Errors are negative errno. Any
 * thread. A segment is the caller's, but stays mapped for good, because another thread may be
 * writing to it at any moment.
 */
#ifndef NRG_MARK_CLIENT_H
#define NRG_MARK_CLIENT_H

#include "mark/ring.h"

/*
 * From now on marks go to this mapping of NRG_RING_BYTES. -EBUSY when they go to another recorder,
 * or when the names of this process can't keep their numbers there (mark/internal.h).
 */
int nrg_span_client_attach(struct nrg_ring_header *segment);
/* From now on marks are dropped. */
void nrg_span_client_detach(void);

#endif
