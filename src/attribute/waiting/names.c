/*
 * Which names mean waiting (internal.h): the one table of them. Kernels of communication are known
 * by the libraries' names in them (NCCL and RCCL call theirs ncclDevKernel_…, before 2.19
 * ncclKernel_…; vLLM and TensorRT-LLM have all-reduces of their own), copies by those that CUPTI,
 * Kineto and ROCm give them, what the host does by PyTorch's and CUDA's.
 */
#include <string.h>

#include "attribute/waiting/internal.h"

enum where { BEGINS, HOLDS /* in any case of letters */ };

struct meaning {
    const char *text;
    enum where where;
    enum nrg_wait_kind kind;
};

/* Host operations of NCCL only launch kernels: the wait for them is on the device. */
static const struct meaning on_device[] = {
    {"Memcpy HtoD", BEGINS, NRG_WAIT_COPY_IN},
    {"Memcpy HtoA", BEGINS, NRG_WAIT_COPY_IN},
    {"CopyHostToDevice", BEGINS, NRG_WAIT_COPY_IN},
    {"MemcpyH2D", BEGINS, NRG_WAIT_COPY_IN}, /* as XLA writes it */
    {"Memcpy DtoH", BEGINS, NRG_WAIT_COPY_OUT},
    {"Memcpy AtoH", BEGINS, NRG_WAIT_COPY_OUT},
    {"CopyDeviceToHost", BEGINS, NRG_WAIT_COPY_OUT},
    {"MemcpyD2H", BEGINS, NRG_WAIT_COPY_OUT},
    {"Memcpy PtoP", BEGINS, NRG_WAIT_COLLECTIVE},
    {"nccl", HOLDS, NRG_WAIT_COLLECTIVE},
    {"rccl", HOLDS, NRG_WAIT_COLLECTIVE},
    {"msccl", HOLDS, NRG_WAIT_COLLECTIVE}, /* RCCL's kernels by MSCCL's plans */
    {"nvshmem", HOLDS, NRG_WAIT_COLLECTIVE},
    {"cross_device_reduce", HOLDS, NRG_WAIT_COLLECTIVE},
    {"allreduce", HOLDS, NRG_WAIT_COLLECTIVE},
    {"all_reduce", HOLDS, NRG_WAIT_COLLECTIVE},
    {"allgather", HOLDS, NRG_WAIT_COLLECTIVE},
    {"all_gather", HOLDS, NRG_WAIT_COLLECTIVE},
    {"reducescatter", HOLDS, NRG_WAIT_COLLECTIVE},
    {"reduce_scatter", HOLDS, NRG_WAIT_COLLECTIVE},
    {"alltoall", HOLDS, NRG_WAIT_COLLECTIVE},
    {"all_to_all", HOLDS, NRG_WAIT_COLLECTIVE},
};

static const struct meaning on_host[] = {
    {"gloo:", BEGINS, NRG_WAIT_COLLECTIVE},
    {"mpi:", BEGINS, NRG_WAIT_COLLECTIVE},
    {"dataloader", HOLDS, NRG_WAIT_LOADER}, /* PyTorch's, nrg's and Lightning's */
    {"data_load", HOLDS, NRG_WAIT_LOADER},
    {"data load", HOLDS, NRG_WAIT_LOADER},
    {"cudaDeviceSynchronize", BEGINS, NRG_WAIT_SYNC},
    {"cudaStreamSynchronize", BEGINS, NRG_WAIT_SYNC},
    {"cudaEventSynchronize", BEGINS, NRG_WAIT_SYNC},
    {"cuCtxSynchronize", BEGINS, NRG_WAIT_SYNC},
    {"cuStreamSynchronize", BEGINS, NRG_WAIT_SYNC},
    {"cuEventSynchronize", BEGINS, NRG_WAIT_SYNC},
    {"Event Sync", BEGINS, NRG_WAIT_SYNC}, /* CUPTI's records, as Kineto calls them */
    {"Stream Sync", BEGINS, NRG_WAIT_SYNC},
    {"Context Sync", BEGINS, NRG_WAIT_SYNC},
    {"hipDeviceSynchronize", BEGINS, NRG_WAIT_SYNC},
    {"hipStreamSynchronize", BEGINS, NRG_WAIT_SYNC},
    {"hipEventSynchronize", BEGINS, NRG_WAIT_SYNC},
    {"aten::item", BEGINS, NRG_WAIT_SYNC},
    {"aten::_local_scalar_dense", BEGINS, NRG_WAIT_SYNC},
    {"aten::is_nonzero", BEGINS, NRG_WAIT_SYNC},
};

static bool is_meant(const struct meaning *m, const char *text)
{
    return m->where == HOLDS ? strcasestr(text, m->text) != NULL
                             : !strncmp(text, m->text, strlen(m->text));
}

static enum nrg_wait_kind find_kind(const struct meaning *table, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (is_meant(&table[i], text))
            return table[i].kind;
    return NRG_WAIT_NOT;
}

enum nrg_wait_kind nrg_wait_on_device(const struct nrg_span_name *name)
{
    return find_kind(on_device, sizeof on_device / sizeof *on_device, name->text);
}

/* A module or a step may be called anything. */
enum nrg_wait_kind nrg_wait_on_host(const struct nrg_span_name *name)
{
    static const char *const never[] = {NRG_KIND_MODULE, NRG_KIND_BACKWARD, NRG_KIND_STEP,
                                        NRG_KIND_EPOCH,  NRG_KIND_LAYER,    NRG_KIND_KERNEL};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (!strcmp(name->kind, never[i]))
            return NRG_WAIT_NOT;
    return find_kind(on_host, sizeof on_host / sizeof *on_host, name->text);
}

const char *nrg_wait_kind_name(enum nrg_wait_kind kind)
{
    static const char *const names[NRG_WAIT_KINDS] = {
        [NRG_WAIT_NOT] = "work",
        [NRG_WAIT_COLLECTIVE] = "collective",
        [NRG_WAIT_COPY_IN] = "copy to device",
        [NRG_WAIT_COPY_OUT] = "copy to host",
        [NRG_WAIT_LOADER] = "data loader",
        [NRG_WAIT_SYNC] = "synchronisation",
        [NRG_WAIT_GAP] = "gap",
    };
    return names[kind];
}

bool nrg_wait_kind_is_active(enum nrg_wait_kind kind)
{
    return kind <= NRG_WAIT_COPY_OUT;
}
