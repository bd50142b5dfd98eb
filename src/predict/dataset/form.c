/*
 * See dataset/form.h. Names include the unit. Units other than SI are accepted where meters and
 * profilers commonly use them. The readers refuse the same quantity in two columns.
 */
#include "predict/dataset/form.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const nrg_form_texts[NRG_FORM_TEXTS] = {"id",   "device", "model",  "node",
                                                    "kind", "level",  "counts", "provenance"};

static const struct {
    const char *name;
    int number;
    double unit;
} other_numbers[] = {
    {"energy_j", NRG_FORM_ENERGY, 1},
    {"energy_mj", NRG_FORM_ENERGY, 1e-3},
    {"energy_uj", NRG_FORM_ENERGY, 1e-6},
    {"energy_kj", NRG_FORM_ENERGY, 1e3},
    {"energy_wh", NRG_FORM_ENERGY, 3600},
    {"time_ms", NRG_F_TIME_S, 1e-3},
    {"time_us", NRG_F_TIME_S, 1e-6},
    {"time_ns", NRG_F_TIME_S, 1e-9},
    {"gpu_energy_mj", NRG_F_GPU_ENERGY_J, 1e-3},
    {"repeats", NRG_FORM_REPEATS, 1},
    {"multiplicity", NRG_FORM_MULTIPLICITY, 1},
};

int nrg_form_number(const char *name, size_t len, double *unit)
{
    *unit = 1;
    int feature = nrg_name_find(nrg_feature_names, NRG_FEATURES, name, len);
    if (feature >= 0)
        return feature;
    for (size_t i = 0; i < sizeof other_numbers / sizeof *other_numbers; i++) {
        const char *other = other_numbers[i].name;
        if (strlen(other) == len && !memcmp(other, name, len)) {
            *unit = other_numbers[i].unit;
            return other_numbers[i].number;
        }
    }
    return -1;
}

const char *nrg_form_number_name(int number)
{
    size_t i = 0;
    if (number < NRG_FEATURES)
        return nrg_feature_names[number];
    while (other_numbers[i].number != number)
        i++;
    return other_numbers[i].name;
}

void nrg_form_init(struct nrg_form *form, struct nrg_dataset *set, const char *name,
                   const struct nrg_read_options *options)
{
    *form = (struct nrg_form){.set = set, .name = name, .options = options};
}

void nrg_form_release(struct nrg_form *form)
{
    nrg_map_release(&form->ids);
    nrg_draft_release(&form->draft);
}

void nrg_form_clear(struct nrg_form *form, struct nrg_record *record)
{
    nrg_draft_clear(&form->draft);
    form->part_left_out = false;
    *record = (struct nrg_record){0};
    for (int i = 0; i < NRG_FORM_NUMBERS; i++)
        record->numbers[i] = NAN;
}

static int no_memory(const struct nrg_form *form, struct nrg_error *err)
{
    return nrg_fail(err, -ENOMEM, form->name, "out of memory");
}

int nrg_form_part(struct nrg_form *form, struct nrg_cell id, double count, long long line,
                  struct nrg_error *err)
{
    int64_t at = nrg_map_number(&form->ids, id.text, id.len);
    if (at < 0)
        return nrg_fail_at(err, -EBADMSG, form->name, line,
                           "part '%.*s' is not the id of a row before this one",
                           (int)(id.len < 60 ? id.len : 60), id.text);
    if (!(count >= 1 && count <= 1e6 && floor(count) == count))
        return nrg_fail_at(err, -EBADMSG, form->name, line,
                           "a part's count is not a whole number from 1 to 1000000");
    form->part_left_out |= at == 0;
    if (at && nrg_draft_part(&form->draft, (uint32_t)at - 1, (uint32_t)count))
        return no_memory(form, err);
    return 0;
}

