/* The blocks, in the order of their columns. See block.h. */
#include "attribute/blocks/internal.h"

const struct nrg_block *const nrg_blocks[NRG_BLOCKS] = {
    [NRG_BLOCK_CLASSES] = &nrg_block_classes, [NRG_BLOCK_COMMON] = &nrg_block_common,
    [NRG_BLOCK_IDLE] = &nrg_block_idle,       [NRG_BLOCK_RAMPS] = &nrg_block_ramps,
    [NRG_BLOCK_CALLS] = &nrg_block_calls,     [NRG_BLOCK_DRIFT] = &nrg_block_drift,
};
