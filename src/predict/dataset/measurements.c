/*
 * See dataset/measurements.h. Rows are found again by a hash of their whole content, so that the
 * copies that a cache of the measuring program wrote into its files (IrEne: 9 of 10 rows) become
 * multiplicities.
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
#define GONE         UINT32_MAX

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
    nrg_map_release(&set->names);
    nrg_index_release(&set->index);
    *set = (struct nrg_dataset){0};
}

/* ---- texts ---- */

const char *nrg_dataset_text(struct nrg_dataset *set, const char *text, size_t len)
{
    char clean[LONGEST_TEXT];
    nrg_copy_clean(clean, sizeof clean, text, len);
    len = strlen(clean);
    int64_t number = nrg_map_intern(&set->names, clean, len);
    return number > 0 ? nrg_map_text(&set->names, number, NULL) : NULL;
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
    const struct nrg_module_part *x = a, *y = b;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* Sorts by row and joins equal ones; returns how many are left. */
static size_t join_parts(struct nrg_module_part *parts, size_t n)
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
    struct nrg_module_part part = {row, count};
    if (draft->n_parts && draft->parts[draft->n_parts - 1].row == row) {
        draft->parts[draft->n_parts - 1].count += count;
        return 0;
    }
    return nrg_append(&draft->parts, &draft->n_parts, &draft->cap_parts, &part, sizeof part);
}

/* ---- rows ---- */

double nrg_row_feature(const struct nrg_dataset *set, size_t row, enum nrg_feature feature)
{
    return set->columns[feature] ? set->columns[feature][row] : NAN;
}

double nrg_row_size(const struct nrg_dataset *set, size_t row)
{
    double seq = nrg_row_feature(set, row, NRG_F_SEQ);
    return nrg_row_feature(set, row, NRG_F_BATCH) * (isnan(seq) ? 1 : seq);
}

static uint64_t hash_row(uint64_t seed, const struct nrg_row *r)
{
    const void *texts[] = {r->device, r->model, r->kind};
    uint64_t h = nrg_hash(seed, texts, sizeof texts);
    h = nrg_hash(h, &r->level, sizeof r->level);
    return nrg_hash(h, &r->energy_j, sizeof r->energy_j);
}

static bool same_head(const struct nrg_row *a, const struct nrg_row *b)
{
    return a->device == b->device && a->model == b->model && a->kind == b->kind &&
           a->level == b->level && a->energy_j == b->energy_j;
}

static uint32_t hash_draft(uint64_t seed, const struct nrg_draft *d)
{
    uint64_t h = hash_row(seed, &d->row);
    for (int f = 0; f < NRG_FEATURES; f++)
        if (!isnan(d->features[f]))
            h = nrg_hash(h, &d->features[f], sizeof d->features[f]) ^ (uint64_t)f;
    return (uint32_t)nrg_hash(h, d->parts, d->n_parts * sizeof *d->parts);
}

static bool same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool same_row(const struct nrg_dataset *set, size_t i, const struct nrg_draft *d)
{
    const struct nrg_row *r = &set->rows[i];
    if (!same_head(r, &d->row) || r->n_parts != d->n_parts ||
        !same_number(r->repeats, d->row.repeats) || r->provenance != d->row.provenance)
        return false;
    for (int f = 0; f < NRG_FEATURES; f++)
        if (!same_number(nrg_row_feature(set, i, (enum nrg_feature)f), d->features[f]))
            return false;
    return !d->n_parts ||
           !memcmp(set->parts + r->first_part, d->parts, d->n_parts * sizeof *d->parts);
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

static int append_row(struct nrg_dataset *set, const struct nrg_draft *draft)
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
    const struct nrg_row *row = &draft->row;
    if (!row->device || !row->model || !row->node || !row->kind || !row->provenance ||
        nrg_index_reserve(&set->index))
        return -ENOMEM;
    uint32_t hash = hash_draft(set->index.seed, &sorted), known;
    for (size_t slot = hash; (known = nrg_index_next(&set->index, hash, &slot));) {
        if (!same_row(set, known - 1, &sorted))
            continue;
        set->rows[known - 1].multiplicity += draft->row.multiplicity;
        *at = known - 1;
        return 0;
    }
    int rc = append_row(set, &sorted);
    if (rc)
        return rc;
    nrg_index_add(&set->index, hash, (uint32_t)set->n);
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
        nrg_append(&set->notes, &set->n_notes, &set->cap_notes,
                   &(struct nrg_note){kept, kept_where, line, 1}, sizeof *set->notes))
        return -ENOMEM;
    return 0;
}

/* ---- after reading ---- */

/* Renumbers the parts of a row; false: one of them is gone. */
static bool renumber_parts(struct nrg_dataset *set, const struct nrg_row *row,
                           const uint32_t *number)
{
    for (uint32_t p = 0; p < row->n_parts; p++) {
        struct nrg_module_part *part = &set->parts[row->first_part + p];
        if (number[part->row] == GONE)
            return false;
        part->row = number[part->row];
    }
    return true;
}

