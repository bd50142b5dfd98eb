/*
 * `nrg run --torch`: makes the Python programs that the command starts mark their PyTorch modules,
 * without a change in them. The environment is all that is changed: PYTHONPATH begins with a folder
 * whose sitecustomize.py waits for PyTorch (python/nrg/inject), NRG_TORCH says what to mark, and
 * NRG_TORCH_MODELS names a folder for the graphs that nrg.torch.trace() makes.
 *
 * Prepare before the command starts, collect after it has ended, release in any case. Nothing here
 * fails a run: problems are reported on stderr.
 */
#ifndef NRG_CLI_RUN_TORCH_H
#define NRG_CLI_RUN_TORCH_H

#include "record/sampler/recorder.h"

struct nrg_run_torch {
    char models[256]; /* the folder, "" when there is none */
};

enum nrg_torch_mode { NRG_TORCH_OFF, NRG_TORCH_MODULES, NRG_TORCH_OPERATORS };

/* `mode` is what NRG_TORCH will be: "modules" or "operators". Changes this process's environment.
 * Says it on stderr when nrg's Python parts are not found. */
void nrg_run_torch_prepare(struct nrg_run_torch *torch, const char *mode);
/* Stores the graphs that the command has written in the recording. */
void nrg_run_torch_collect(struct nrg_run_torch *torch, struct nrg_recorder *recorder);
void nrg_run_torch_release(struct nrg_run_torch *torch);

#endif
