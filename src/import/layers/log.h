/*
 * Logs of cycles of layers, each layer with a run time and perhaps a window: collected by cycle and
 * layer, then laid out as spans. Shared by the readers of TensorRT's and of the PyTorch phase's
 * logs. import/join.h describes the result. Inside src/import/layers.
 *
 * Embedded: init, release. Errors are negative errno. One thread at a time.
 */
#ifndef NRG_IMPORT_LAYERS_LOG_H
#define NRG_IMPORT_LAYERS_LOG_H

#include "import/layers/read.h"

struct nrg_layer_cycle;

struct nrg_layer_log {
    struct nrg_layer_import *im;
    int64_t track;
    struct nrg_layer_cycle *cycles;
    size_t n_cycles, cap_cycles;
    uint64_t layers, runs;
    uint64_t bad;    /* runs without a usable time */
    uint64_t uneven; /* layers that have fewer cycles than others */
    bool burst;      /* windows end at time stamps that were taken after the inference */
};

int nrg_layer_log_init(struct nrg_layer_log *log, struct nrg_layer_import *im);
void nrg_layer_log_release(struct nrg_layer_log *log);

/* The number of a layer, or -errno. */
int64_t nrg_layer_log_name(struct nrg_layer_log *log, const char *text, size_t len);
/*
 * A run of it in a cycle (from 0). duration_ms: NAN or negative is counted as bad and left out;
 * begin and end are NRG_MISSING when the log has no times. 0 or -errno.
 */
int nrg_layer_log_run(struct nrg_layer_log *log, size_t cycle, int64_t layer, int64_t begin_ns,
                      int64_t end_ns, double duration_ms);
/* Lays out all runs; `timed`: they have windows. */
int nrg_layer_log_finish(struct nrg_layer_log *log, bool timed, struct nrg_error *err);

/* Milliseconds in ns, not rounded further. attribute/cycles/window.c rounds to microseconds, as
 * Python's timedelta does in the earlier Jetson tool. */
int64_t nrg_layer_window_ns(double duration_ms);

#endif
