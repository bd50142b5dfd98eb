/*
 * Groups of operator kinds that share one energy model: a linear layer is a matrix product whatever
 * a framework calls it. The table has the names of PyTorch's operators and module classes and of
 * ONNX, so that a profile made from one predicts a graph of another. Pure.
 */
#ifndef NRG_PREDICT_KINDS_H
#define NRG_PREDICT_KINDS_H

/* "gemm", "bmm", "conv", "softmax"…; the kind itself when it is in no group. */
const char *nrg_kind_group(const char *kind);

/*
 * Forms of one group for which libraries have different code, so that the price of one form is only
 * a guess for the other: a linear layer, whose weight is stored transposed, and GPT's Conv1D. A
 * bit, or 0: the kind may have any form.
 */
enum { NRG_FORM_LINEAR = 1, NRG_FORM_CONV1D = 2, NRG_FORMS = 2 };
unsigned nrg_kind_form(const char *kind);
extern const char *const nrg_form_names[NRG_FORMS]; /* by bit: "linear", "conv1d" */

#endif
