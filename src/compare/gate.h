/*
 * `--fail-if "energy > +2%"`: a condition on a comparison, for CI. It is met when it holds for the
 * whole interval, so that chance alone rarely breaks a build. Without an interval nothing tells
 * whether it is.
 */
#ifndef NRG_COMPARE_GATE_H
#define NRG_COMPARE_GATE_H

#include "compare/compare.h"

struct nrg_gate {
    enum nrg_compare_quantity what;
    bool more;    /* '>' */
    double ratio; /* 1.02 for +2% */
};

/* "QUANTITY > +N%" or "QUANTITY < -N%". 0 or -EINVAL. */
int nrg_gate_parse(struct nrg_gate *gate, const char *text);

enum nrg_gate_result { NRG_GATE_NOT_MET, NRG_GATE_MET, NRG_GATE_UNDECIDED };
/* "not met", "met", "undecided" */
extern const char *const nrg_gate_words[];
/* Of a condition as text, which has been parsed before. */
enum nrg_gate_result nrg_gate_judge(const char *condition, const struct nrg_comparison *comparison);

#endif
