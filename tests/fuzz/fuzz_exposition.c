/*
 * Fuzz target: a page of metrics, and what is made of it. Sums are counts or unknown, whatever a
 * server sends.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sensors/llm/families.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nrg_server_page page;
    char *exact = malloc(size ? size : 1); /* a byte too far is noticed */
    if (!exact)
        return 0;
    memcpy(exact, data, size);
    nrg_server_page_read(exact, size, &page);
    free(exact);
    if (page.samples + page.refused > size)
        abort();
    for (size_t c = 0; c < NRG_SERVER_COUNTS; c++)
        if (!isnan(page.value[c]) &&
            (!page.family || !(page.value[c] >= 0 && page.value[c] < 9e15)))
            abort();
    return 0;
}
