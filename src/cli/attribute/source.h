/*
 * Where `nrg attribute` gets its recording from: a file, or a power log and layer times that are
 * joined on the way; and the models that its rows are joined with.
 */
#ifndef NRG_CLI_ATTRIBUTE_SOURCE_H
#define NRG_CLI_ATTRIBUTE_SOURCE_H

#include "attribute/model_join.h"
#include "cli/internal.h"
#include "import/join.h"
#include "record/read/recording.h"

struct nrg_attribute_source {
    struct nrg_recording *recording;
    struct nrg_import_join_result joined; /* of logs */
    bool from_logs;
    struct nrg_analysis *models;
    size_t n_models;
};

/* `path` NULL: from the logs. Exit code 0, or 1 after saying why. */
int nrg_attribute_source_open(struct nrg_attribute_source *source, const struct nrg_cli *cli,
                              const char *path, const struct nrg_import_join_options *logs);
/* Adds what was said when layer times were imported. */
void nrg_attribute_source_notes(const struct nrg_attribute_source *source,
                                struct nrg_attribution *attribution);
/*
 * Reads the models given, and those that the recording keeps, and fills the rows. A model of the
 * recording that can't be read is a note, one that was given is an error: 1.
 */
int nrg_attribute_source_models(struct nrg_attribute_source *source, const struct nrg_list *paths,
                                struct nrg_attribution *attribution, bool modules_in_sum);
void nrg_attribute_source_close(struct nrg_attribute_source *source);

#endif
