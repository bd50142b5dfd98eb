/*
 * A stand-in for CUPTI, for machines without a GPU: it behaves as the documents of CUPTI's activity
 * API say. It has no GPU to watch; a program (player.c) tells it what was called and what ran.
 *
 *   - buffers are asked for and given back through the registered functions, full or after the
 *     flush period, on a thread of its own
 *   - a call's record is complete when the call returns, a kernel's when it has ended
 *   - without a buffer records are dropped, and counted until they are asked for
 *   - times are of the registered clock, else of CLOCK_REALTIME
 *
 * FAKE_CUPTI, words separated by commas, makes it odd: `old` (lacks clock, thread ids, period and
 * records of synchronisation as before CUDA 11), `taken` (another profiler has it), `lossy` (there
 * is no room for every third buffer, from the second on), `unended` (nor for what a forced flush
 * finds), `late` (kernels' records come in reverse order of their ends), `timeless` (every tenth
 * kernel has no times).
 */
#ifndef FAKE_CUPTI_H
#define FAKE_CUPTI_H

#include <stdint.h>

struct fake_kernel {
    uint32_t kind; /* 10 kernel, 1 copy, 2 fill */
    uint32_t device, context, stream, correlation;
    int64_t start_ns, end_ns; /* of CLOCK_MONOTONIC */
    const char *name;         /* of a kernel; lives on */
};

enum fake_call {
    FAKE_LAUNCHES,
    FAKE_WAITS,     /* cudaStreamSynchronize, with the driver's call inside */
    FAKE_COPIES,    /* cudaMemcpy, which waits without saying so */
    FAKE_ASKS,      /* cudaEventQuery */
    FAKE_TELLS_GPU, /* a stream's wait for another's event: the host does not wait */
};

/* A call of the runtime on this thread, between two times of CLOCK_MONOTONIC. All but the first
 * have a record of synchronisation; `context` is the one that it is for. */
typedef void fake_cupti_call_function(enum fake_call call, uint32_t correlation, uint32_t context,
                                      int64_t start_ns, int64_t end_ns);
/* Work that a call has launched. */
typedef void fake_cupti_work_function(const struct fake_kernel *work);

#endif
