"""What src/inject declares of CUPTI and NVTX is what NVIDIA's headers say, where these are installed: in CUDA's folder,
or where NRG_CUDA_INCLUDE names folders (separated by colons; those of PyPI's nvidia-cuda-cupti-cu12 lack cuda.h). So does
what src/sensors/amd declares of AMD's libraries: Debian's librocm-smi-dev, ROCm's amd_smi/amdsmi.h (NRG_ROCM_INCLUDE names
other folders; PyPI's triton has those of roctx and of rocprofiler-sdk in triton/backends/amd/include), and PyPI's amdsmi, whose declarations in Python are made from AMD's header (NRG_AMDSMI names its folder)."""
import ctypes
import glob
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest

import house

CUPTI = r"""
#include <cupti.h>
#include "inject/cupti_api.h"
#define SAME(ours, member, theirs, field) \
    _Static_assert(offsetof(struct ours, member) == offsetof(theirs, field), #ours "." #member);
#define KERNEL(type) SAME(nrg_cupti_kernel, start, type, start) SAME(nrg_cupti_kernel, end, type, end) \
    SAME(nrg_cupti_kernel, device, type, deviceId) SAME(nrg_cupti_kernel, context, type, contextId) \
    SAME(nrg_cupti_kernel, stream, type, streamId) SAME(nrg_cupti_kernel, correlation, type, correlationId) \
    SAME(nrg_cupti_kernel, name, type, name)
#define WORK(ours, type) SAME(ours, bytes, type, bytes) SAME(ours, start, type, start) SAME(ours, end, type, end) \
    SAME(ours, device, type, deviceId) SAME(ours, context, type, contextId) SAME(ours, stream, type, streamId)
KERNEL(CUpti_ActivityKernel4) KERNEL(CUpti_ActivityKernel5) KERNEL(CUpti_ActivityKernel6)
KERNEL(CUpti_ActivityKernel7) KERNEL(CUpti_ActivityKernel8) KERNEL(CUpti_ActivityKernel9)
WORK(nrg_cupti_copy, CUpti_ActivityMemcpy4) WORK(nrg_cupti_copy, CUpti_ActivityMemcpy5)
WORK(nrg_cupti_copy, CUpti_ActivityMemcpyPtoP3) WORK(nrg_cupti_copy, CUpti_ActivityMemcpyPtoP4)
SAME(nrg_cupti_copy, copy_kind, CUpti_ActivityMemcpy5, copyKind)
SAME(nrg_cupti_copy, from, CUpti_ActivityMemcpy5, srcKind)
SAME(nrg_cupti_copy, to, CUpti_ActivityMemcpy5, dstKind)
SAME(nrg_cupti_copy, correlation, CUpti_ActivityMemcpy5, correlationId)
SAME(nrg_cupti_copy, peer_correlation, CUpti_ActivityMemcpyPtoP4, correlationId)
WORK(nrg_cupti_fill, CUpti_ActivityMemset3) WORK(nrg_cupti_fill, CUpti_ActivityMemset4)
SAME(nrg_cupti_fill, correlation, CUpti_ActivityMemset4, correlationId)
SAME(nrg_cupti_call, start, CUpti_ActivityAPI, start)
SAME(nrg_cupti_call, end, CUpti_ActivityAPI, end)
SAME(nrg_cupti_call, thread, CUpti_ActivityAPI, threadId)
SAME(nrg_cupti_call, correlation, CUpti_ActivityAPI, correlationId)
#define SYNC_RECORD(record) SAME(nrg_cupti_sync, type, record, type) SAME(nrg_cupti_sync, start, record, start) \
    SAME(nrg_cupti_sync, end, record, end) SAME(nrg_cupti_sync, correlation, record, correlationId) \
    SAME(nrg_cupti_sync, context, record, contextId) SAME(nrg_cupti_sync, stream, record, streamId)
SYNC_RECORD(CUpti_ActivitySynchronization) SYNC_RECORD(CUpti_ActivitySynchronization2)
_Static_assert(NRG_CUPTI_SYNC == CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, "");
#define SYNC(number, text, constant) _Static_assert(number == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_##constant, text);
NRG_CUPTI_SYNCS(SYNC)
_Static_assert(NRG_CUPTI_KERNEL == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "");
_Static_assert(NRG_CUPTI_MEMCPY == CUPTI_ACTIVITY_KIND_MEMCPY, "");
_Static_assert(NRG_CUPTI_MEMCPY2 == CUPTI_ACTIVITY_KIND_MEMCPY2, "");
_Static_assert(NRG_CUPTI_MEMSET == CUPTI_ACTIVITY_KIND_MEMSET, "");
_Static_assert(NRG_CUPTI_DRIVER == CUPTI_ACTIVITY_KIND_DRIVER, "");
_Static_assert(NRG_CUPTI_RUNTIME == CUPTI_ACTIVITY_KIND_RUNTIME, "");
_Static_assert(NRG_CUPTI_ERROR_MAX_LIMIT == CUPTI_ERROR_MAX_LIMIT_REACHED, "");
_Static_assert(NRG_CUPTI_THREAD_ID_SYSTEM == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM, "");
_Static_assert(NRG_CUPTI_FLUSH_FORCED == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED, "");
#define WAIT(kind, number, text, constant) _Static_assert(number == CUPTI_##kind##_TRACE_CBID_##constant, text);
NRG_CUPTI_WAITS(WAIT)
NRG_CUPTI_QUERIES(WAIT)
/* The functions, as far as a compiler compares them. */
#define FUNCTION(name, arguments) void *use_##name(void); void *use_##name(void) { return (void *)cupti##name; }
NRG_CUPTI_NEEDED(FUNCTION)
NRG_CUPTI_OPTIONAL(FUNCTION)
"""

