/* Loads CUPTI into a process that uses CUDA. It is never unloaded. */
#ifndef NRG_INJECT_CUPTI_LOAD_H
#define NRG_INJECT_CUPTI_LOAD_H

#include <stdbool.h>

#include "inject/cupti_api.h"

#define NRG_CUPTI_PATH 4096

/* False: it was not found, or *lacks is a function that it does not have. */
bool nrg_cupti_load(struct nrg_cupti *cupti, const char **lacks);

#endif
