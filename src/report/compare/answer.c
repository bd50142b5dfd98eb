/* The answer of a comparison in a sentence, and what the outputs share. See report.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/compare/report.h"

#define ENOUGH_RUNS   10 /* of each side tell how much runs vary; fewer give a range */
#define TELLS_NOTHING 1  /* an interval that holds twice the energy, or none at all */

struct nrg_change nrg_show_change(double ratio)
{
    struct nrg_change change = {"-"};
    double percent = 100 * (ratio - 1), size = fabs(percent);
    if (isfinite(percent))
        snprintf(change.text, sizeof change.text, "%+.*f %%",
                 size >= 100 ? 0
                 : size >= 1 ? 1
                             : 2,
                 percent);
    return change;
}

double nrg_compare_energy_j(const struct nrg_compare_run *run)
{
    return run->energy_j;
}

double nrg_compare_duration_s(const struct nrg_compare_run *run)
{
    return run->duration_s;
}

double nrg_compare_mean(const struct nrg_compare_side *side,
                        double (*value)(const struct nrg_compare_run *run))
{
    double sum = 0, n = 0;
    for (size_t i = 0; i < side->n_runs; i++)
        if (isfinite(value(&side->runs[i]))) {
            sum += value(&side->runs[i]);
            n++;
        }
    return n > 0 ? sum / n : NAN;
}

static const char *side_name(const struct nrg_compare_report *r, int side)
{
    return nrg_compare_side_name(r->comparison->sides, side);
}

/* Digits that a percentage needs, by its own size. */
static const char *percent(double part, char *buf, size_t size)
{
    double p = 100 * fabs(part);
    snprintf(buf, size, "%.*f", p >= 100 ? 0 : p >= 1 ? 1 : 2, p);
    return buf;
}

static int add_duration(const struct nrg_effect *d, struct nrg_str *out)
{
    char p[32];
    if (d->verdict == NRG_EFFECT_UNKNOWN)
        return 0;
    if (d->verdict == NRG_EFFECT_NONE)
        return nrg_str_addf(out, "; the time is the same as far as can be told");
    return nrg_str_addf(out, ", %s %% %s", percent(d->ratio - 1, p, sizeof p),
                        d->ratio > 1 ? "longer" : "shorter");
}

static int add_unknown(const struct nrg_compare_report *r, const struct nrg_effect *e,
                       struct nrg_str *out)
{
    char by[32];
    return nrg_str_addf(out,
                        "%s used %s %% %s energy than %s in these runs, and how much runs vary is "
                        "not known: nothing more can be said",
                        side_name(r, 1), percent(e->ratio - 1, by, sizeof by),
                        e->ratio < 1 ? "less" : "more", side_name(r, 0));
}

static int add_none(const struct nrg_compare_report *r, const struct nrg_effect *e,
                    struct nrg_str *out)
{
    const struct nrg_comparison *c = r->comparison;
    char most[32], detect[32];
    double largest = fmax(fabs(e->low - 1), fabs(e->high - 1));
    int rc = largest > TELLS_NOTHING
                 ? nrg_str_addf(out, "runs vary too much to tell (%.4g %%: %s to %s)",
                                100 * c->confidence, nrg_show_change(e->low).text,
                                nrg_show_change(e->high).text)
                 : nrg_str_addf(out, "no difference of energy larger than %s %% was seen",
                                percent(largest, most, sizeof most));
    percent(c->detect, detect, sizeof detect);
    if (rc || isnan(c->needed.runs) || largest <= c->detect)
        return rc;
    if (e->n_a < ENOUGH_RUNS || e->n_b < ENOUGH_RUNS)
        return nrg_str_addf(out, "; %.0f to %.0f runs of each would show %s %%", c->needed.low,
                            c->needed.high, detect);
    return nrg_str_addf(out, "; %.0f runs of each would show %s %%", c->needed.runs, detect);
}

static int add_change(const struct nrg_compare_report *r, const struct nrg_effect *e,
                      struct nrg_str *out)
{
    const struct nrg_comparison *c = r->comparison;
    char by[32], near[32], far[32];
    bool less = e->verdict == NRG_EFFECT_LESS;
    double a = fabs(e->low - 1), b = fabs(e->high - 1);
    int rc =
        nrg_str_addf(out, "%s uses %s %% %s energy than %s (%.4g %%: %s to %s %%)", side_name(r, 1),
                     percent(e->ratio - 1, by, sizeof by), less ? "less" : "more", side_name(r, 0),
                     100 * c->confidence, percent(fmin(a, b), near, sizeof near),
                     percent(fmax(a, b), far, sizeof far));
    return rc ? rc : add_duration(&c->quantities[NRG_COMPARE_DURATION], out);
}

