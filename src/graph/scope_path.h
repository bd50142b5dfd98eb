/*
 * Node names of exporters as module paths: "/layer1/layer1.0/conv1/Conv" is the operator Conv of
 * module "layer1.0.conv1". A child of a Sequential repeats its parent's name ("layer1.0" under
 * "layer1"). Shared by ONNX and TensorRT, which keeps ONNX's names.
 */
#ifndef NRG_GRAPH_SCOPE_PATH_H
#define NRG_GRAPH_SCOPE_PATH_H

#include <stddef.h>

/* May shorten the path that was put together so far; NULL: nothing to shorten. */
typedef size_t nrg_scope_trim_fn(const char *path, size_t len, const void *arg);

/* The path's length, "" for an operator of the root; -1 when the label has no '/'. */
int nrg_scope_path(const char *label, size_t len, char *path, size_t size, nrg_scope_trim_fn *trim,
                   const void *arg);

#endif
