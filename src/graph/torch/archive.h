/*
 * Which kind of model a ZIP archive holds, by the names of its entries: several formats are ZIP
 * files, and their readers must agree on which of them takes a file. Nothing is kept open.
 */
#ifndef NRG_GRAPH_TORCH_ARCHIVE_H
#define NRG_GRAPH_TORCH_ARCHIVE_H

#include "graph/reader.h"
#include "graph/torch/zip.h"

enum nrg_archive_kind {
    NRG_ARCHIVE_NONE,   /* no ZIP at all */
    NRG_ARCHIVE_BROKEN, /* begins like one, its directory cannot be read */
    NRG_ARCHIVE_SCRIPT,
    NRG_ARCHIVE_CHECKPOINT,
    NRG_ARCHIVE_PT2,
    NRG_ARCHIVE_KERAS,
    NRG_ARCHIVE_OTHER
};

enum nrg_archive_kind nrg_archive_kind(const struct nrg_source *source);

/* An error that says what the archive is instead, and what to do. Returns its code. */
int nrg_archive_refuse(const struct nrg_zip *zip, struct nrg_error *err);

#endif