/* On a machine that others use, too, the program's own part tells more than the whole. */
static int add_program(const struct nrg_compare_report *r, struct nrg_str *out)
{
    const struct nrg_effect *e = &r->comparison->quantities[NRG_COMPARE_PROGRAM];
    char by[32], near[32], far[32];
    double a = fabs(e->low - 1), b = fabs(e->high - 1);
    if (e->verdict != NRG_EFFECT_LESS && e->verdict != NRG_EFFECT_MORE)
        return 0;
    return nrg_str_addf(out, "; of it, %s's own part is %s %% %s (%s to %s %%)", side_name(r, 1),
                        percent(e->ratio - 1, by, sizeof by), e->ratio < 1 ? "less" : "more",
                        percent(fmin(a, b), near, sizeof near),
                        percent(fmax(a, b), far, sizeof far));
}

bool nrg_compare_is_refused(const struct nrg_compare_report *r)
{
    return r->comparison->refusals.n && !r->forced;
}

enum nrg_gate_result nrg_compare_condition(const struct nrg_compare_report *r, size_t i)
{
    return nrg_compare_is_refused(r) ? NRG_GATE_UNDECIDED
                                     : nrg_gate_judge(r->conditions[i], r->comparison);
}

int nrg_compare_answer(const struct nrg_compare_report *r, struct nrg_str *out)
{
    const struct nrg_effect *e = &r->comparison->quantities[NRG_COMPARE_ENERGY];
    if (nrg_compare_is_refused(r))
        return nrg_str_addf(out, "%s and %s are not comparable: %s", side_name(r, 0),
                            side_name(r, 1), r->comparison->refusals.items[0]);
    if (isnan(e->ratio))
        return nrg_str_addf(out, "nothing can be said: %s has no run with energy",
                            e->n_a ? side_name(r, 1) : side_name(r, 0));
    if (isnan(e->low))
        return add_unknown(r, e, out);
    if (e->verdict != NRG_EFFECT_NONE)
        return add_change(r, e, out);
    int rc = add_none(r, e, out);
    return rc ? rc : add_program(r, out);
}

int nrg_compare_basis(const struct nrg_compare_report *r, struct nrg_str *out)
{
    const struct nrg_effect *e = &r->comparison->quantities[NRG_COMPARE_ENERGY];
    char a[32], b[32];
    int rc = nrg_str_addf(out, "runs %zu and %zu", e->n_a, e->n_b);
    if (!rc && !isnan(e->scatter_a))
        rc = nrg_str_addf(out, ", which vary by %s %% and %s %%",
                          percent(e->scatter_a, a, sizeof a), percent(e->scatter_b, b, sizeof b));
    if (!rc && !isnan(e->drift))
        rc = nrg_str_addf(out, "; drift over all of them %s, taken out",
                          nrg_show_change(1 + e->drift).text);
    if (!rc && !isnan(e->p_rank))
        rc = nrg_str_addf(out, "; by ranks alone p = %.2g", e->p_rank);
    return rc;
}

double nrg_compare_level(const struct nrg_compare_report *r)
{
    return 1 - r->comparison->confidence;
}

static struct nrg_shown show_joule_seconds(double js)
{
    struct nrg_shown shown;
    snprintf(shown.text, sizeof shown.text, "%.4g Js", js);
    return shown;
}

const struct nrg_compare_quantity_words nrg_compare_quantities[NRG_COMPARE_QUANTITIES] = {
    [NRG_COMPARE_ENERGY] = {"energy", nrg_show_energy},
    [NRG_COMPARE_PROGRAM] = {"program's own", nrg_show_energy},
    [NRG_COMPARE_DURATION] = {"time", nrg_show_seconds},
    [NRG_COMPARE_POWER] = {"mean power", nrg_show_power},
    [NRG_COMPARE_ENERGY_DELAY] = {"energy x time", show_joule_seconds},
    [NRG_COMPARE_MEMORY] = {"peak memory", nrg_show_bytes},
};

/* ---- rows ---- */

struct placed {
    size_t row, kind;
    double p, change;
};

static int by_certainty(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->p < y->p || x->p > y->p)
        return x->p < y->p ? -1 : 1;
    return x->change > y->change ? -1 : x->change < y->change;
}

static size_t kind_rank(const char *kind)
{
    static const char *const kinds[] = {"domain", "process", "module", "operator"};
    size_t i = 0;
    while (i < sizeof kinds / sizeof *kinds && strcmp(kinds[i], kind) != 0)
        i++;
    return i;
}

size_t nrg_compare_order(const struct nrg_compare_report *r, size_t *order)
{
    const struct nrg_comparison *c = r->comparison;
    struct placed *placed = nrg_calloc(c->n_rows + 1, sizeof *placed);
    size_t n = 0, of_kind = 0;
    for (size_t i = 0; placed && i < c->n_rows; i++) {
        const struct nrg_compare_row *row = &c->rows[i];
        placed[i] =
            (struct placed){i, kind_rank(row->kind), isnan(row->p_adjusted) ? 2 : row->p_adjusted,
                            fabs(log(row->effect.ratio))};
    }
    if (placed)
        qsort(placed, c->n_rows, sizeof *placed, by_certainty);
    for (size_t i = 0; placed && i < c->n_rows; i++) {
        of_kind = i && placed[i].kind == placed[i - 1].kind ? of_kind + 1 : 0;
        if (!r->top || of_kind < r->top)
            order[n++] = placed[i].row;
    }
    free(placed);
    return n;
}
