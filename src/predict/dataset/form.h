/*
 * Our own form of data sets (docs/dataset.md), which CSV and JSON write differently: a record is
 * what both become, and this file alone knows what a record must have.
 */
#ifndef NRG_PREDICT_DATASET_FORM_H
#define NRG_PREDICT_DATASET_FORM_H

#include "base/csv.h"
#include "graph/nametab.h"
#include "predict/dataset/internal.h"

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
/* -1: no number is called that. `unit` is what one of it is in SI. */
int nrg_form_number(const char *name, size_t len, double *unit);
const char *nrg_form_number_name(int number);

struct nrg_record {
    struct nrg_cell texts[NRG_FORM_TEXTS]; /* text NULL: not there */
    double numbers[NRG_FORM_NUMBERS];      /* SI; NAN: not there */
};

struct nrg_form {
    struct nrg_dataset *set;
    const struct nrg_read_options *options;
    const char *name; /* of the file */
    struct nrg_nametab ids;
    struct nrg_draft draft;
    bool part_left_out; /* of the record at hand */
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
