/* The blocks, in the order of their columns. See block.h. */
#include "attribute/blocks/internal.h"

const struct nrg_model_block *const nrg_model_blocks[NRG_BLOCKS] = {
    [NRG_BLOCK_CLASSES] = &nrg_model_block_classes, [NRG_BLOCK_COMMON] = &nrg_model_block_common,
    [NRG_BLOCK_IDLE] = &nrg_model_block_idle,       [NRG_BLOCK_RAMPS] = &nrg_model_block_ramps,
    [NRG_BLOCK_CALLS] = &nrg_model_block_calls,     [NRG_BLOCK_DRIFT] = &nrg_model_block_drift,
};
