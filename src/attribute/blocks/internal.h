/* The blocks, for their table alone. */
#ifndef NRG_ATTRIBUTE_BLOCKS_INTERNAL_H
#define NRG_ATTRIBUTE_BLOCKS_INTERNAL_H

#include "attribute/blocks/block.h"

extern const struct nrg_model_block nrg_model_block_classes;
extern const struct nrg_model_block nrg_model_block_common;
extern const struct nrg_model_block nrg_model_block_idle;
extern const struct nrg_model_block nrg_model_block_ramps;
extern const struct nrg_model_block nrg_model_block_calls;
extern const struct nrg_model_block nrg_model_block_drift;

#endif
