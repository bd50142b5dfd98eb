/*
 * Joules per token, sample, request: counts over the energy of what they were counted in.
 *
 * A count belongs to the class of spans that was innermost on its thread when it was made. A class
 * is a kind and a name, as rows by name have them: pooled over all places, and where it stands
 * inside of itself, with the energy of the outermost ones alone. So a unit has energy, interval,
 * flags and provenance of that row. What was counted outside of all spans divides the program's.
 *
 * Other divisors are asked for by name: "tokens/outer" is what was counted anywhere inside of
 * spans called `outer`, over their energy, "tokens" all of it, over the program's. Names may have
 * slashes in them: any that parts a known counter from a known class will do.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/internal.h"
#include "base/mem.h"
#include "base/words.h"

#define MOST_LISTED 12 /* names in an error */

static int add_unit(struct nrg_attribution *a, struct nrg_unit_use unit, const char *name,
                    double amount)
{
    unit.name = name;
    unit.kind = NRG_KIND_COUNTER;
    unit.amount = amount;
    return nrg_append(&a->units, &a->n_units, &a->cap_units, &unit, sizeof unit);
}

static struct nrg_unit_use use_of(const struct nrg_attribution_row *row)
{
    return (struct nrg_unit_use){.of = row->name,
                                 .of_kind = row->kind,
                                 .energy_j = row->energy_j,
                                 .low_j = row->low_j,
                                 .high_j = row->high_j,
                                 .scaled_low_j = row->scaled_low_j,
                                 .scaled_high_j = row->scaled_high_j,
                                 .time_s = row->time_s,
                                 .provenance = row->provenance,
                                 .flags = row->flags};
}

/* Runs that did the same say the same, whichever thread came first. */
static int by_name(const void *a, const void *b)
{
    const struct nrg_unit_use *x = a, *y = b;
    int c = strcmp(x->name, y->name);
    if (!c)
        c = strcmp(x->of, y->of);
    return c ? c : strcmp(x->of_kind, y->of_kind);
}

int nrg_units_counted(struct nrg_attribution *a, const struct nrg_unit_sources *s)
{
    size_t first = a->n_units;
    int rc = 0;
    for (size_t i = 0; i < s->classes->n; i++) {
        const struct nrg_attribution_row *row = &s->classes->rows[i];
        for (size_t k = 0; !rc && k < row->n_counts; k++)
            if (row->counts[k].direct > 0)
                rc = add_unit(a, use_of(row), row->counts[k].name, row->counts[k].direct);
    }
    for (size_t k = 0; !rc && k < s->n_outside; k++)
        if (s->outside[k].amount > 0)
            rc = add_unit(a, s->whole, s->outside[k].name, s->outside[k].amount);
    if (!rc && a->n_units > first)
        qsort(a->units + first, a->n_units - first, sizeof *a->units, by_name);
    return rc;
}

const struct nrg_unit_use *nrg_attribution_counted(const struct nrg_attribution *a,
                                                   const char *name, const char *of,
                                                   const char *of_kind)
{
    for (size_t i = 0; i < a->n_units; i++) {
        const struct nrg_unit_use *u = &a->units[i];
        if (!strcmp(u->kind, NRG_KIND_COUNTER) && !u->inside && !strcmp(u->name, name) &&
            !strcmp(u->of, of) && !strcmp(u->of_kind, of_kind))
            return u;
    }
    return NULL;
}

/* ---- what is asked for ---- */

static const struct nrg_row_count *count_in(const struct nrg_row_count *counts, size_t n,
                                            const char *name, size_t len)
{
    for (size_t k = 0; k < n; k++)
        if (!strncmp(counts[k].name, name, len) && !counts[k].name[len])
            return &counts[k];
    return NULL;
}

/* The counter of that name, with the amount of the whole run; name NULL: there is none. */
static struct nrg_row_count find_counter(const struct nrg_unit_sources *s, const char *name,
                                         size_t len)
{
    const struct nrg_row_count *c = count_in(s->outside, s->n_outside, name, len);
    struct nrg_row_count sum = c ? *c : (struct nrg_row_count){0};
    for (size_t i = 0; i < s->classes->n; i++) {
        const struct nrg_attribution_row *row = &s->classes->rows[i];
        c = count_in(row->counts, row->n_counts, name, len);
        sum.amount += c ? c->direct : 0;
        sum.name = c ? c->name : sum.name;
    }
    return sum;
}

/* Names for an error, once each; clean, because they come from the program. */
struct names {
    struct nrg_str text;
    const char *seen[MOST_LISTED];
    size_t n;
    struct nrg_guess guess;
};

static void list_name(struct names *names, const char *name)
{
    char clean[64];
    nrg_guess_offer(&names->guess, name);
    for (size_t i = 0; i < names->n && i < MOST_LISTED; i++)
        if (!strcmp(names->seen[i], name))
            return;
    if (names->n < MOST_LISTED) {
        names->seen[names->n] = name;
        nrg_copy_clean(clean, sizeof clean, name, strlen(name));
        nrg_str_addf(&names->text, "%s%s", names->n ? ", " : "", clean);
    } else if (names->n == MOST_LISTED) {
        nrg_str_addf(&names->text, ", ...");
    }
    names->n++;
}

