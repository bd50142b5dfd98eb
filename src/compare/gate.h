/*
 * `--fail-if "energy > +2%"`: a condition on a comparison, for CI. It is met when it holds for the
 * whole interval, so that chance alone rarely breaks a build; without an interval it is never met.
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
bool nrg_gate_is_met(const struct nrg_gate *gate, const struct nrg_comparison *comparison);

#endif