NVTX = r"""
#include <stddef.h>
#include <nvtx3/nvToolsExt.h>
#include "inject/nvtx_api.h"
#define SAME(member, field) \
    _Static_assert(offsetof(struct nrg_nvtx_event, member) == offsetof(nvtxEventAttributes_t, field), #member);
SAME(category, category) SAME(payload_type, payloadType) SAME(payload, payload) SAME(message_type, messageType)
SAME(message, message)
#define EQUAL(a, b) _Static_assert((int)(a) == (int)(b), #a);
EQUAL(NRG_NVTX_CALLBACKS, NVTX_ETID_CALLBACKS) EQUAL(NRG_NVTX_CORE, NVTX_CB_MODULE_CORE)
EQUAL(NRG_NVTX_CORE2, NVTX_CB_MODULE_CORE2) EQUAL(NRG_NVTX_MARK_EX, NVTX_CBID_CORE_MarkEx)
EQUAL(NRG_NVTX_MARK_W, NVTX_CBID_CORE_MarkW) EQUAL(NRG_NVTX_START_EX, NVTX_CBID_CORE_RangeStartEx)
EQUAL(NRG_NVTX_START_W, NVTX_CBID_CORE_RangeStartW) EQUAL(NRG_NVTX_END, NVTX_CBID_CORE_RangeEnd)
EQUAL(NRG_NVTX_PUSH_EX, NVTX_CBID_CORE_RangePushEx) EQUAL(NRG_NVTX_PUSH_A, NVTX_CBID_CORE_RangePushA)
EQUAL(NRG_NVTX_PUSH_W, NVTX_CBID_CORE_RangePushW) EQUAL(NRG_NVTX_POP, NVTX_CBID_CORE_RangePop)
EQUAL(NRG_NVTX_CATEGORY_A, NVTX_CBID_CORE_NameCategoryA) EQUAL(NRG_NVTX_CATEGORY_W, NVTX_CBID_CORE_NameCategoryW)
EQUAL(NRG_NVTX2_MARK, NVTX_CBID_CORE2_DomainMarkEx) EQUAL(NRG_NVTX2_START, NVTX_CBID_CORE2_DomainRangeStartEx)
EQUAL(NRG_NVTX2_END, NVTX_CBID_CORE2_DomainRangeEnd) EQUAL(NRG_NVTX2_PUSH, NVTX_CBID_CORE2_DomainRangePushEx)
EQUAL(NRG_NVTX2_POP, NVTX_CBID_CORE2_DomainRangePop) EQUAL(NRG_NVTX2_CATEGORY_A, NVTX_CBID_CORE2_DomainNameCategoryA)
EQUAL(NRG_NVTX2_CATEGORY_W, NVTX_CBID_CORE2_DomainNameCategoryW)
EQUAL(NRG_NVTX2_STRING_A, NVTX_CBID_CORE2_DomainRegisterStringA)
EQUAL(NRG_NVTX2_STRING_W, NVTX_CBID_CORE2_DomainRegisterStringW)
EQUAL(NRG_NVTX2_DOMAIN_A, NVTX_CBID_CORE2_DomainCreateA) EQUAL(NRG_NVTX2_DOMAIN_W, NVTX_CBID_CORE2_DomainCreateW)
EQUAL(NRG_NVTX_ASCII, NVTX_MESSAGE_TYPE_ASCII) EQUAL(NRG_NVTX_UNICODE, NVTX_MESSAGE_TYPE_UNICODE)
EQUAL(NRG_NVTX_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED)
EQUAL(NRG_NVTX_U64, NVTX_PAYLOAD_TYPE_UNSIGNED_INT64) EQUAL(NRG_NVTX_I64, NVTX_PAYLOAD_TYPE_INT64)
EQUAL(NRG_NVTX_DOUBLE, NVTX_PAYLOAD_TYPE_DOUBLE) EQUAL(NRG_NVTX_U32, NVTX_PAYLOAD_TYPE_UNSIGNED_INT32)
EQUAL(NRG_NVTX_I32, NVTX_PAYLOAD_TYPE_INT32) EQUAL(NRG_NVTX_FLOAT, NVTX_PAYLOAD_TYPE_FLOAT)
"""

