/*
 * Joules per step, token and whatever was counted, for people. Each line says what was divided by
 * what: "tokens of decode" are the joules of all spans called decode over the tokens that were
 * counted directly in them, "tokens inside of epoch" those over all that was counted in between.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "report/attribution/internal.h"
#include "report/units.h"

#define MAX_SHOWN 24
#define MAX_NAME  44
#define COLUMNS   66 /* without the sum, which is left out where there is no room for it */
#define SUM       13

/* "step", "epoch (2 ranks)", "tokens of decode", "tokens inside of epoch" */
static int name_unit(const struct nrg_unit_use *u, bool unicode, struct nrg_str *out)
{
    char name[64], of[128];
    nrg_copy_clean(name, sizeof name, u->name, strlen(u->name));
    nrg_copy_clean(of, sizeof of, u->of, strlen(u->of));
    out->len = 0;
    int rc = nrg_str_addf(out, "%s", name);
    if (!rc && !strcmp(u->kind, NRG_KIND_COUNTER))
        rc = nrg_str_addf(out, "%s%s%s", u->inside ? " inside of " : " of ",
                          of[0] ? of : "(no name)",
                          strcmp(u->of_kind, NRG_KIND_BACKWARD) ? "" : " (backward)");
    if (!rc && u->ranks)
        rc = nrg_str_addf(out, " (%zu ranks)", u->ranks);
    return rc ? rc : nrg_fit_text(out, MAX_NAME, true, unicode);
}

/* "not resolved, not closed" */
static int note_unit(const struct nrg_unit_use *u, struct nrg_str *out)
{
    int rc = nrg_str_addf(out, "%s", "");
    for (size_t w = 0; !rc && w < NRG_ROW_FLAG_WORDS; w++) {
        const char *word = nrg_attribution_flag(u->flags, w);
        if (word[0])
            rc = nrg_str_addf(out, "%s%s%s", out->len ? ", " : "", word,
                              strcmp(word, "together") ? "" : " with others");
    }
    return rc;
}

static void print_spread(const struct nrg_unit_use *u, FILE *out)
{
    const struct nrg_unit_spread *s = &u->spread;
    char name[40];
    if (!s->n)
        return;
    nrg_copy_clean(name, 25, u->name, strlen(u->name));
    fprintf(out, "%s: median %s, middle half %s .. %s", name, nrg_show_energy(s->median_j).text,
            nrg_show_energy(s->low_j).text, nrg_show_energy(s->high_j).text);
    if (s->first)
        fprintf(out, " of %zu\n  first %zu apart%s: %s each", s->n, s->first,
                s->given ? "" : " (longer than twice the median)",
                nrg_show_energy(s->first_j / (double)s->first).text);
    fputc('\n', out);
}

static bool has_sum(const struct nrg_attribution_view *view, int width)
{
    return !view->width || (unsigned)width + COLUMNS + SUM <= view->width;
}

static int print_unit(const struct nrg_unit_use *u, const struct nrg_attribution_view *view,
                      int width, FILE *out)
{
    struct nrg_text_style st = nrg_text_style(view->colour);
    struct nrg_str name = {0}, note = {0};
    int rc = name_unit(u, view->unicode, &name);
    if (!rc)
        rc = note_unit(u, &note);
    if (!rc) {
        nrg_text_pad(out, name.text, width);
        fprintf(out, " %12s ", nrg_show_energy(u->energy_j / u->amount).text);
        nrg_text_right(out, nrg_show_interval(u->low_j / u->amount, u->high_j / u->amount).text,
                       25);
        fprintf(out, " %12s %12.0f", nrg_show_seconds(u->time_s / u->amount).text, u->amount);
        if (has_sum(view, width))
            fprintf(out, " %12s", nrg_show_energy(u->energy_j).text);
        if (note.len)
            fprintf(out, "  %s%s%s", u->flags & NRG_ROW_UNRESOLVED ? st.warn : st.dim, note.text,
                    st.off);
        fputc('\n', out);
    }
    nrg_str_release(&name);
    nrg_str_release(&note);
    return rc;
}

static int name_width(const struct nrg_attribution *a, bool unicode, int *width)
{
    struct nrg_str name = {0};
    int rc = 0;
    *width = 16;
    for (size_t i = 0; !rc && i < a->n_units && i < MAX_SHOWN; i++) {
        rc = name_unit(&a->units[i], unicode, &name);
        int columns = rc ? 0 : nrg_text_width(name.text);
        *width = columns > *width ? columns : *width;
    }
    nrg_str_release(&name);
    return rc;
}

int nrg_attribution_per_text(const struct nrg_attribution_report *r,
                             const struct nrg_attribution_view *view, FILE *out)
{
    const struct nrg_attribution *a = r->attribution;
    struct nrg_text_style st = nrg_text_style(view->colour);
    int width, rc = name_width(a, view->unicode, &width);
    if (rc || !a->n_units)
        return rc;
    char band[24];
    snprintf(band, sizeof band, "%g %%", 100 * r->confidence);
    fprintf(out, "\n%s%-*s %12s %25s %12s %12s%s%s\n", st.dim, width, "PER", "ENERGY", band, "TIME",
            "HOW MANY", has_sum(view, width) ? "       IN ALL" : "", st.off);
    for (size_t i = 0; !rc && i < a->n_units && i < MAX_SHOWN; i++)
        rc = print_unit(&a->units[i], view, width, out);
    if (a->n_units > MAX_SHOWN)
        fprintf(out, "and %zu more: --json lists all\n", a->n_units - MAX_SHOWN);
    for (size_t i = 0; i < a->n_units; i++)
        print_spread(&a->units[i], out);
    return rc;
}
