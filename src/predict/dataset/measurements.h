/*
 * A data set in memory: measured nodes of models (operators, modules, whole models) with their
 * features and energy per call. A row is a distinct measurement; copies of it (the same layer
 * twelve times) are its multiplicity. A module or model lists what it is made of as parts, rows
 * that stand before it, so the tree is a graph of distinct measurements and compositions are exact.
 *
 * A feature has a column only when a row has the feature. Texts are interned:
 * equal ones are the same pointer. Everything belongs to the data set and is freed with it.
 *
 * What is left out of a file is noted and counted, with the reason.
 *
 * Init, read (several files may be read into one), finish, use, release. Errors: 0 or -errno.
 * Threads: one at a time while it is filled.
 */
#ifndef NRG_PREDICT_DATASET_MEASUREMENTS_H
#define NRG_PREDICT_DATASET_MEASUREMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "predict/dataset/feature.h"

enum nrg_node_level { NRG_NODE_OPERATOR, NRG_NODE_MODULE, NRG_NODE_MODEL, NRG_NODE_LEVELS };

struct nrg_module_part {
    uint32_t row;
    uint32_t count;
};

struct nrg_row {
    const char *device, *model, *node, *kind, *provenance;
    enum nrg_node_level level;
    double energy_j; /* of one call; > 0 */
    double repeats;  /* calls that were measured; NAN unknown */
    uint64_t multiplicity;
    uint32_t
        measurement; /* the first row with the same numbers: nodes that share one measurement */
    uint32_t first_part, n_parts;  /* direct children, in nrg_dataset.parts */
    uint32_t first_leaf, n_leaves; /* all operators below, in nrg_dataset.leaves */
};

/* Something to tell the user; equal texts are counted. */
struct nrg_note {
    const char *text, *where;
    long long line; /* of the first one, -1: none */
    size_t count;
};

struct nrg_dataset {
    struct nrg_arena arena;
    struct nrg_row *rows;
    size_t n, cap;
    double *columns[NRG_FEATURES]; /* n of each; NULL: no row has it */
    struct nrg_module_part *parts;
    size_t n_parts, cap_parts;
    struct nrg_module_part *leaves;
    size_t n_leaves, cap_leaves;
    struct nrg_note *notes;
    size_t n_notes, cap_notes;
    struct nrg_map names;
    struct nrg_index index; /* rows by content: number + 1 */
    const char *convention; /* whose counts rest_bytes are: "nrg", "irene"; NULL: unknown */
    size_t rows_read;       /* before copies were merged */
    bool recordings;        /* some rows were made of recordings */
};

/* A row that is being made; parts of it are rows that were added before. */
struct nrg_draft {
    struct nrg_row row;
    double features[NRG_FEATURES];
    struct nrg_module_part *parts;
    size_t n_parts, cap_parts;
};

void nrg_dataset_init(struct nrg_dataset *set);
void nrg_dataset_release(struct nrg_dataset *set);

/* A text of the data set that equals the given one, cleaned for people; NULL: out of memory. */
const char *nrg_dataset_text(struct nrg_dataset *set, const char *text, size_t len);

/* Everything unknown; keeps the list of parts to be used again. */
void nrg_draft_clear(struct nrg_draft *draft);
void nrg_draft_release(struct nrg_draft *draft);
/* Adds `count` of a row, or more of one that is there. 0 or -ENOMEM. */
int nrg_draft_part(struct nrg_draft *draft, uint32_t row, uint32_t count);

/*
 * Adds a measurement, or to the multiplicity of an equal one; its index in *at. 0 or -ENOMEM, also
 * when a text of the row is NULL: nrg_dataset_text had no memory for it.
 */
int nrg_dataset_add(struct nrg_dataset *set, const struct nrg_draft *draft, uint32_t *at);

/* Notes that something was left out or is unusual; equal notes are counted. 0 or -ENOMEM. */
int nrg_dataset_note(struct nrg_dataset *set, const char *where, long long line, const char *text);

/* Sets whose counts the features are; two conventions in one data set are an error. */
int nrg_dataset_counted_by(struct nrg_dataset *set, const char *convention, const char *where,
                           struct nrg_error *err);

/*
 * Drops the rows that are not marked, and those that have such a row as a part; before the data
 * set is finished. 0 or -ENOMEM.
 */
int nrg_dataset_keep(struct nrg_dataset *set, const bool *keep);

/*
 * After reading: operators below each node, and features that follow from parts. -ENODATA when
 * there is no row.
 */
int nrg_dataset_finish(struct nrg_dataset *set, struct nrg_error *err);

/* NAN when unknown. */
double nrg_row_feature(const struct nrg_dataset *set, size_t row, enum nrg_feature feature);
/* Batch x sequence, or the batch alone where there is no sequence. NAN when unknown. */
double nrg_row_size(const struct nrg_dataset *set, size_t row);

const char *nrg_node_level_name(enum nrg_node_level level);
/* -EINVAL: unknown name. */
int nrg_node_level_find(const char *name, size_t len, enum nrg_node_level *level);

/*
 * Distinct texts of a member, offsetof(struct nrg_row, device) or model, in order of appearance,
 * and for each row which one it has. The caller releases it. 0 or -ENOMEM.
 */
struct nrg_name_list {
    const char **names;
    size_t n, cap;
    uint32_t *of_row;
};
int nrg_dataset_list(const struct nrg_dataset *set, size_t member, struct nrg_name_list *list);
void nrg_name_list_release(struct nrg_name_list *list);

#endif
