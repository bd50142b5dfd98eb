/*
 * Kinds of operators that share one energy model: a linear layer is a matrix product whatever a
 * framework calls it. Names of PyTorch's operators, of its module classes and of ONNX meet here, so
 * that a profile made from one predicts a graph of another.
 */
#ifndef NRG_PREDICT_KINDS_H
#define NRG_PREDICT_KINDS_H

/* "gemm", "bmm", "conv", "softmax"…; the kind itself when no group has it. */
const char *nrg_kind_group(const char *kind);

#endif
