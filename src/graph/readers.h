/* The readers' structs, one line each; only reader.c and the readers themselves include it. */
#ifndef NRG_GRAPH_READERS_H
#define NRG_GRAPH_READERS_H

#include "graph/reader.h"

extern const struct nrg_reader nrg_reader_onnx;
extern const struct nrg_reader nrg_reader_tensorrt;
extern const struct nrg_reader nrg_reader_model_summary;
extern const struct nrg_reader nrg_reader_torchscript;
extern const struct nrg_reader nrg_reader_torchscript_archive;
extern const struct nrg_reader nrg_reader_torch_checkpoint;
extern const struct nrg_reader nrg_reader_safetensors;
extern const struct nrg_reader nrg_reader_shard_index;
extern const struct nrg_reader nrg_reader_gguf;
extern const struct nrg_reader nrg_reader_modules_json;
extern const struct nrg_reader nrg_reader_foreign;
extern const struct nrg_reader nrg_reader_pt2;

#endif
