/* IrEne's four files, cut at form feeds; also what the tree makes of them. */
#include "fuzz_dataset.h"

static void grow_trees(struct nrg_dataset *set)
{
    struct nrg_tree_state state = {.features = NRG_SET_STATIC, .seed = 1};
    struct nrg_predictor tree = nrg_tree_predictor(&state);
    struct nrg_evaluate_options options = {0};
    struct nrg_evaluation evaluation;
    if (set->n < 200 && !nrg_evaluate(&evaluation, set, &tree, &options, NULL))
        nrg_evaluation_release(&evaluation);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct nrg_text files[NRG_IRENE_FILES] = {0};
    struct nrg_dataset set;
    char *text = copy_of(bytes, size), *at = text, *end = text + size;
    for (int i = 0; i < NRG_IRENE_FILES && at < end; i++) {
        char *cut = memchr(at, '\f', (size_t)(end - at));
        files[i] = (struct nrg_text){at, (size_t)((cut ? cut : end) - at), "fuzz"};
        at = cut ? cut + 1 : end;
    }
    nrg_dataset_init(&set);
    if (!nrg_dataset_read_irene(&set, files, "device", NULL)) {
        use(&set);
        if (set.n)
            grow_trees(&set);
    }
    nrg_dataset_release(&set);
    free(text);
    return 0;
}
