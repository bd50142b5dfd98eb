/*
 * What is used of NVTX 3, declared by ourselves. A tool gets tables of places for function pointers
 * and puts its functions there; those that it leaves alone do nothing. tests/house compares this
 * with NVIDIA's headers where they are installed.
 */
#ifndef NRG_INJECT_NVTX_API_H
#define NRG_INJECT_NVTX_API_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

enum { NRG_NVTX_CALLBACKS = 1 }; /* export table */
enum { NRG_NVTX_CORE = 1, NRG_NVTX_CORE2 = 5 };

enum nrg_nvtx_core {
    NRG_NVTX_MARK_EX = 1,
    NRG_NVTX_MARK_A,
    NRG_NVTX_MARK_W,
    NRG_NVTX_START_EX,
    NRG_NVTX_START_A,
    NRG_NVTX_START_W,
    NRG_NVTX_END,
    NRG_NVTX_PUSH_EX,
    NRG_NVTX_PUSH_A,
    NRG_NVTX_PUSH_W,
    NRG_NVTX_POP,
    NRG_NVTX_CATEGORY_A,
    NRG_NVTX_CATEGORY_W
};

enum nrg_nvtx_core2 {
    NRG_NVTX2_MARK = 1,
    NRG_NVTX2_START,
    NRG_NVTX2_END,
    NRG_NVTX2_PUSH,
    NRG_NVTX2_POP,
    NRG_NVTX2_CATEGORY_A = 8,
    NRG_NVTX2_CATEGORY_W,
    NRG_NVTX2_STRING_A,
    NRG_NVTX2_STRING_W,
    NRG_NVTX2_DOMAIN_A,
    NRG_NVTX2_DOMAIN_W,
    NRG_NVTX2_DOMAIN_DESTROY
};

enum { NRG_NVTX_ASCII = 1, NRG_NVTX_UNICODE = 2, NRG_NVTX_REGISTERED = 3 };
enum nrg_nvtx_payload {
    NRG_NVTX_NO_PAYLOAD,
    NRG_NVTX_U64,
    NRG_NVTX_I64,
    NRG_NVTX_DOUBLE,
    NRG_NVTX_U32,
    NRG_NVTX_I32,
    NRG_NVTX_FLOAT
};

struct nrg_nvtx_event {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    union {
        uint64_t u64;
        int64_t i64;
        double d;
        uint32_t u32;
        int32_t i32;
        float f;
    } payload;
    int32_t message_type;
    union {
        const char *ascii;
        const wchar_t *unicode;
        const void *registered;
    } message;
};

typedef void (*nrg_nvtx_function)(void);

struct nrg_nvtx_callbacks {
    size_t struct_size;
    /* Fills in the table of a module and its length; 0 on failure. */
    int (*function_table)(int module, nrg_nvtx_function ***table, unsigned *length);
};

#endif
