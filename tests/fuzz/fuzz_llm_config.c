/* Configs and headers of language models from anywhere: what is taken can be predicted. */
#include <math.h>

#include "fuzz_dataset.h"
#include "predict/llm/forecast.h"

/* Numbers that were counted from a config that passed its checks are finite and not negative. */
static void check_work(const struct nrg_llm_config *config, const struct nrg_llm_load *load)
{
    struct nrg_llm_work work;
    if (nrg_llm_work_make(&work, config, load, NULL))
        return;
    for (int t = 0; t < NRG_LLM_TERMS; t++)
        if (!(work.terms[t] >= 0) || !isfinite(work.terms[t]))
            abort();
    if (!(work.gpu_bytes >= 0) || !isfinite(work.gpu_bytes))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct nrg_llm_config config;
    struct nrg_llm_forecast forecast;
    struct nrg_profile profile = {
        .is_llm = true, .device = "x", .llm = {.static_w = 1, .seen = 511}};
    const struct nrg_llm_load load = {
        .batch = 8, .prompt = 100, .output = 10, .gpus = 2, .tp = 2, .weights = NRG_LLM_FP8};
    const struct nrg_llm_forecast_options how = {.memory_bytes = 1e9};
    char *copy = copy_of(bytes, size);
    if (!nrg_llm_config_read_bytes(&config, (const uint8_t *)copy, size, "fuzz", false, NULL)) {
        check_work(&config, &load);
        nrg_llm_forecast(&forecast, &config, &load, &profile, &how, NULL);
    }
    free(copy);
    return 0;
}
