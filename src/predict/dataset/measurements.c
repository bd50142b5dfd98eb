/*
 * See dataset.h. Rows are found again by a hash of their whole content, so that the copies that a
 * cache of the measuring program wrote into its files (IrEne: 9 of 10 rows) become multiplicities.
 */
#include "predict/dataset/measurements.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define LONGEST_TEXT 1024
#define MOST_LEAVES  ((size_t)1 << 25) /* of all modules together: hostile files stop here */

static const char *const level_names[NRG_NODE_LEVELS] = {"operator", "module", "model"};

void nrg_dataset_init(struct nrg_dataset *set)
{
    *set = (struct nrg_dataset){0};
}

void nrg_dataset_release(struct nrg_dataset *set)
{
    nrg_arena_release(&set->arena);
    for (int f = 0; f < NRG_FEATURES; f++)
        free(set->columns[f]);
    free(set->rows);
    free(set->parts);
    free(set->leaves);
    free(set->notes);
    free(set->texts);
    nrg_intern_release(&set->names);
    free(set->index);
    *set = (struct nrg_dataset){0};
}

/* ---- texts ---- */

static uint64_t hash_bytes(uint64_t h, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h;
}

#define HASH_START UINT64_C(0xcbf29ce484222325)

const char *nrg_dataset_text(struct nrg_dataset *set, const char *text, size_t len)
{
    char clean[LONGEST_TEXT];
    nrg_copy_clean(clean, sizeof clean, text, len);
    len = strlen(clean);
    int64_t number = nrg_intern(&set->names, clean, len);
    if (number <= 0)
        return NULL;
    if ((size_t)number <= set->n_texts)
        return set->texts[number - 1];
    const char *copy = nrg_arena_copy(&set->arena, clean, len);
    if (!copy || nrg_reserve(&set->texts, &set->cap_texts, (size_t)number, sizeof *set->texts))
        return NULL;
    return set->texts[set->n_texts++] = copy;
}

/* ---- drafts ---- */

void nrg_draft_clear(struct nrg_draft *draft)
{
    draft->row = (struct nrg_row){.repeats = NAN, .multiplicity = 1};
    for (int f = 0; f < NRG_FEATURES; f++)
        draft->features[f] = NAN;
    draft->n_parts = 0;
}

void nrg_draft_release(struct nrg_draft *draft)
{
    free(draft->parts);
    *draft = (struct nrg_draft){0};
}

