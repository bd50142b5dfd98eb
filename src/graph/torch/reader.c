/*
 * Readers of PyTorch's own files: TorchScript archives (torch.jit.save), checkpoints (torch.save)
 * and the bare pickle streams torch.save wrote before 1.6. They hold parameters and the module
 * tree; a TorchScript archive's operators are in code/ as Python text, which is not read (its
 * graph comes from a dump: see the torchscript reader).
 */
#include <errno.h>
#include <string.h>

#include "graph/readers.h"
#include "graph/torch/archive.h"
#include "graph/torch/internal.h"

/* The pickled magic number that the first of the old stream's pickles holds. */
static const uint8_t legacy_magic[] = {0x80, 2,    0x8a, 10,   0x6c, 0xfc, 0x9c,
                                       0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};

static int read_data(struct nrg_torch_walk *walk, const struct nrg_pickle *pickle, size_t at,
                     int (*visit)(struct nrg_torch_walk *, struct nrg_pkl *))
{
    struct nrg_arena values = {0};
    struct nrg_pkl *root = NULL;
    int rc = nrg_pickle_read(pickle, &at, &values, &root, walk->err);
    if (!rc)
        rc = visit(walk, root);
    nrg_arena_release(&values);
    nrg_torch_walk_release(walk);
    return rc;
}

static void warn_byte_order(struct nrg_zip *zip, struct nrg_model *model)
{
    const struct nrg_zip_entry *entry = nrg_zip_find(zip, "byteorder");
    const uint8_t *bytes;
    size_t size;
    if (entry && !nrg_zip_read(zip, entry, &bytes, &size, NULL) && size >= 3 &&
        !memcmp(bytes, "big", 3))
        nrg_model_warn(model, "it was written by a big-endian machine");
}

static int read_archive(const struct nrg_source *source, struct nrg_model *model, bool script,
                        struct nrg_error *err)
{
    struct nrg_zip zip;
    struct nrg_torch_code code;
    struct nrg_pickle pickle = {.where = source->name, .allow = nrg_torch_allows};
    int rc = nrg_zip_open(&zip, source->bytes, source->size, source->name, err);
    const struct nrg_zip_entry *entry = rc ? NULL : nrg_zip_find(&zip, "data.pkl");
    nrg_torch_code_init(&code, &zip);
    if (!rc && !entry)
        rc = nrg_archive_refuse(&zip, err);
    if (!rc)
        rc = nrg_zip_read(&zip, entry, &pickle.bytes, &pickle.size, err);
    if (!rc) {
        struct nrg_torch_walk walk = {.model = model,
                                      .where = source->name,
                                      .err = err,
                                      .code = script ? &code : NULL,
                                      .zip = &zip};
        warn_byte_order(&zip, model);
        rc = read_data(&walk, &pickle, 0,
                       script ? nrg_torch_walk_script : nrg_torch_walk_checkpoint);
    }
    nrg_torch_code_release(&code);
    nrg_zip_release(&zip);
    return rc;
}

static int match_script(const struct nrg_source *source)
{
    switch (nrg_archive_kind(source)) {
    case NRG_ARCHIVE_SCRIPT:
        return 95;
    case NRG_ARCHIVE_BROKEN:
    case NRG_ARCHIVE_OTHER:
        return 20; /* no other reader takes it: this one says what is wrong */
    default:
        return 0;
    }
}

static int read_script(const struct nrg_source *source, struct nrg_model *model,
                       struct nrg_error *err)
{
    return read_archive(source, model, true, err);
}

const struct nrg_reader nrg_reader_torchscript_archive = {
    .name = "torchscript-archive",
    .summary = "TorchScript archive (torch.jit.save, .pt): modules and parameters",
    .match = match_script,
    .read = read_script,
};

static int match_checkpoint(const struct nrg_source *source)
{
    bool legacy = source->size >= sizeof legacy_magic &&
                  !memcmp(source->bytes, legacy_magic, sizeof legacy_magic);
    return legacy || nrg_archive_kind(source) == NRG_ARCHIVE_CHECKPOINT ? 95 : 0;
}

/* Magic, protocol version and machine facts are pickles of their own before the data. */
static int read_legacy(const struct nrg_source *source, struct nrg_model *model,
                       struct nrg_error *err)
{
    struct nrg_pickle pickle = {.bytes = source->bytes,
                                .size = source->size,
                                .where = source->name,
                                .allow = nrg_torch_allows};
    struct nrg_torch_walk walk = {.model = model, .where = source->name, .err = err};
    size_t at = 0;
    for (int i = 0; i < 3; i++) {
        struct nrg_arena values = {0};
        struct nrg_pkl *ignored;
        int rc = nrg_pickle_read(&pickle, &at, &values, &ignored, err);
        nrg_arena_release(&values);
        if (rc)
            return rc;
    }
    return read_data(&walk, &pickle, at, nrg_torch_walk_checkpoint);
}

static int read_checkpoint(const struct nrg_source *source, struct nrg_model *model,
                           struct nrg_error *err)
{
    if (nrg_zip_looks_like(source->bytes, source->size))
        return read_archive(source, model, false, err);
    return read_legacy(source, model, err);
}

const struct nrg_reader nrg_reader_torch_checkpoint = {
    .name = "torch-checkpoint",
    .summary = "PyTorch checkpoint (torch.save): parameters",
    .match = match_checkpoint,
    .read = read_checkpoint,
};
