/* The part of nrg import that reads layer times of other programs (import/join.h). */
#ifndef NRG_CLI_IMPORT_LAYERS_H
#define NRG_CLI_IMPORT_LAYERS_H

#include "cli/internal.h"
#include "import/join.h"

struct nrg_import_layer_values {
    struct nrg_import_join_options join; /* output NULL: none was given */
    const char *into, *power_log;
    struct nrg_given_ns offset, align;
    int layout; /* -1: not given */
};

/* Whether the options ask for layer times, or the first file holds some. */
bool nrg_import_wants_layers(const struct nrg_import_layer_values *values);
/* Returns the exit code. */
int nrg_import_run_layers(struct nrg_cli *cli, struct nrg_import_layer_values *values);

/* Applies --offset and --align. */
void nrg_join_place(struct nrg_import_join_options *join, const struct nrg_given_ns *offset,
                    const struct nrg_given_ns *align);

#endif
