/* The part of nrg import that reads layer times of other programs (import/join.h). */
#ifndef NRG_CLI_IMPORT_LAYERS_H
#define NRG_CLI_IMPORT_LAYERS_H

#include "cli/cli.h"

struct nrg_import_layer_values {
    const char *into, *power_log, *times, *offset, *align, *layout, *domain;
};

/* What `nrg import` was given besides; output NULL: none was given. Returns the exit code. */
struct nrg_import_layer_call {
    const struct nrg_import_layer_values *values;
    const char *output;
    bool force;
    int64_t zone_offset_ns;
    double idle_w;
    char **files;
    int n_files;
};

/* True when the options ask for it, or the first file is of that kind. */
bool nrg_import_wants_layers(const struct nrg_import_layer_call *call);
int nrg_import_run_layers(struct nrg_cli *cli, const struct nrg_import_layer_call *call);

/* Where a recording goes when nothing is said: the file's name with .nrg, here. */
void nrg_import_default_output(const char *path, char *out, size_t size);

#endif
