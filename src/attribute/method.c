/*
 * Which method a domain is attributed by, and why. A stretch that holds many updates of the
 * sensor is integrated: its edges are known, and only they are uncertain.
 */
#include <stdio.h>

#include "attribute/engine.h"

int nrg_method_choose(struct nrg_engine *e)
{
    for (size_t p = 0; p < e->n_parts; p++) {
        struct nrg_part *part = &e->parts[p];
        if (part->method == NRG_METHOD_AUTO || part->method == NRG_METHOD_REGRESS) {
            part->method = NRG_METHOD_INTEGRATE;
            snprintf(part->out->why, sizeof part->out->why, "energy between begin and end");
        }
    }
    return 0;
}