# A call with wrong types, or one argument more, does not compile; a result of another size does not either.
AMD_CALLS = r"""
#include <stddef.h>
#include <%s>
#include "sensors/amd/api.h"
static uint64_t u64; static int64_t i64; static uint32_t u32; static float real; static const char *text;
#define EQUAL(a, b) _Static_assert((long long)(a) == (long long)(b), #a);
"""

ROCM_SMI = AMD_CALLS % "rocm_smi/rocm_smi.h" + r"""
static void calls(void)
{
#define RESULT(call) _Static_assert(sizeof(call) == sizeof(int), #call); (void)(call)
    RESULT(rsmi_init((uint64_t)0)); RESULT(rsmi_shut_down()); RESULT(rsmi_status_string(0, &text));
    RESULT(rsmi_num_monitor_devices(&u32)); RESULT(rsmi_dev_pci_id_get(u32, &u64));
    RESULT(rsmi_dev_energy_count_get(u32, &u64, &real, &u64)); RESULT(rsmi_dev_busy_percent_get(u32, &u32));
    RESULT(rsmi_dev_memory_usage_get(u32, AMDSMI_VRAM, &u64));
    RESULT(rsmi_dev_temp_metric_get(u32, u32, AMDSMI_TEMP_CURRENT, &i64));
}
EQUAL(AMDSMI_VRAM, RSMI_MEM_TYPE_VRAM) EQUAL(AMDSMI_TEMP_CURRENT, RSMI_TEMP_CURRENT)
EQUAL(AMDSMI_EDGE, RSMI_TEMP_TYPE_EDGE) EQUAL(AMDSMI_JUNCTION, RSMI_TEMP_TYPE_JUNCTION)
EQUAL(sizeof(rsmi_memory_type_t), 4) EQUAL(sizeof(rsmi_temperature_metric_t), 4)
EQUAL(RSMI_INVALID_ARGS, RSMI_STATUS_INVALID_ARGS) EQUAL(RSMI_NOT_SUPPORTED, RSMI_STATUS_NOT_SUPPORTED)
EQUAL(RSMI_FILE_ERROR, RSMI_STATUS_FILE_ERROR) EQUAL(RSMI_PERMISSION, RSMI_STATUS_PERMISSION)
EQUAL(RSMI_OUT_OF_RESOURCES, RSMI_STATUS_OUT_OF_RESOURCES) EQUAL(RSMI_INIT_ERROR, RSMI_STATUS_INIT_ERROR)
EQUAL(RSMI_NOT_YET_IMPLEMENTED, RSMI_STATUS_NOT_YET_IMPLEMENTED) EQUAL(RSMI_NOT_FOUND, RSMI_STATUS_NOT_FOUND)
EQUAL(RSMI_NO_DATA, RSMI_STATUS_NO_DATA) EQUAL(RSMI_BUSY, RSMI_STATUS_BUSY)
int main(void) { (void)calls; return 0; }
"""