static int refuse(struct names *names, const char *asked, const char *why, struct nrg_error *err)
{
    char clean[100], best[64] = "";
    nrg_copy_clean(clean, sizeof clean, asked, strlen(asked));
    if (names->guess.best)
        nrg_copy_clean(best, sizeof best, names->guess.best, strlen(names->guess.best));
    nrg_fail(err, -EINVAL, NULL, "--per %s: %s%s%s%s%s%s", clean, why,
             best[0] ? " (did you mean " : "", best, best[0] ? "?)" : "", names->n ? ": " : "",
             names->text.text ? names->text.text : "");
    nrg_str_release(&names->text);
    return -EINVAL;
}

static int no_counter(const struct nrg_unit_sources *s, const char *asked, struct nrg_error *err)
{
    char typed[64];
    struct names names = {.guess.typed = typed};
    nrg_copy(typed, sizeof typed, asked);
    typed[strcspn(typed, "/")] = '\0';
    for (size_t i = 0; i < s->classes->n; i++)
        for (size_t k = 0; k < s->classes->rows[i].n_counts; k++)
            list_name(&names, s->classes->rows[i].counts[k].name);
    for (size_t k = 0; k < s->n_outside; k++)
        list_name(&names, s->outside[k].name);
    return refuse(&names, asked,
                  names.n ? "nothing of that name was counted; there are"
                          : "the program counted nothing (nrg.count, nrg_count_add)",
                  err);
}

static int no_class(const struct nrg_unit_sources *s, const char *asked,
                    const struct nrg_row_count *counter, struct nrg_error *err)
{
    const char *span = asked + strlen(counter->name) + 1;
    struct names names = {.guess.typed = span};
    bool known = false;
    for (size_t i = 0; i < s->classes->n; i++) {
        const struct nrg_attribution_row *row = &s->classes->rows[i];
        known |= !strcmp(row->name, span);
        if (count_in(row->counts, row->n_counts, counter->name, strlen(counter->name)))
            list_name(&names, row->name);
    }
    const char *why = !names.n ? "it was counted outside of all spans: leave the span out"
                      : known  ? "it was not counted inside of such a span, but of"
                               : "no span has that name; it was counted inside of";
    return refuse(&names, asked, why, err);
}

/* What is there already, because all of it was counted directly in that class, is not said twice.
 * -ERANGE: it adds up to nothing. */
static int add_asked(struct nrg_attribution *a, struct nrg_unit_use unit, const char *name,
                     double amount)
{
    for (size_t i = 0; i < a->n_units; i++) {
        const struct nrg_unit_use *u = &a->units[i];
        if (!strcmp(u->kind, NRG_KIND_COUNTER) && !strcmp(u->name, name) &&
            !strcmp(u->of, unit.of) && !strcmp(u->of_kind, unit.of_kind) &&
            (u->inside || u->amount == amount))
            return 0;
    }
    unit.inside = true;
    return amount > 0 ? add_unit(a, unit, name, amount) : -ERANGE;
}

/* -ENOENT: no such class has it. */
static int add_classes(struct nrg_attribution *a, const struct nrg_unit_sources *s,
                       const char *counter, const char *span)
{
    int rc = -ENOENT;
    for (size_t i = 0; i < s->classes->n && (!rc || rc == -ENOENT); i++) {
        const struct nrg_attribution_row *row = &s->classes->rows[i];
        const struct nrg_row_count *c =
            count_in(row->counts, row->n_counts, counter, strlen(counter));
        if (c && !strcmp(row->name, span))
            rc = add_asked(a, use_of(row), c->name, c->amount);
    }
    return rc;
}

/* -ENOENT: there is no such class; -ERANGE: nothing to divide by. */
static int add_per(struct nrg_attribution *a, const struct nrg_unit_sources *s, const char *asked,
                   struct nrg_row_count *counter)
{
    int rc = -ENOENT;
    *counter = find_counter(s, asked, strlen(asked));
    if (counter->name)
        return add_asked(a, s->whole, counter->name, counter->amount);
    for (const char *slash = strchr(asked, '/'); slash && rc == -ENOENT;
         slash = strchr(slash + 1, '/')) {
        struct nrg_row_count before = find_counter(s, asked, (size_t)(slash - asked));
        if (before.name) {
            *counter = before;
            rc = add_classes(a, s, before.name, slash + 1);
        }
    }
    return rc;
}

int nrg_units_asked(struct nrg_attribution *a, const struct nrg_unit_sources *s, const char *asked,
                    struct nrg_error *err)
{
    struct nrg_row_count counter;
    int rc = add_per(a, s, asked, &counter);
    if (rc == -ERANGE)
        return refuse(&(struct names){0}, asked, "what was counted adds up to nothing", err);
    if (rc != -ENOENT)
        return rc;
    return counter.name ? no_class(s, asked, &counter, err) : no_counter(s, asked, err);
}
