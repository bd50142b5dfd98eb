/* The Jetson study's rows of layers; the first byte says of which type. */
#include "fuzz_dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const struct nrg_read_options options;
    struct nrg_layer_model model;
    struct nrg_dataset set;
    if (!size)
        return 0;
    char *text = copy_of(bytes + 1, size - 1);
    struct nrg_text file = {text, size - 1, "fuzz"};
    int type = bytes[0] % NRG_LAYER_TYPES;
    nrg_dataset_init(&set);
    if (!nrg_dataset_read_jetson(&set, file, type, "m", &options, NULL) &&
        !nrg_dataset_finish(&set, NULL) && set.n < 12 &&
        !nrg_layer_fit(&model, &set, NULL, bytes[0] & 1, 0.9, NULL)) {
        json_decref(nrg_layer_json(&model));
        nrg_layer_release(&model);
    }
    nrg_dataset_release(&set);
    free(text);
    return 0;
}
