/* What the rows of an attribution point into. Inside src/attribute. */
#ifndef NRG_ATTRIBUTE_ROWS_MEMORY_H
#define NRG_ATTRIBUTE_ROWS_MEMORY_H

#include "base/arena.h"
#include "record/read/span_catalog.h"

struct nrg_rows_memory {
    struct nrg_arena arena;
    struct nrg_span_catalog catalog; /* names */
};

#endif
