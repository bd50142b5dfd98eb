/* Profiles from anywhere, and predictions with what they say. */
#include "fuzz_dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct nrg_profile profile;
    struct nrg_estimate e;
    FILE *out = fopen("/dev/null", "w");
    char *text = copy_of(bytes, size);
    if (!nrg_profile_parse(&profile, text, size, "fuzz", NULL)) {
        if (!profile.is_layer) {
            nrg_physical_operator(&profile.physical, "Linear", (double[]){1, 1e6, 1e5}, &e);
            nrg_physical_finish(&profile.physical, NRG_NODE_MODULE, (double[]){1, 1e5, 0, 0}, &e);
        }
        json_decref(nrg_profile_json(&profile));
        if (out) {
            nrg_profile_text(&profile, "fuzz", out);
            nrg_profile_compare_text(&profile, &profile, out);
        }
        nrg_profile_release(&profile);
    }
    if (out)
        fclose(out);
    free(text);
    return 0;
}
