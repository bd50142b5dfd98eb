/*
 * A convolution, pool or dense layer as the layer model sees it: sizes of input, output, window,
 * padding and step, from an operator of a TensorRT engine info or of a model summary.
 *
 * `original`: as the Jetson study took them, with what it got wrong (every pool is taken to be a
 * global one, because TensorRT calls a pool's window WindowSize and not Kernel; groups are not
 * looked at), so that its models can be made again.
 */
#ifndef NRG_PREDICT_LAYER_FEATURES_H
#define NRG_PREDICT_LAYER_FEATURES_H

#include <stdbool.h>

#include "graph/graph.h"
#include "predict/dataset/feature.h"

enum nrg_layer_type { NRG_LAYER_CONV, NRG_LAYER_POOL, NRG_LAYER_DENSE, NRG_LAYER_TYPES };

/* "convolutional", "pooling", "dense": as the study calls them. */
extern const char *const nrg_layer_type_names[NRG_LAYER_TYPES];
/* -1: no layer type is called that. */
int nrg_layer_type_find(const char *name);

/* -1: the operator is none of the three, or its shapes are unknown. Fills the layer's features. */
int nrg_layer_of(const struct nrg_op *op, bool original, double features[NRG_FEATURES]);

#endif