ROCTX = r"""
#include <stddef.h>
#include <rocprofiler-sdk-roctx/api_trace.h>
#include "inject/roctx_api.h"
#define SAME(member, field) \
    _Static_assert(offsetof(struct nrg_roctx_table, member) == offsetof(roctxCoreApiTable_t, field), #member); \
    static struct nrg_roctx_table take_##member(const roctxCoreApiTable_t *t) \
    { return (struct nrg_roctx_table){.member = t->field}; }
SAME(size, size) SAME(mark, roctxMarkA_fn) SAME(push, roctxRangePushA_fn) SAME(pop, roctxRangePop_fn)
SAME(start, roctxRangeStartA_fn) SAME(stop, roctxRangeStop_fn)
"""

# PyPI's triton has headers of version 1.2, shortened: records of copies and calls are compared where ROCm itself is.
ROCPROFILER = r"""
#define __HIP_PLATFORM_AMD__
#include <stdbool.h>
#include <stddef.h>
#include <hip/hip_runtime_api.h>
typedef struct hipArrayMemoryRequirements hipArrayMemoryRequirements; /* one that HIP has for C++ alone */
#include <rocprofiler-sdk/agent.h>
#include <rocprofiler-sdk/buffer.h>
#include <rocprofiler-sdk/buffer_tracing.h>
#include <rocprofiler-sdk/callback_tracing.h>
#include <rocprofiler-sdk/registration.h>
#include "inject/rocm_api.h"
#define EQUAL(a, b) _Static_assert((long long)(a) == (long long)(b), #a);
#define SAME(ours, member, theirs, field) EQUAL(offsetof(struct ours, member), offsetof(theirs, field)) \
    EQUAL(sizeof(((struct ours *)0)->member), sizeof(((theirs *)0)->field))
#define WORK(ours, theirs) SAME(ours, size, theirs, size) SAME(ours, kind, theirs, kind) \
    SAME(ours, operation, theirs, operation) SAME(ours, correlation, theirs, correlation_id.internal) \
    SAME(ours, thread, theirs, thread_id) SAME(ours, start, theirs, start_timestamp) SAME(ours, end, theirs, end_timestamp)
WORK(nrg_rocm_kernel, rocprofiler_buffer_tracing_kernel_dispatch_record_t)
SAME(nrg_rocm_kernel, agent, rocprofiler_buffer_tracing_kernel_dispatch_record_t, dispatch_info.agent_id)
SAME(nrg_rocm_kernel, queue, rocprofiler_buffer_tracing_kernel_dispatch_record_t, dispatch_info.queue_id)
SAME(nrg_rocm_kernel, kernel, rocprofiler_buffer_tracing_kernel_dispatch_record_t, dispatch_info.kernel_id)
#define EVENT rocprofiler_callback_tracing_record_t
enum { ANCESTOR = sizeof(rocprofiler_correlation_id_t) == 24, AT = offsetof(struct nrg_rocm_callback, rest) + 8 * ANCESTOR };
EQUAL(sizeof(rocprofiler_correlation_id_t), 16 + 8 * ANCESTOR)
EQUAL(offsetof(struct nrg_rocm_callback, correlation), offsetof(EVENT, correlation_id))
EQUAL(AT + offsetof(struct nrg_rocm_event, kind), offsetof(EVENT, kind))
EQUAL(AT + offsetof(struct nrg_rocm_event, operation), offsetof(EVENT, operation))
EQUAL(AT + offsetof(struct nrg_rocm_event, phase), offsetof(EVENT, phase))
EQUAL(AT + offsetof(struct nrg_rocm_event, payload), offsetof(EVENT, payload))
EQUAL(sizeof(struct nrg_rocm_callback) - 8 * !ANCESTOR, sizeof(EVENT))
#define SYMBOL rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t
SAME(nrg_rocm_symbol, kernel, SYMBOL, kernel_id) SAME(nrg_rocm_symbol, name, SYMBOL, kernel_name)
SAME(nrg_rocm_agent, size, rocprofiler_agent_v0_t, size) SAME(nrg_rocm_agent, id, rocprofiler_agent_v0_t, id)
SAME(nrg_rocm_agent, type, rocprofiler_agent_v0_t, type) SAME(nrg_rocm_agent, location, rocprofiler_agent_v0_t, location_id)
SAME(nrg_rocm_agent, domain, rocprofiler_agent_v0_t, domain)
SAME(nrg_rocm_header, category, rocprofiler_record_header_t, category) SAME(nrg_rocm_header, kind, rocprofiler_record_header_t, kind)
SAME(nrg_rocm_header, payload, rocprofiler_record_header_t, payload)
SAME(nrg_rocm_tool, initialize, rocprofiler_tool_configure_result_t, initialize)
SAME(nrg_rocm_tool, finalize, rocprofiler_tool_configure_result_t, finalize)
SAME(nrg_rocm_tool, data, rocprofiler_tool_configure_result_t, tool_data)
EQUAL(sizeof(struct nrg_rocm_tool), sizeof(rocprofiler_tool_configure_result_t))
EQUAL(NRG_ROCM_OK, ROCPROFILER_STATUS_SUCCESS) EQUAL(NRG_ROCM_LOCKED, ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED)
EQUAL(NRG_ROCM_TRACING, ROCPROFILER_BUFFER_CATEGORY_TRACING) EQUAL(NRG_ROCM_HIP_CALL, ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API)
EQUAL(NRG_ROCM_COPY, ROCPROFILER_BUFFER_TRACING_MEMORY_COPY) EQUAL(NRG_ROCM_KERNEL, ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH)
EQUAL(NRG_ROCM_CODE, ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT) EQUAL(NRG_ROCM_LOADED, ROCPROFILER_CALLBACK_PHASE_LOAD)
EQUAL(NRG_ROCM_KERNEL_NAME, ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER)
EQUAL(NRG_ROCM_DISCARD, ROCPROFILER_BUFFER_POLICY_DISCARD) EQUAL(NRG_ROCM_GPU, ROCPROFILER_AGENT_TYPE_GPU)
EQUAL(NRG_ROCM_AGENTS_V0, ROCPROFILER_AGENT_INFO_VERSION_0)
EQUAL(NRG_ROCM_HOST_TO_DEVICE, ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE)
EQUAL(NRG_ROCM_DEVICE_TO_HOST, ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST)
EQUAL(NRG_ROCM_DEVICE_TO_DEVICE, ROCPROFILER_MEMORY_COPY_DEVICE_TO_DEVICE)
/* As many arguments, each of which converts: identifiers are of one number. */
static void calls(void)
{
    rocprofiler_context_id_t context; rocprofiler_buffer_id_t buffer; const char *name; uint64_t len;
    _Static_assert(sizeof context == sizeof(struct nrg_rocm_id) && sizeof buffer == sizeof(struct nrg_rocm_id), "ids");
    rocprofiler_create_buffer(context, (size_t)1, (size_t)1, NRG_ROCM_DISCARD, 0, (void *)0, &buffer);
    rocprofiler_flush_buffer(buffer);
    rocprofiler_configure_buffer_tracing_service(context, NRG_ROCM_KERNEL, (const int32_t *)0, (size_t)0, buffer);
    rocprofiler_configure_callback_tracing_service(context, NRG_ROCM_CODE, (const int32_t *)0, (size_t)0, 0, (void *)0);
    rocprofiler_query_available_agents(NRG_ROCM_AGENTS_V0, 0, (size_t)1, (void *)0);
    rocprofiler_force_configure(0);
}
"""

