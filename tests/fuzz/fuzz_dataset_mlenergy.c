/* ML.ENERGY's rows. */
#include "fuzz_dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const struct nrg_read_options options = {.tasks = "lm-arena-chat,gpqa,x"};
    struct nrg_dataset set;
    char *text = copy_of(bytes, size);
    nrg_dataset_init(&set);
    if (!nrg_dataset_read_mlenergy(&set, text, size, "fuzz", &options, NULL))
        use(&set);
    nrg_dataset_release(&set);
    free(text);
    return 0;
}
