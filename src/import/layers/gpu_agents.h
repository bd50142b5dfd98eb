/*
 * Which GPU the devices of a profiler's table are. Nsight writes the name and the number of the
 * device ("NVIDIA A100 (0)"). rocprofv3 numbers agents, of which processors are the first: the file
 * *_agent_info.csv beside the trace lists them with their PCI addresses, by which nrg counts GPUs.
 * Without it the agents that have work are counted in their order, and a note says so.
 *
 * Embedded: zeroed, track for each row, finish, release. Errors are negative errno. One thread at a
 * time.
 */
#ifndef NRG_IMPORT_LAYERS_GPU_AGENTS_H
#define NRG_IMPORT_LAYERS_GPU_AGENTS_H

#include "base/csv.h"
#include "import/layers/internal.h"

struct nrg_gpu_agents {
    struct nrg_gpu_agent {
        int64_t track; /* in the sink */
        int64_t number;
        enum {
            NRG_AGENT_GPU,      /* GPUs as nrg counts them, as far as is known */
            NRG_AGENT_OF_TYPE,  /* GPUs by node */
            NRG_AGENT_RELATIVE, /* nodes that the program may use, or all */
            NRG_AGENT_NODE
        } kind; /* what the number counts */
        char stream[64];
    } * items;
    size_t n, cap;
    struct nrg_map keys; /* device, NUL, stream */
};

/* The track of a stream of a device, as its cell calls it: an id, or -errno. */
int64_t nrg_gpu_agents_track(struct nrg_gpu_agents *agents, struct nrg_layer_import *im,
                             struct nrg_cell device, const char *stream);
/* Gives the tracks their GPUs. */
int nrg_gpu_agents_finish(struct nrg_gpu_agents *agents, struct nrg_layer_import *im,
                          struct nrg_error *err);
void nrg_gpu_agents_release(struct nrg_gpu_agents *agents);

#endif