ROCPROFILER_WHOLE = r"""
WORK(nrg_rocm_copy, rocprofiler_buffer_tracing_memory_copy_record_t)
SAME(nrg_rocm_copy, to_agent, rocprofiler_buffer_tracing_memory_copy_record_t, dst_agent_id)
SAME(nrg_rocm_copy, from_agent, rocprofiler_buffer_tracing_memory_copy_record_t, src_agent_id)
#define CALL rocprofiler_buffer_tracing_hip_api_record_t
enum { CALL_AT = offsetof(struct nrg_rocm_call, rest) + 8 * ANCESTOR };
SAME(nrg_rocm_call, operation, CALL, operation) SAME(nrg_rocm_call, correlation, CALL, correlation_id.internal)
EQUAL(CALL_AT, offsetof(CALL, start_timestamp)) EQUAL(CALL_AT + 8, offsetof(CALL, end_timestamp))
EQUAL(CALL_AT + 16, offsetof(CALL, thread_id))
"""

OLD_ROCTX = r"""
#include <stdbool.h>
#include <stddef.h>
#include <roctracer/roctracer_roctx.h>
#include <roctracer/ext/prof_protocol.h>
#include "inject/roctx_api.h"
#define EQUAL(a, b) _Static_assert((int)(a) == (int)(b), #a);
EQUAL(NRG_ROCTX_DOMAIN, ACTIVITY_DOMAIN_ROCTX) EQUAL(NRG_ROCTX_MARK, ROCTX_API_ID_roctxMarkA)
EQUAL(NRG_ROCTX_PUSH, ROCTX_API_ID_roctxRangePushA) EQUAL(NRG_ROCTX_POP, ROCTX_API_ID_roctxRangePop)
EQUAL(NRG_ROCTX_START, ROCTX_API_ID_roctxRangeStartA) EQUAL(NRG_ROCTX_STOP, ROCTX_API_ID_roctxRangeStop)
EQUAL(offsetof(struct nrg_roctx_data, message), offsetof(roctx_api_data_t, args.message))
EQUAL(offsetof(struct nrg_roctx_data, id), offsetof(roctx_api_data_t, args.id))
EQUAL(offsetof(struct nrg_roctx_data, id), offsetof(roctx_api_data_t, args.roctxRangeStop.id))
EQUAL(sizeof(roctx_range_id_t), sizeof(uint64_t))
"""

