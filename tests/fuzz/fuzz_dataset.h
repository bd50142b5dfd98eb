/* What all targets of data sets do with a set that was read: summary, fit, intervals, writing. */
#include <stdlib.h>
#include <string.h>

#include "predict/compat/layer_json.h"
#include "predict/compat/tree.h"
#include "predict/dataset/internal.h"
#include "predict/profile_json.h"
#include "report/prediction/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* A writable copy that ends where the input does, so that a byte too far is seen. */
static inline char *copy_of(const uint8_t *bytes, size_t size)
{
    char *text = malloc(size ? size : 1);
    if (!text)
        abort();
    if (size)
        memcpy(text, bytes, size);
    return text;
}

static inline void use(struct nrg_dataset *set)
{
    struct nrg_data_summary summary;
    struct nrg_profile profile;
    struct nrg_train_options options = {.confidence = 0.9};
    FILE *out = fopen("/dev/null", "w");
    if (!out || nrg_dataset_finish(set, NULL)) {
        if (out)
            fclose(out);
        return;
    }
    if (!nrg_data_summary_make(&summary, set)) {
        nrg_dataset_text_report(set, &summary, out);
        json_decref(nrg_dataset_summary_json(set, &summary));
        nrg_data_summary_release(&summary);
    }
    nrg_dataset_write_csv(set, out);
    json_decref(nrg_dataset_json(set));
    for (int features = 0; features < 2; features++) {
        options.features = (enum nrg_feature_set)features;
        if (nrg_profile_train(&profile, set, &options, NULL))
            continue;
        json_decref(nrg_profile_json(&profile));
        nrg_profile_release(&profile);
    }
    fclose(out);
}
