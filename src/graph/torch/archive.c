/* See archive.h. Opens the directory only; no entry is unpacked to tell the kind. */
#include "graph/torch/archive.h"

#include <errno.h>

static bool has_entry(const struct nrg_zip *zip, const char *name)
{
    return nrg_zip_find(zip, name) != NULL;
}

static enum nrg_archive_kind kind_of(const struct nrg_zip *zip)
{
    if (has_entry(zip, "serialized_exported_program.json") || nrg_zip_first(zip, "models/"))
        return NRG_ARCHIVE_PT2;
    if (has_entry(zip, "data.pkl"))
        return has_entry(zip, "constants.pkl") || nrg_zip_first(zip, "code/")
                   ? NRG_ARCHIVE_SCRIPT
                   : NRG_ARCHIVE_CHECKPOINT;
    if (has_entry(zip, "config.json") &&
        (has_entry(zip, "metadata.json") || has_entry(zip, "model.weights.h5")))
        return NRG_ARCHIVE_KERAS;
    return NRG_ARCHIVE_OTHER;
}

enum nrg_archive_kind nrg_archive_kind(const struct nrg_source *source)
{
    struct nrg_zip zip;
    if (!nrg_zip_looks_like(source->bytes, source->size))
        return NRG_ARCHIVE_NONE;
    bool broken = nrg_zip_open(&zip, source->bytes, source->size, source->name, NULL);
    enum nrg_archive_kind kind = broken ? NRG_ARCHIVE_BROKEN : kind_of(&zip);
    nrg_zip_release(&zip);
    return kind;
}

int nrg_archive_refuse(const struct nrg_zip *zip, struct nrg_error *err)
{
    static const struct {
        const char *entry, *what;
    } known[] = {
        {"serialized_exported_program.json",
         "is a torch.export program: read it with --format pt2"},
        {"models/", "is a torch.export program: read it with --format pt2"},
        {"model.json", "is a TorchScript archive of PyTorch 1.3 or older: load and save it again "
                       "with a newer PyTorch"},
        {"data/aotinductor/", "is a compiled AOTInductor package: it has no graph; give the .pt2 "
                              "that torch.export.save wrote"},
        {"bytecode.pkl", "is a mobile (bytecode) archive without data.pkl"},
        {"model.weights.h5", "is a Keras model: convert it to ONNX (tf2onnx) and read that"},
        {"MAR-INF/", "is a TorchServe archive: unpack it and give the model inside"},
        {"saved_model.pb", "is a zipped TensorFlow SavedModel: convert it to ONNX (tf2onnx)"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (nrg_zip_first(zip, known[i].entry))
            return nrg_fail(err, -ENOTSUP, zip->where, "%s", known[i].what);
    return nrg_fail(err, -EBADMSG, zip->where,
                    "is a ZIP archive of %zu entries, but none that nrg knows (data.pkl, models/, "
                    "serialized_exported_program.json)",
                    zip->n_entries);
}
