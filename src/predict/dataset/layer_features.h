/*
 * A convolution, pool or dense layer as the layer model sees it: sizes of input, output, window,
 * padding and step, from an operator of a TensorRT engine info or of a model summary.
 *
 * `original`: as the Jetson study took them, with its errors, so that its models can be reproduced:
 * every pool counts as a global one, because TensorRT calls a pool's window WindowSize and not
 * Kernel, and groups are ignored. Pure.
 */
#ifndef NRG_PREDICT_DATASET_LAYER_FEATURES_H
#define NRG_PREDICT_DATASET_LAYER_FEATURES_H

#include <stdbool.h>

#include "graph/graph.h"
#include "predict/dataset/feature.h"

enum nrg_layer_type { NRG_LAYER_CONV, NRG_LAYER_POOL, NRG_LAYER_DENSE, NRG_LAYER_TYPES };

/* "convolutional", "pooling", "dense": as the study calls them. */
extern const char *const nrg_layer_type_names[NRG_LAYER_TYPES];
/* -1: unknown name. */
int nrg_layer_type_find(const char *name);

/* Fills the layer's features. -1: none of the three types, or its shapes are unknown. */
int nrg_layer_of(const struct nrg_op *op, bool original, double features[NRG_FEATURES]);

#endif