# As PyPI's module has them; a handle is a pointer.
AMD_SMI = {
    "amdsmi_init": "[uint64_t]",
    "amdsmi_shut_down": "[]",
    "amdsmi_get_socket_handles": "[ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.POINTER(None))]",
    "amdsmi_get_processor_handles": "[amdsmi_socket_handle, ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.POINTER(None))]",
    "amdsmi_get_gpu_bdf_id": "[amdsmi_processor_handle, ctypes.POINTER(ctypes.c_uint64)]",
    "amdsmi_get_energy_count": "[amdsmi_processor_handle, ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_float), "
                               "ctypes.POINTER(ctypes.c_uint64)]",
    "amdsmi_get_gpu_activity": "[amdsmi_processor_handle, ctypes.POINTER(struct_amdsmi_engine_usage_t)]",
    "amdsmi_get_gpu_memory_usage": "[amdsmi_processor_handle, amdsmi_memory_type_t, ctypes.POINTER(ctypes.c_uint64)]",
    "amdsmi_get_temp_metric": "[amdsmi_processor_handle, amdsmi_temperature_type_t, amdsmi_temperature_metric_t, "
                              "ctypes.POINTER(ctypes.c_int64)]",
}
AMD_SMI_NUMBERS = {
    "AMDSMI_INIT_AMD_GPUS": "AMDSMI_INIT_GPUS", "AMDSMI_MEM_TYPE_VRAM": "AMDSMI_VRAM", "AMDSMI_TEMP_CURRENT": "AMDSMI_TEMP_CURRENT",
    **{f"AMDSMI_STATUS_{name}": f"AMDSMI_{name}" for name in (
        "SUCCESS", "INVAL", "NOT_SUPPORTED", "NOT_YET_IMPLEMENTED", "TIMEOUT", "NO_PERM", "IO", "OUT_OF_RESOURCES", "BUSY",
        "NOT_FOUND", "DRIVER_NOT_LOADED", "NO_DATA")},
}


def rocm_folders():
    given = os.environ.get("NRG_ROCM_INCLUDE")
    return given.split(":") if given else ["/usr/include", "/opt/rocm/include"]


def rocm_has(name):
    return any(os.path.exists(os.path.join(folder, name)) for folder in rocm_folders())


def amdsmi_wrapper():
    """PyPI's declarations as text: the module itself wants AMD's library."""
    folder = os.environ.get("NRG_AMDSMI")
    spec = None if folder else importlib.util.find_spec("amdsmi")
    if spec and spec.origin:
        folder = os.path.dirname(spec.origin)
    path = os.path.join(folder, "amdsmi_wrapper.py") if folder else None
    return path if path and os.path.exists(path) else None


# A program of the real NVTX, with all forms of its calls.
CLIENT = r"""
#include <nvtx3/nvToolsExt.h>
int main(void)
{
    nvtxDomainHandle_t domain = nvtxDomainCreateA("lib");
    nvtxEventAttributes_t e = {0};
    e.version = NVTX_VERSION;
    e.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    e.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    e.message.registered = nvtxDomainRegisterStringA(domain, "registered");
    e.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    e.payload.ullValue = 5;
    nvtxRangePushA("ascii");
    nvtxRangePushW(L"wide \u00e4");
    int level = nvtxDomainRangePushEx(domain, &e);
    nvtxDomainRangePop(domain);
    nvtxRangePop();
    nvtxRangePop();
    nvtxRangeId_t id = nvtxRangeStartA("started");
    nvtxRangeEnd(id);
    nvtxMarkA("marked");
    return level;
}
"""


