/*
 * What is used of CUPTI, declared by ourselves: nrg builds where there is no CUDA. Records have
 * begun alike from CUDA 9 to 13 (kernel records 4 to 9, memcpy 3 to 6, memset 2 to 4), so the
 * first part of each is all that is declared. tests/house compares it with NVIDIA's headers where
 * they are installed.
 */
#ifndef NRG_INJECT_CUPTI_API_H
#define NRG_INJECT_CUPTI_API_H

#include <stddef.h>
#include <stdint.h>

enum nrg_cupti_kind {
    NRG_CUPTI_MEMCPY = 1,
    NRG_CUPTI_MEMSET = 2,
    NRG_CUPTI_DRIVER = 4,
    NRG_CUPTI_RUNTIME = 5,
    NRG_CUPTI_KERNEL = 10,  /* CONCURRENT_KERNEL */
    NRG_CUPTI_MEMCPY2 = 22, /* between devices */
    NRG_CUPTI_SYNC = 38
};

enum {
    NRG_CUPTI_OK = 0,
    NRG_CUPTI_ERROR_MAX_LIMIT = 12,
    NRG_CUPTI_THREAD_ID_SYSTEM = 1,
    NRG_CUPTI_FLUSH_FORCED = 1
};

/* Calls that wait for the GPU, by their numbers (cbid) among those of the runtime and the driver;
 * with which of them a number was given, X(kind, number, name, name of the header). */
#define NRG_CUPTI_WAITS(X)                                                                         \
    X(RUNTIME, 126, "cudaThreadSynchronize", cudaThreadSynchronize_v3020)                          \
    X(RUNTIME, 131, "cudaStreamSynchronize", cudaStreamSynchronize_v3020)                          \
    X(RUNTIME, 137, "cudaEventSynchronize", cudaEventSynchronize_v3020)                            \
    X(RUNTIME, 165, "cudaDeviceSynchronize", cudaDeviceSynchronize_v3020)                          \
    X(RUNTIME, 239, "cudaStreamSynchronize", cudaStreamSynchronize_ptsz_v7000)                     \
    X(DRIVER, 17, "cuCtxSynchronize", cuCtxSynchronize)                                            \
    X(DRIVER, 121, "cuEventSynchronize", cuEventSynchronize)                                       \
    X(DRIVER, 126, "cuStreamSynchronize", cuStreamSynchronize)                                     \
    X(DRIVER, 440, "cuStreamSynchronize", cuStreamSynchronize_ptsz)

/* Those that only ask whether it is done, for which CUPTI also has records of synchronisation. */
#define NRG_CUPTI_QUERIES(X)                                                                       \
    X(RUNTIME, 132, "cudaStreamQuery", cudaStreamQuery_v3020)                                      \
    X(RUNTIME, 138, "cudaEventQuery", cudaEventQuery_v3020)                                        \
    X(RUNTIME, 240, "cudaStreamQuery", cudaStreamQuery_ptsz_v7000)                                 \
    X(DRIVER, 120, "cuEventQuery", cuEventQuery)                                                   \
    X(DRIVER, 125, "cuStreamQuery", cuStreamQuery)                                                 \
    X(DRIVER, 439, "cuStreamQuery", cuStreamQuery_ptsz)

/* What a record of synchronisation waited for, by its type; one stream's wait for another's event
 * (2) is not the host's. The names are Kineto's. X(number, name, name of the header). */
#define NRG_CUPTI_SYNCS(X)                                                                         \
    X(1, "Event Sync", EVENT_SYNCHRONIZE)                                                          \
    X(3, "Stream Sync", STREAM_SYNCHRONIZE)                                                        \
    X(4, "Context Sync", CONTEXT_SYNCHRONIZE)

struct nrg_cupti_kernel {
    uint32_t kind;
    uint8_t settings[12];
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t sizes[8]; /* grid, block, shared memory */
    uint32_t local_memory[2];
    uint32_t correlation;
    int64_t grid_id;
    const char *name;
} __attribute__((packed));

struct nrg_cupti_copy {
    uint32_t kind;
    uint8_t copy_kind, from, to, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream;
    uint32_t correlation; /* of MEMCPY2 it stands in `peer_correlation` */
    uint32_t peers[3];
    uint32_t peer_correlation;
} __attribute__((packed));

struct nrg_cupti_fill {
    uint32_t kind;
    uint32_t value;
    uint64_t bytes, start, end;
    uint32_t device, context, stream;
    uint32_t correlation;
} __attribute__((packed));

struct nrg_cupti_call {
    uint32_t kind, cbid;
    uint64_t start, end;
    uint32_t process, thread;
    uint32_t correlation, result;
} __attribute__((packed));

struct nrg_cupti_sync {
    uint32_t kind, type;
    uint64_t start, end;
    uint32_t correlation, context, stream;
} __attribute__((packed));

/* Functions by their names without `cupti`; those of the second list may be absent. */
#define NRG_CUPTI_NEEDED(X)                                                                        \
    X(GetVersion, (uint32_t * version))                                                            \
    X(GetTimestamp, (uint64_t * ns))                                                               \
    X(ActivityRegisterCallbacks,                                                                   \
      (void (*request)(uint8_t * *buffer, size_t * size, size_t * records),                        \
       void (*complete)(void *context, uint32_t stream, uint8_t *buffer, size_t size,              \
                        size_t valid)))                                                            \
    X(ActivityEnable, (int kind))                                                                  \
    X(ActivityFlushAll, (uint32_t flag))                                                           \
    X(ActivityGetNextRecord, (uint8_t * buffer, size_t valid, void **record))                      \
    X(ActivityGetNumDroppedRecords, (void *context, uint32_t stream, size_t *dropped))
#define NRG_CUPTI_OPTIONAL(X)                                                                      \
    X(SetThreadIdType, (int type))                                                                 \
    X(ActivityEnableAllSyncRecords, (uint8_t enable))                                              \
    X(ActivityFlushPeriod, (uint32_t ms))                                                          \
    X(ActivityRegisterTimestampCallback, (uint64_t(*clock)(void)))

#define NRG_CUPTI_MEMBER(name, arguments) int(*name) arguments;
struct nrg_cupti {
    NRG_CUPTI_NEEDED(NRG_CUPTI_MEMBER)
    NRG_CUPTI_OPTIONAL(NRG_CUPTI_MEMBER)
};

#endif