int nrg_dataset_keep(struct nrg_dataset *set, const bool *keep)
{
    uint32_t *number = nrg_calloc(set->n + 1, sizeof *number);
    size_t kept = 0;
    if (!number)
        return -ENOMEM;
    for (size_t i = 0; i < set->n; i++) {
        number[i] = GONE;
        if (!keep[i] || !renumber_parts(set, &set->rows[i], number))
            continue;
        number[i] = (uint32_t)kept;
        set->rows[kept] = set->rows[i];
        for (int f = 0; f < NRG_FEATURES; f++)
            if (set->columns[f])
                set->columns[f][kept] = set->columns[f][i];
        kept++;
    }
    set->n = kept;
    nrg_index_release(&set->index); /* it has the old numbers */
    free(number);
    return 0;
}

/* All operators below a row: its own operators, and those of its modules times their count. */
static int find_leaves(struct nrg_dataset *set, struct nrg_row *row)
{
    size_t first = set->n_leaves;
    for (uint32_t p = 0; p < row->n_parts; p++) {
        struct nrg_module_part part = set->parts[row->first_part + p];
        const struct nrg_row *child = &set->rows[part.row];
        struct nrg_module_part own = part;
        bool is_operator = child->level == NRG_NODE_OPERATOR;
        for (uint32_t l = 0; l < (is_operator ? 1 : child->n_leaves); l++) {
            if (!is_operator) {
                own = set->leaves[child->first_leaf + l];
                uint64_t times = (uint64_t)own.count * part.count;
                own.count = times < UINT32_MAX ? (uint32_t)times : UINT32_MAX;
            }
            if (set->n_leaves >= MOST_LEAVES)
                return -EFBIG;
            if (nrg_append(&set->leaves, &set->n_leaves, &set->cap_leaves, &own, sizeof own))
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

/* Hashes what was measured: one measurement may stand for nodes with different parameters. */
static uint32_t measured_hash(const struct nrg_dataset *set, uint64_t seed, size_t i)
{
    uint64_t h = hash_row(seed, &set->rows[i]);
    for (int f = NRG_FIRST_RESOURCE; f < NRG_FEATURES; f++)
        if (set->columns[f] && !isnan(set->columns[f][i]))
            h = nrg_hash(h, &set->columns[f][i], sizeof(double)) ^ (uint64_t)f;
    return (uint32_t)h;
}

static bool same_measured(const struct nrg_dataset *set, size_t a, size_t b)
{
    if (!same_head(&set->rows[a], &set->rows[b]))
        return false;
    for (int f = 0; f < NRG_FEATURES; f++)
        if (f != NRG_F_PARAMS && set->columns[f] &&
            !same_number(set->columns[f][a], set->columns[f][b]))
            return false;
    return true;
}

static int find_measurements(struct nrg_dataset *set)
{
    struct nrg_index index = {0};
    int rc = 0;
    for (size_t i = 0; i < set->n && !(rc = nrg_index_reserve(&index)); i++) {
        uint32_t hash = measured_hash(set, index.seed, i), known;
        for (size_t at = hash; (known = nrg_index_next(&index, hash, &at));)
            if (same_measured(set, known - 1, i))
                break;
        if (!known)
            nrg_index_add(&index, hash, (uint32_t)i + 1);
        set->rows[i].measurement = known ? known - 1 : (uint32_t)i;
    }
    nrg_index_release(&index);
    return rc;
}

/* Names the first reason for leaving rows out: without rows, no other message reports it. */
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
    nrg_index_release(&set->index);
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
    int at = nrg_name_find(level_names, NRG_NODE_LEVELS, name, len);
    *level = (enum nrg_node_level)(at < 0 ? 0 : at);
    return at < 0 ? -EINVAL : 0;
}

void nrg_name_list_release(struct nrg_name_list *list)
{
    free(list->names);
    free(list->of_row);
    *list = (struct nrg_name_list){0};
}

int nrg_dataset_list(const struct nrg_dataset *set, size_t member, struct nrg_name_list *list)
{
    *list = (struct nrg_name_list){.of_row = nrg_calloc(set->n + 1, sizeof *list->of_row)};
    size_t at = 0;
    int rc = list->of_row ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < set->n; i++) {
        const char *text;
        memcpy(&text, (const char *)&set->rows[i] + member, sizeof text);
        if (at >= list->n || list->names[at] != text) /* rows of one model stand together */
            for (at = 0; at < list->n && list->names[at] != text;)
                at++;
        if (at == list->n)
            rc = nrg_append(&list->names, &list->n, &list->cap, &text, sizeof text);
        list->of_row[i] = (uint32_t)at;
    }
    if (rc)
        nrg_name_list_release(list);
    return rc;
}
