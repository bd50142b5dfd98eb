/*
 * What is used of ROCm's rocprofiler-sdk, declared by ourselves: nrg builds where there is no ROCm.
 * tests/house compares it with AMD's headers where they are installed. Identifiers are structures
 * of one 64-bit number. Version 1.0 put one more number into correlation ids of calls, so what
 * follows these is found by the version; records of GPU work have kept theirs.
 */
#ifndef NRG_INJECT_ROCM_API_H
#define NRG_INJECT_ROCM_API_H

#include <stddef.h>
#include <stdint.h>

enum {
    NRG_ROCM_OK = 0,
    NRG_ROCM_LOCKED = 16,  /* CONFIGURATION_LOCKED: another one was first */
    NRG_ROCM_TRACING = 1,  /* category of a record */
    NRG_ROCM_HIP_CALL = 5, /* kinds of records */
    NRG_ROCM_COPY = 10,
    NRG_ROCM_KERNEL = 11,
    NRG_ROCM_CODE = 10,       /* kind of a callback: code objects */
    NRG_ROCM_KERNEL_NAME = 2, /* its operation: a kernel of one */
    NRG_ROCM_LOADED = 1,      /* its phase */
    NRG_ROCM_DISCARD = 1,     /* policy of a full buffer */
    NRG_ROCM_GPU = 2,         /* type of an agent */
    NRG_ROCM_AGENTS_V0 = 1,
    NRG_ROCM_OLDEST = 600,     /* 0.6, of ROCm 6.4 */
    NRG_ROCM_ANCESTORS = 10000 /* 1.0: correlation ids of calls have three numbers */
};

enum nrg_rocm_copy_kind {
    NRG_ROCM_HOST_TO_HOST = 1,
    NRG_ROCM_HOST_TO_DEVICE,
    NRG_ROCM_DEVICE_TO_HOST,
    NRG_ROCM_DEVICE_TO_DEVICE
};

struct nrg_rocm_id {
    uint64_t handle;
};

struct nrg_rocm_header {
    uint32_t category, kind;
    void *payload;
};

struct nrg_rocm_kernel {
    uint64_t size;
    uint32_t kind, operation;
    uint64_t correlation, external;
    uint64_t thread, start, end;
    uint64_t info_size, agent, queue, kernel;
};

struct nrg_rocm_copy {
    uint64_t size;
    uint32_t kind, operation;
    uint64_t correlation, external;
    uint64_t thread, start, end;
    uint64_t to_agent, from_agent;
};

/* A call of HIP; `rest` are, from NRG_ROCM_ANCESTORS on behind the ancestor, start, end, thread. */
struct nrg_rocm_call {
    uint64_t size;
    uint32_t kind;
    int32_t operation;
    uint64_t correlation, external;
    uint64_t rest[3];
};

/* `rest` begins, from NRG_ROCM_ANCESTORS on, with the ancestor. */
struct nrg_rocm_callback {
    uint64_t context, thread, correlation, external;
    uint64_t rest[4];
};

struct nrg_rocm_event { /* what follows the correlation id of a callback's record */
    uint32_t kind;
    int32_t operation;
    uint32_t phase;
    void *payload;
};

struct nrg_rocm_symbol {
    uint64_t size, kernel, code_object;
    const char *name;
};

struct nrg_rocm_agent {
    uint64_t size, id;
    uint32_t type;
    uint32_t sizes[21];
    uint16_t vendor, device;
    uint32_t location, domain; /* bus, device and function; of PCI */
};

/* What rocprofiler tells a tool of itself has had two layouts, and is not used. */
struct nrg_rocm_tool {
    size_t size;
    int (*initialize)(void (*finalize)(void), void *data);
    void (*finalize)(void *data);
    void *data;
};

typedef struct nrg_rocm_tool *nrg_rocm_configure(uint32_t version, const char *text,
                                                 uint32_t priority, void *client);
typedef void nrg_rocm_take(struct nrg_rocm_id context, struct nrg_rocm_id buffer,
                           struct nrg_rocm_header **headers, size_t n, void *data,
                           uint64_t dropped);

/* Functions by their names without `rocprofiler_`. All return a status. */
#define NRG_ROCM_FUNCTIONS(X)                                                                      \
    X(force_configure, (nrg_rocm_configure * configure))                                           \
    X(get_timestamp, (uint64_t * ns))                                                              \
    X(create_context, (struct nrg_rocm_id * context))                                              \
    X(start_context, (struct nrg_rocm_id context))                                                 \
    X(create_buffer, (struct nrg_rocm_id context, size_t size, size_t watermark, int policy,       \
                      nrg_rocm_take *take, void *data, struct nrg_rocm_id *buffer))                \
    X(flush_buffer, (struct nrg_rocm_id buffer))                                                   \
    X(configure_buffer_tracing_service,                                                            \
      (struct nrg_rocm_id context, int kind, const int32_t *operations, size_t n,                  \
       struct nrg_rocm_id buffer))                                                                 \
    X(configure_callback_tracing_service,                                                          \
      (struct nrg_rocm_id context, int kind, const int32_t *operations, size_t n,                  \
       void (*on_event)(struct nrg_rocm_callback record, uint64_t * user, void *data),             \
       void *data))                                                                                \
    X(query_available_agents,                                                                      \
      (int version, int (*each)(int version, const void **agents, size_t n, void *data),           \
       size_t size, void *data))                                                                   \
    X(iterate_buffer_tracing_kind_operations,                                                      \
      (int kind, int (*each)(int kind, int32_t operation, void *data), void *data))                \
    X(query_buffer_tracing_kind_operation_name,                                                    \
      (int kind, int32_t operation, const char **name, uint64_t *len))

#define NRG_ROCM_MEMBER(name, arguments) int(*name) arguments;
struct nrg_rocm {
    NRG_ROCM_FUNCTIONS(NRG_ROCM_MEMBER)
};

#endif