def include_folders():
    given = os.environ.get("NRG_CUDA_INCLUDE")
    return given.split(":") if given else sorted(glob.glob("/usr/local/cuda*/include"))[-1:]


def has(name):
    return any(os.path.exists(os.path.join(folder, name)) for folder in include_folders())


# NVML's performance monitor and fields; the rest of NVML's declarations has been the same since its first release.
GPM = r"""
#include <stddef.h>
#include "sensors/nvml/api.h"
#define SAME(ours, member, at) _Static_assert(offsetof(struct ours, member) == at, #ours "." #member);
#define EQUAL(ours, theirs) _Static_assert(ours == theirs, #ours);
%s
"""
GPM_MEMBERS = {"nvml_gpm_support": ("c_nvmlGpmSupport_t", {"version": "version", "is_supported": "isSupportedDevice"}),
               "nvml_gpm_metric": ("c_nvmlGpmMetric_t", {"id": "metricId", "result": "nvmlReturn", "value": "value", "short_name": "metricInfo"}),
               "nvml_gpm_metrics": ("c_nvmlGpmMetricsGet_t", {"version": "version", "n": "numMetrics", "from": "sample1", "to": "sample2",
                                                              "metrics": "metrics"}),
               "nvml_field": ("c_nvmlFieldValue_t", {"id": "fieldId", "scope": "scopeId", "stamp_us": "timestamp", "latency_us": "latencyUsec",
                                                     "value_type": "valueType", "result": "nvmlReturn", "value": "value"})}
GPM_NUMBERS = ("NVML_GPM_SUPPORT_VERSION", "NVML_GPM_METRICS_GET_VERSION", "NVML_GPM_METRIC_SM_UTIL", "NVML_FI_DEV_POWER_INSTANT",
               "NVML_POWER_SCOPE_GPU")


def pynvml():
    """PyPI's nvidia-ml-py, if it is installed or NRG_PYNVML is its folder."""
    sys.path += [os.environ["NRG_PYNVML"]] if os.environ.get("NRG_PYNVML") else []
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        return None


