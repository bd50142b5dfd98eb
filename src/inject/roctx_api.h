/*
 * What is used of ROCm's roctx, declared by ourselves, in both of its forms. tests/house compares
 * it with AMD's headers where they are installed.
 *
 *   librocprofiler-sdk-roctx.so   hands a table of its functions to librocprofiler-register.so,
 *                                 which passes it to a profiler's rocprofiler_set_api_table; what
 *                                 stands in the table is called from then on
 *   libroctx64.so (roctracer's)   tells the one function that was registered with
 *                                 roctxRegisterTracerCallback
 */
#ifndef NRG_INJECT_ROCTX_API_H
#define NRG_INJECT_ROCTX_API_H

#include <stdint.h>

struct nrg_roctx_table {
    uint64_t size;
    void (*mark)(const char *message);
    int (*push)(const char *message);
    int (*pop)(void);
    uint64_t (*start)(const char *message);
    void (*stop)(uint64_t id);
};

enum { NRG_ROCTX_DOMAIN = 6 };
enum nrg_roctx_call {
    NRG_ROCTX_MARK,
    NRG_ROCTX_PUSH,
    NRG_ROCTX_POP,
    NRG_ROCTX_START,
    NRG_ROCTX_STOP
};

struct nrg_roctx_data {
    const char *message; /* of a mark, a push, a start */
    uint64_t id;         /* of a start, a stop */
};

typedef int nrg_roctx_callback(uint32_t domain, uint32_t call, void *data);

#endif
