/* Fuzz target: the unpickler alone, without a ZIP around it to get through. */
#include <stddef.h>
#include <stdint.h>

#include "graph/torch/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nrg_pickle pickle = {
        .bytes = data, .size = size, .where = "fuzz", .allow = nrg_torch_allows};
    struct nrg_arena values = {0};
    struct nrg_model model = {0};
    struct nrg_error err;
    struct nrg_pkl *root = NULL;
    size_t at = 0;
    model.arena.limit = (size_t)64 << 20;
    if (!nrg_pickle_read(&pickle, &at, &values, &root, &err)) {
        struct nrg_torch_walk walk = {.model = &model, .where = "fuzz", .err = &err};
        if (nrg_torch_walk_script(&walk, root))
            (void)nrg_torch_walk_checkpoint(&walk, root);
        nrg_torch_walk_release(&walk);
    }
    nrg_arena_release(&values);
    nrg_model_release(&model);
    return 0;
}
