/*
 * Kinds of operators that share one energy model: a linear layer is a matrix product whatever a
 * framework calls it. Names of PyTorch's operators, of its module classes and of ONNX meet here, so
 * that a profile made from one predicts a graph of another.
 */
#ifndef NRG_PREDICT_KINDS_H
#define NRG_PREDICT_KINDS_H

/* "gemm", "bmm", "conv", "softmax"…; the kind itself when no group has it. */
const char *nrg_kind_group(const char *kind);

/*
 * Forms of one group that libraries run by different code, so that prices of one are a guess for
 * the other: a linear layer, whose weight is stored transposed, and GPT's Conv1D. A bit, or 0: the
 * kind may be any of them.
 */
enum { NRG_FORM_LINEAR = 1, NRG_FORM_CONV1D = 2, NRG_FORMS = 2 };
unsigned nrg_kind_form(const char *kind);
extern const char *const nrg_form_names[NRG_FORMS]; /* by bit: "linear", "conv1d" */

#endif
