/*
 * Model files of other families, recognised so that the error says what the file is and how to
 * convert it to a format that nrg reads. Nothing is parsed here. (Keras and TensorFlow keep their
 * graph in forms that only TensorFlow itself turns into operators with shapes; ONNX is the way
 * through.)
 */
#include <errno.h>
#include <string.h>

#include "base/input.h"
#include "graph/readers.h"
#include "graph/torch/archive.h"

#define NO_TORCH                                                                                   \
    "is a pickle that torch.save did not write: it is not read; save a state_dict or an ONNX file"
#define TF2ONNX "convert it with `python -m tf2onnx.convert` and read the .onnx"

static const struct foreign {
    const char *ending; /* of the file's name, or NULL */
    const char *magic;  /* or NULL: the ending alone decides */
    size_t magic_len, magic_at;
    int sure;
    const char *what;
} foreign[] = {
    {NULL, NRG_LFS_MAGIC, sizeof NRG_LFS_MAGIC - 1, 0, 100, NRG_LFS_ADVICE},
    {"saved_model.pb", NULL, 0, 0, 95, "is a TensorFlow SavedModel: " TF2ONNX},
    {"saved_model.pbtxt", NULL, 0, 0, 95, "is a TensorFlow SavedModel: " TF2ONNX},
    {".pb", "\n", 1, 0, 40, "looks like a TensorFlow GraphDef: " TF2ONNX},
    {".pbtxt", NULL, 0, 0, 40, "looks like a TensorFlow graph as text: " TF2ONNX},
    {NULL, "\x89HDF\r\n\x1a\n", 8, 0, 95,
     "is an HDF5 file, as Keras writes its models (.h5): load it in Keras and " TF2ONNX},
    {NULL, "TFL3", 4, 4, 95, "is a TensorFlow Lite model: " TF2ONNX " (--tflite)"},
    {NULL, "ustar", 5, 257, 60,
     "is a tar archive (PyTorch before 0.1.10, NeMo…): unpack it and give the model inside"},
    {NULL, "\x93NUMPY", 6, 0, 95, "is one NumPy array, no model"},
    {".engine", NULL, 0, 0, 30,
     "is a TensorRT engine: give its layer information (trtexec --exportLayerInfo=FILE)"},
    {".mlmodel", NULL, 0, 0, 40, "is a Core ML model: export the original model to ONNX"},
    {".pdmodel", NULL, 0, 0, 40, "is a PaddlePaddle model: convert it with paddle2onnx"},
    {NULL, "\x80\x02", 2, 0, 10, NO_TORCH},
    {NULL, "\x80\x03", 2, 0, 10, NO_TORCH},
    {NULL, "\x80\x04\x95", 3, 0, 10, NO_TORCH},
    {NULL, "\x80\x05\x95", 3, 0, 10, NO_TORCH},
};

static const struct foreign keras = {
    .sure = 95,
    .what =
        "is a Keras model (.keras): its weights are in HDF5; load it in Keras, model.export() it "
        "and convert that with `python -m tf2onnx.convert`, then read the .onnx"};

static bool is_like(const struct foreign *row, const struct nrg_source *source)
{
    size_t n = strlen(source->name), m = row->ending ? strlen(row->ending) : 0;
    if (n < m || (m && strcmp(source->name + n - m, row->ending) != 0))
        return false;
    return !row->magic || (source->size >= row->magic_at + row->magic_len &&
                           !memcmp(source->bytes + row->magic_at, row->magic, row->magic_len));
}

static const struct foreign *find_foreign(const struct nrg_source *source)
{
    if (nrg_archive_kind(source) == NRG_ARCHIVE_KERAS)
        return &keras;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (is_like(&foreign[i], source))
            return &foreign[i];
    return NULL;
}

static int match_foreign(const struct nrg_source *source)
{
    const struct foreign *row = find_foreign(source);
    return row ? row->sure : 0;
}

static int refuse_foreign(const struct nrg_source *source, struct nrg_model *model,
                          struct nrg_error *err)
{
    const struct foreign *row = find_foreign(source);
    return nrg_fail(err, -ENOTSUP, source->name, "%s",
                    row ? row->what : "is of no format that nrg knows");
}

const struct nrg_reader nrg_reader_foreign = {
    .name = "foreign",
    .summary = "TensorFlow, Keras and others: refused, with the way through ONNX",
    .match = match_foreign,
    .read = refuse_foreign,
};