class Headers(unittest.TestCase):
    def compile(self, text, *more, warnings="-w", folders=None):
        folder = tempfile.mkdtemp(prefix="nrg-headers-")
        self.addCleanup(subprocess.run, ["rm", "-rf", folder])
        source = os.path.join(folder, "check.c")
        with open(source, "w") as f:
            f.write(text)
        includes = ["-I" + house.path("src"), "-I" + house.path("include")] + ["-I" + i for i in folders or include_folders()]
        output = os.path.join(folder, "check")
        done = subprocess.run(["cc", "-std=gnu17", warnings, *includes, source, "-o", output, *more], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return output

    @unittest.skipUnless(has("cupti.h"), "NVIDIA's headers of CUPTI are not installed")
    def test_cupti(self):
        self.compile(CUPTI, "-c")

    @unittest.skipUnless(has("nvtx3/nvToolsExt.h"), "NVIDIA's headers of NVTX are not installed")
    def test_nvtx(self):
        self.compile(NVTX, "-c")

    @unittest.skipUnless(has("nvtx3/nvToolsExt.h"), "NVIDIA's headers of NVTX are not installed")
    def test_a_program_of_nvtx(self):
        program = self.compile(CLIENT, "-ldl")
        recording = os.path.join(os.path.dirname(program), "run.nrg")
        done = subprocess.run([house.NRG, "run", "-q", "--sensor", "machine", "--gpu-trace", "-o", recording, "--", program],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)  # the level of a first range in its domain
        shown = subprocess.run([house.NRG, "attribute", "--json", recording], capture_output=True, text=True).stdout
        for name in ("ascii", "wide ä", "registered", "started"):
            self.assertIn(name, shown)

    @unittest.skipUnless(has("nvtx3/nvToolsExt.h"), "NVIDIA's headers of NVTX are not installed")
    def test_nvtx_passes_over_a_library_that_is_not_there(self):
        """So that the variable may reach a container that does not have nrg's folder (cli/run/gpu_trace.c)."""
        program = self.compile(CLIENT, "-ldl")
        not_one = os.path.join(os.path.dirname(program), "check.c")
        plain = subprocess.run([program]).returncode  # without an injection all levels are the same negative number
        for library in ("/nowhere/libnrg-inject.so", not_one):
            done = subprocess.run([program], env=dict(os.environ, NVTX_INJECTION64_PATH=library), capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (plain, "", ""))

    @unittest.skipUnless(hasattr(pynvml(), "NVML_GPM_METRIC_MAX"), "PyPI's nvidia-ml-py is not installed")
    def test_gpm(self):
        theirs = pynvml()
        lines = [f"EQUAL({name}, {getattr(theirs, name)})" for name in GPM_NUMBERS]
        for ours, (name, members) in GPM_MEMBERS.items():
            kind = getattr(theirs, name)
            lines += [f"SAME({ours}, {mine}, {getattr(kind, member).offset})" for mine, member in members.items()]
        size = ctypes.sizeof(theirs.c_nvmlGpmMetric_t)
        lines.append(f'_Static_assert(sizeof(struct nvml_gpm_metric) == {size}, "a metric");')
        lines.append(f'_Static_assert(NVML_GPM_METRIC_MAX >= {theirs.NVML_GPM_METRIC_MAX}, "room");')
        self.compile(GPM % "\n".join(lines), "-c")

    @unittest.skipUnless(rocm_has("rocm_smi/rocm_smi.h"), "AMD's header of ROCm SMI is not installed")
    def test_rocm_smi(self):
        self.compile(ROCM_SMI, "-c", warnings="-Werror=incompatible-pointer-types", folders=rocm_folders())

    @unittest.skipUnless(rocm_has("rocprofiler-sdk-roctx/api_trace.h"), "AMD's headers of roctx are not installed")
    def test_roctx(self):
        self.compile(ROCTX, "-c", warnings="-Werror=incompatible-pointer-types", folders=rocm_folders())

    @unittest.skipUnless(rocm_has("rocprofiler-sdk/buffer_tracing.h"), "AMD's headers of rocprofiler-sdk are not installed")
    def test_rocprofiler(self):
        header = next(path for path in (os.path.join(f, "rocprofiler-sdk/buffer_tracing.h") for f in rocm_folders()) if os.path.exists(path))
        with open(header) as text:
            whole = "rocprofiler_buffer_tracing_memory_copy_record_t" in text.read()
        self.compile(ROCPROFILER + (ROCPROFILER_WHOLE if whole else ""), "-c", folders=rocm_folders())

    @unittest.skipUnless(rocm_has("roctracer/roctracer_roctx.h"), "AMD's headers of roctracer are not installed")
    def test_old_roctx(self):
        self.compile(OLD_ROCTX, "-c", folders=rocm_folders())

    @unittest.skipUnless(amdsmi_wrapper(), "PyPI's amdsmi is not installed")
    def test_amd_smi(self):
        with open(amdsmi_wrapper()) as f:
            theirs = f.read()
        with open(house.path("src/sensors/amd/api.h")) as f:
            ours = f.read()
        for name, arguments in AMD_SMI.items():
            found = re.search(rf"^{name}\.argtypes = (.*)$", theirs, re.M)
            self.assertEqual(found and found.group(1), arguments, name)
            self.assertIn(f'"{name}"', open(house.path("src/sensors/amd/api.c")).read())
        for name, our_name in AMD_SMI_NUMBERS.items():
            found = re.search(rf"^{name} = (\d+)", theirs, re.M)
            number = re.search(rf"\b{our_name}(?: = | +)(\d+)", ours)
            self.assertEqual(found and int(found.group(1)), int(number.group(1)), name)
        usage = re.search(r"^struct_amdsmi_engine_usage_t\._fields_ = \[(.*?)^\]", theirs, re.M | re.S).group(1)
        self.assertEqual(re.findall(r"'(\w+)', ctypes\.(c_uint32(?: \* \d+)?)", usage),
                         [("gfx_activity", "c_uint32"), ("umc_activity", "c_uint32"), ("mm_activity", "c_uint32"),
                          ("reserved", "c_uint32 * 13")])


if __name__ == "__main__":
    unittest.main()
