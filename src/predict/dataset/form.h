/*
 * Our own form of data sets (docs/dataset.md). The CSV and the JSON reader both make records, and
 * only this file knows what a record must have.
 *
 * Ownership: init, use for one file, release; rows go into the data set. Errors: 0, or -errno with
 * err. Threads: one per data set.
 */
#ifndef NRG_PREDICT_DATASET_FORM_H
#define NRG_PREDICT_DATASET_FORM_H

#include "base/csv.h"
#include "base/map.h"
#include "predict/dataset/read.h"

enum nrg_form_text {
    NRG_FORM_ID,
    NRG_FORM_DEVICE,
    NRG_FORM_MODEL,
    NRG_FORM_NODE,
    NRG_FORM_KIND,
    NRG_FORM_LEVEL,
    NRG_FORM_COUNTS,
    NRG_FORM_PROVENANCE,
    NRG_FORM_TEXTS
};
extern const char *const nrg_form_texts[NRG_FORM_TEXTS];

/* A number's column: which feature, or one of those below, and in which unit. */
enum { NRG_FORM_ENERGY = NRG_FEATURES, NRG_FORM_REPEATS, NRG_FORM_MULTIPLICITY, NRG_FORM_NUMBERS };
/* The number of that name, -1: unknown name. `unit`: the factor to SI. */
int nrg_form_number(const char *name, size_t len, double *unit);
const char *nrg_form_number_name(int number);

struct nrg_record {
    struct nrg_cell texts[NRG_FORM_TEXTS]; /* text NULL: absent */
    double numbers[NRG_FORM_NUMBERS];      /* SI; NAN: absent */
};

struct nrg_form {
    struct nrg_dataset *set;
    const struct nrg_read_options *options;
    const char *name; /* of the file */
    struct nrg_map ids;
    struct nrg_draft draft;
    bool part_left_out; /* of the current record */
};

void nrg_form_init(struct nrg_form *form, struct nrg_dataset *set, const char *name,
                   const struct nrg_read_options *options);
void nrg_form_release(struct nrg_form *form);

/* For each record: clear, its parts, then the record itself. */
void nrg_form_clear(struct nrg_form *form, struct nrg_record *record);
int nrg_form_part(struct nrg_form *form, struct nrg_cell id, double count, long long line,
                  struct nrg_error *err);
int nrg_form_add(struct nrg_form *form, const struct nrg_record *record, long long line,
                 struct nrg_error *err);

#endif
