/*
 * See nvml/internal.h. CUDA's MPS lets the processes of several programs compute side by side on
 * one GPU, through a server. How much of the processors a client may use at most is in its
 * environment (CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, in percent); limits that were set in the control
 * daemon are nowhere to be read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sensors/nvml/internal.h"

#define MAX_ENVIRONMENT 32768 /* of a longer one the head is looked at */
#define LIMIT           "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="

/* The kernel keeps 15 letters of a process's name. */
bool nrg_nvml_is_mps_server(const struct nrg_root *root, unsigned pid)
{
    char path[48], name[32];
    snprintf(path, sizeof path, "/proc/%u/comm", pid);
    return !nrg_root_read_label(root, path, name, sizeof name) && !strcmp(name, "nvidia-cuda-mps");
}

double nrg_nvml_mps_limit(const struct nrg_root *root, int32_t pid)
{
    char path[48], text[MAX_ENVIRONMENT], *rest;
    double limit = 1;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    ssize_t len = pid > 0 ? nrg_root_read_head(root, path, text, sizeof text) : -1;
    for (const char *p = text; len > 0 && p < text + len; p += strlen(p) + 1) {
        if (strncmp(p, LIMIT, strlen(LIMIT)) != 0)
            continue;
        double percent = strtod(p + strlen(LIMIT), &rest);
        if (!*rest && percent > 0 && percent <= 100)
            limit = percent / 100;
    }
    return limit;
}