/* Refuses a record that is wrong in itself; sets the draft's level. */
static int check_record(struct nrg_form *form, const struct nrg_record *r, long long line,
                        struct nrg_error *err)
{
    static const char *const provenances[] = {"measured", "derived", "estimated"};
    static const enum nrg_form_text needed[] = {NRG_FORM_DEVICE, NRG_FORM_MODEL, NRG_FORM_KIND,
                                                NRG_FORM_LEVEL};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        bool given = needed[i] == NRG_FORM_DEVICE && form->options->device;
        if (!given && !r->texts[needed[i]].len)
            return nrg_fail_at(err, -EBADMSG, form->name, line, "has no %s",
                               nrg_form_texts[needed[i]]);
    }
    struct nrg_cell cell = r->texts[NRG_FORM_LEVEL];
    if (nrg_node_level_find(cell.text, cell.len, &form->draft.row.level))
        return nrg_fail_at(err, -EBADMSG, form->name, line,
                           "level is operator, module or model, not '%.*s'",
                           (int)(cell.len < 40 ? cell.len : 40), cell.text);
    if (form->draft.row.level == NRG_NODE_OPERATOR && form->draft.n_parts)
        return nrg_fail_at(err, -EBADMSG, form->name, line, "an operator has no parts");
    cell = r->texts[NRG_FORM_PROVENANCE];
    if (cell.len && nrg_name_find(provenances, 3, cell.text, cell.len) < 0)
        return nrg_fail_at(err, -EBADMSG, form->name, line,
                           "provenance is measured, derived or estimated");
    return 0;
}

/* NULL, or why the row can't be used. */
static const char *unusable(const struct nrg_form *form, const struct nrg_record *r)
{
    double multiplicity = r->numbers[NRG_FORM_MULTIPLICITY];
    if (!(r->numbers[NRG_FORM_ENERGY] > 0))
        return "energy is not a positive number: row left out";
    if (form->part_left_out)
        return "a part of it was left out: row left out";
    if (!isnan(multiplicity) && !(multiplicity >= 1 && multiplicity < 1e15))
        return "multiplicity is not a positive number: row left out";
    for (int f = 0; f < NRG_FEATURES; f++)
        if (r->numbers[f] < 0)
            return "a feature is negative: row left out";
    return NULL;
}

static const char *text_or(struct nrg_form *form, struct nrg_cell cell, const char *absent)
{
    return cell.len ? nrg_dataset_text(form->set, cell.text, cell.len)
                    : nrg_dataset_text(form->set, absent, strlen(absent));
}

static void set_texts(struct nrg_form *form, const struct nrg_record *r)
{
    struct nrg_row *row = &form->draft.row;
    const char *device = form->options->device;
    row->device = text_or(form, r->texts[NRG_FORM_DEVICE], device ? device : "");
    row->model = text_or(form, r->texts[NRG_FORM_MODEL], "");
    row->node = text_or(form, r->texts[NRG_FORM_NODE], "");
    row->kind = text_or(form, r->texts[NRG_FORM_KIND], "");
    row->provenance = text_or(form, r->texts[NRG_FORM_PROVENANCE], "measured");
}

static int remember_id(struct nrg_form *form, const struct nrg_record *r, int64_t at,
                       long long line, struct nrg_error *err)
{
    struct nrg_cell id = r->texts[NRG_FORM_ID];
    if (!id.len)
        return 0;
    if (nrg_map_number(&form->ids, id.text, id.len) >= 0)
        return nrg_fail_at(err, -EBADMSG, form->name, line, "id '%.*s' stands there twice",
                           (int)(id.len < 60 ? id.len : 60), id.text);
    return nrg_map_put(&form->ids, id.text, id.len, at) ? no_memory(form, err) : 0;
}

int nrg_form_add(struct nrg_form *form, const struct nrg_record *r, long long line,
                 struct nrg_error *err)
{
    uint32_t at;
    char counts[32] = "nrg";
    int rc = check_record(form, r, line, err);
    if (rc)
        return rc;
    const char *why = unusable(form, r);
    if (why)
        return nrg_dataset_note(form->set, form->name, line, why)
                   ? no_memory(form, err)
                   : remember_id(form, r, 0, line, err);
    struct nrg_cell by = r->texts[NRG_FORM_COUNTS];
    if (by.len)
        snprintf(counts, sizeof counts, "%.*s", (int)(by.len < 31 ? by.len : 31), by.text);
    if (!form->set->convention || strcmp(counts, form->set->convention))
        rc = nrg_dataset_counted_by(form->set, counts, form->name, err);
    if (rc)
        return rc;
    struct nrg_draft *draft = &form->draft;
    memcpy(draft->features, r->numbers, sizeof draft->features);
    draft->row.energy_j = r->numbers[NRG_FORM_ENERGY];
    draft->row.repeats = r->numbers[NRG_FORM_REPEATS];
    if (!isnan(r->numbers[NRG_FORM_MULTIPLICITY]))
        draft->row.multiplicity = (uint64_t)r->numbers[NRG_FORM_MULTIPLICITY];
    set_texts(form, r);
    if (nrg_dataset_add(form->set, draft, &at))
        return no_memory(form, err);
    return remember_id(form, r, (int64_t)at + 1, line, err);
}