static int by_row(const void *a, const void *b)
{
    const struct nrg_part *x = a, *y = b;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* Adds to a list of parts; equal rows are merged later, by sorting. */
static int add_part(struct nrg_part **parts, size_t *n, size_t *cap, struct nrg_part part)
{
    if (nrg_reserve(parts, cap, *n + 1, sizeof **parts))
        return -ENOMEM;
    (*parts)[(*n)++] = part;
    return 0;
}

/* Sorts by row and joins equal ones; returns how many are left. */
static size_t join_parts(struct nrg_part *parts, size_t n)
{
    size_t made = 0;
    if (n)
        qsort(parts, n, sizeof *parts, by_row);
    for (size_t i = 0; i < n; i++) {
        if (made && parts[made - 1].row == parts[i].row) {
            uint32_t room = UINT32_MAX - parts[made - 1].count;
            parts[made - 1].count += parts[i].count < room ? parts[i].count : room;
        } else {
            parts[made++] = parts[i];
        }
    }
    return made;
}

int nrg_draft_part(struct nrg_draft *draft, uint32_t row, uint32_t count)
{
    struct nrg_part part = {row, count};
    if (draft->n_parts && draft->parts[draft->n_parts - 1].row == row) {
        draft->parts[draft->n_parts - 1].count += count;
        return 0;
    }
    return add_part(&draft->parts, &draft->n_parts, &draft->cap_parts, part);
}

/* ---- rows ---- */

double nrg_row_feature(const struct nrg_dataset *set, size_t row, enum nrg_feature feature)
{
    return set->columns[feature] ? set->columns[feature][row] : NAN;
}

static uint64_t hash_draft(const struct nrg_draft *d)
{
    const void *texts[] = {d->row.device, d->row.model, d->row.kind};
    uint64_t h = hash_bytes(HASH_START, texts, sizeof texts);
    h = hash_bytes(h, &d->row.level, sizeof d->row.level);
    h = hash_bytes(h, &d->row.energy_j, sizeof d->row.energy_j);
    for (int f = 0; f < NRG_FEATURES; f++)
        if (!isnan(d->features[f]))
            h = hash_bytes(h, &d->features[f], sizeof d->features[f]) ^ (uint64_t)f;
    h = hash_bytes(h, d->parts, d->n_parts * sizeof *d->parts);
    return h ^ h >> 29;
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool same_row(const struct nrg_dataset *set, size_t i, const struct nrg_draft *d)
{
    const struct nrg_row *r = &set->rows[i];
    if (r->device != d->row.device || r->model != d->row.model || r->kind != d->row.kind ||
        r->level != d->row.level || r->energy_j != d->row.energy_j || r->n_parts != d->n_parts ||
        !same(r->repeats, d->row.repeats) || r->provenance != d->row.provenance)
        return false;
    for (int f = 0; f < NRG_FEATURES; f++)
        if (!same(nrg_row_feature(set, i, (enum nrg_feature)f), d->features[f]))
            return false;
    return !d->n_parts ||
           !memcmp(set->parts + r->first_part, d->parts, d->n_parts * sizeof *d->parts);
}

static int grow_index(struct nrg_dataset *set)
{
    size_t cap = set->cap_index ? set->cap_index * 2 : 1024;
    uint32_t *grown = calloc(cap, sizeof *grown);
    struct nrg_draft d;
    if (!grown)
        return -ENOMEM;
    for (size_t i = 0; i < set->n; i++) {
        d.row = set->rows[i];
        d.parts = set->parts + d.row.first_part;
        d.n_parts = d.row.n_parts;
        for (int f = 0; f < NRG_FEATURES; f++)
            d.features[f] = nrg_row_feature(set, i, (enum nrg_feature)f);
        size_t at = hash_draft(&d) & (cap - 1);
        while (grown[at])
            at = (at + 1) & (cap - 1);
        grown[at] = (uint32_t)i + 1;
    }
    free(set->index);
    set->index = grown;
    set->cap_index = cap;
    return 0;
}

/* Room for one more row in every column that there is, or that the draft brings. */
static int grow_rows(struct nrg_dataset *set, const struct nrg_draft *draft)
{
    size_t before = set->cap;
    if (set->n >= UINT32_MAX / 2 ||
        nrg_reserve(&set->rows, &set->cap, set->n + 1, sizeof *set->rows))
        return -ENOMEM;
    for (int f = 0; f < NRG_FEATURES; f++) {
        bool is_new = !set->columns[f];
        if ((is_new && isnan(draft->features[f])) || (!is_new && before == set->cap))
            continue;
        double *grown = realloc(set->columns[f], set->cap * sizeof *grown);
        if (!grown) {
            set->cap = before; /* the columns that grew have room to spare */
            return -ENOMEM;
        }
        set->columns[f] = grown;
        for (size_t i = 0; is_new && i < set->n; i++)
            grown[i] = NAN;
    }
    return 0;
}

static int append(struct nrg_dataset *set, const struct nrg_draft *draft)
{
    int rc = grow_rows(set, draft);
    if (!rc)
        rc = nrg_reserve(&set->parts, &set->cap_parts, set->n_parts + draft->n_parts + 1,
                         sizeof *set->parts);
    if (rc)
        return rc;
    struct nrg_row *row = &set->rows[set->n];
    *row = draft->row;
    row->first_part = (uint32_t)set->n_parts;
    row->n_parts = (uint32_t)draft->n_parts;
    if (draft->n_parts)
        memcpy(set->parts + set->n_parts, draft->parts, draft->n_parts * sizeof *draft->parts);
    set->n_parts += draft->n_parts;
    for (int f = 0; f < NRG_FEATURES; f++)
        if (set->columns[f])
            set->columns[f][set->n] = draft->features[f];
    set->n++;
    return 0;
}

int nrg_dataset_add(struct nrg_dataset *set, const struct nrg_draft *draft, uint32_t *at)
{
    struct nrg_draft sorted = *draft;
    sorted.n_parts = join_parts(draft->parts, draft->n_parts);
    set->rows_read += draft->row.multiplicity;
    if (set->n * 2 >= set->cap_index && grow_index(set))
        return -ENOMEM;
    size_t slot = hash_draft(&sorted) & (set->cap_index - 1);
    for (; set->index[slot]; slot = (slot + 1) & (set->cap_index - 1)) {
        uint32_t i = set->index[slot] - 1;
        if (!same_row(set, i, &sorted))
            continue;
        set->rows[i].multiplicity += draft->row.multiplicity;
        *at = i;
        return 0;
    }
    int rc = append(set, &sorted);
    if (rc)
        return rc;
    set->index[slot] = (uint32_t)set->n;
    *at = (uint32_t)set->n - 1;
    return 0;
}

int nrg_dataset_note(struct nrg_dataset *set, const char *where, long long line, const char *text)
{
    for (size_t i = 0; i < set->n_notes; i++) {
        if (!strcmp(set->notes[i].text, text) && !strcmp(set->notes[i].where, where)) {
            set->notes[i].count++;
            return 0;
        }
    }
    const char *kept_where = nrg_dataset_text(set, where, strlen(where));
    const char *kept = nrg_dataset_text(set, text, strlen(text));
    if (!kept || !kept_where ||
        nrg_reserve(&set->notes, &set->cap_notes, set->n_notes + 1, sizeof *set->notes))
        return -ENOMEM;
    set->notes[set->n_notes++] = (struct nrg_note){kept, kept_where, line, 1};
    return 0;
}

/* ---- after reading ---- */

/* All operators below a row: its own operators, and those of its modules times their count. */
static int find_leaves(struct nrg_dataset *set, struct nrg_row *row)
{
    size_t first = set->n_leaves;
    for (uint32_t p = 0; p < row->n_parts; p++) {
        struct nrg_part part = set->parts[row->first_part + p];
        const struct nrg_row *child = &set->rows[part.row];
        struct nrg_part own = part;
        bool is_operator = child->level == NRG_NODE_OPERATOR;
        for (uint32_t l = 0; l < (is_operator ? 1 : child->n_leaves); l++) {
            if (!is_operator) {
                own = set->leaves[child->first_leaf + l];
                uint64_t times = (uint64_t)own.count * part.count;
                own.count = times < UINT32_MAX ? (uint32_t)times : UINT32_MAX;
            }
            if (set->n_leaves >= MOST_LEAVES)
                return -EFBIG;
            if (add_part(&set->leaves, &set->n_leaves, &set->cap_leaves, own))
                return -ENOMEM;
        }
    }
    size_t n = set->n_leaves > first ? join_parts(set->leaves + first, set->n_leaves - first) : 0;
    row->first_leaf = (uint32_t)first;
    row->n_leaves = (uint32_t)n;
    set->n_leaves = first + n;
    return 0;
}

int nrg_dataset_counted_by(struct nrg_dataset *set, const char *convention, const char *where,
                           struct nrg_error *err)
{
    if (set->convention && strcmp(set->convention, convention))
        return nrg_fail(err, -EINVAL, where,
                        "its features are counted by '%s', those of the data before it by '%s': "
                        "they can't be mixed",
                        convention, set->convention);
    const char *kept = nrg_dataset_text(set, convention, strlen(convention));
    if (!kept)
        return nrg_fail(err, -ENOMEM, where, "out of memory");
    set->convention = kept;
    return 0;
}

/* What a meter says of a node: one measurement may stand for nodes of different parameters. */
static uint64_t measured_hash(const struct nrg_dataset *set, size_t i)
{
    const struct nrg_row *r = &set->rows[i];
    const void *texts[] = {r->device, r->model, r->kind};
    uint64_t h = hash_bytes(HASH_START, texts, sizeof texts);
    h = hash_bytes(h, &r->level, sizeof r->level);
    h = hash_bytes(h, &r->energy_j, sizeof r->energy_j);
    for (int f = 0; f < NRG_FEATURES; f++)
        if (nrg_features[f].class == NRG_RESOURCE && set->columns[f] && !isnan(set->columns[f][i]))
            h = hash_bytes(h, &set->columns[f][i], sizeof(double)) ^ (uint64_t)f;
    return h ^ h >> 29;
}

static bool same_measured(const struct nrg_dataset *set, size_t a, size_t b)
{
    const struct nrg_row *x = &set->rows[a], *y = &set->rows[b];
    if (x->device != y->device || x->model != y->model || x->kind != y->kind ||
        x->level != y->level || x->energy_j != y->energy_j)
        return false;
    for (int f = 0; f < NRG_FEATURES; f++)
        if (f != NRG_F_PARAMS && set->columns[f] && !same(set->columns[f][a], set->columns[f][b]))
            return false;
    return true;
}

static int find_measurements(struct nrg_dataset *set)
{
    size_t cap = 1024;
    while (cap < set->n * 2)
        cap *= 2;
    uint32_t *slots = calloc(cap, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    for (size_t i = 0; i < set->n; i++) {
        size_t at = measured_hash(set, i) & (cap - 1);
        while (slots[at] && !same_measured(set, slots[at] - 1, i))
            at = (at + 1) & (cap - 1);
        if (!slots[at])
            slots[at] = (uint32_t)i + 1;
        set->rows[i].measurement = slots[at] - 1;
    }
    free(slots);
    return 0;
}

/* With the first of the reasons for which rows were left out: nobody else will tell them. */
static int no_rows(const struct nrg_dataset *set, struct nrg_error *err)
{
    const struct nrg_note *first = set->n_notes ? &set->notes[0] : NULL;
    char line[32] = "";
    if (!first)
        return nrg_fail(err, -ENODATA, NULL, "no measurement was found in the data");
    if (first->line >= 0)
        snprintf(line, sizeof line, ":%lld", first->line);
    return nrg_fail(err, -ENODATA, NULL, "no measurement can be used: %s%s: %s (%zu times)",
                    first->where, line, first->text, first->count);
}

int nrg_dataset_finish(struct nrg_dataset *set, struct nrg_error *err)
{
    if (!set->n)
        return no_rows(set, err);
    free(set->index);
    set->index = NULL;
    set->cap_index = 0;
    set->n_leaves = 0;
    if (find_measurements(set))
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    for (size_t i = 0; i < set->n; i++) {
        int rc = set->rows[i].level != NRG_NODE_OPERATOR ? find_leaves(set, &set->rows[i]) : 0;
        if (rc)
            return nrg_fail(err, rc, NULL,
                            rc == -EFBIG ? "the modules' parts are too many" : "out of memory");
    }
    return 0;
}

const char *nrg_node_level_name(enum nrg_node_level level)
{
    return level_names[level];
}

int nrg_node_level_find(const char *name, size_t len, enum nrg_node_level *level)
{
    for (int i = 0; i < NRG_NODE_LEVELS; i++) {
        if (strlen(level_names[i]) == len && !memcmp(level_names[i], name, len)) {
            *level = (enum nrg_node_level)i;
            return 0;
        }
    }
    return -EINVAL;
}

void nrg_name_list_release(struct nrg_name_list *list)
{
    free(list->names);
    free(list->of_row);
    *list = (struct nrg_name_list){0};
}

int nrg_dataset_list(const struct nrg_dataset *set, size_t member, struct nrg_name_list *list)
{
    *list = (struct nrg_name_list){.of_row = calloc(set->n + 1, sizeof *list->of_row)};
    size_t at = 0;
    int rc = list->of_row ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < set->n; i++) {
        const char *text;
        memcpy(&text, (const char *)&set->rows[i] + member, sizeof text);
        if (at >= list->n || list->names[at] != text) /* rows of one model stand together */
            for (at = 0; at < list->n && list->names[at] != text;)
                at++;
        if (at == list->n &&
            !(rc = nrg_reserve(&list->names, &list->cap, at + 1, sizeof *list->names)))
            list->names[list->n++] = text;
        list->of_row[i] = (uint32_t)at;
    }
    if (rc)
        nrg_name_list_release(list);
    return rc;
}
