/*
 * How nrg run uses its heap: it runs beside what it measures, for hours, and must stay small.
 * Process-wide and for good, so it is called once, before any thread is started. Can't fail.
 */
#ifndef NRG_CLI_RUN_HEAP_H
#define NRG_CLI_RUN_HEAP_H

void nrg_run_heap_keep_small(void);

#endif
