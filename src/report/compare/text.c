/* A comparison as text, see report.h: the answer first, then what it rests on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/compare/report.h"
#include "report/style.h"
#include "report/units.h"

static void print_p(FILE *out, double p, bool sure)
{
    if (isnan(p))
        fprintf(out, "      -");
    else if (p < 0.001)
        fprintf(out, " <0.001");
    else
        fprintf(out, "  %.3f", p);
    fprintf(out, "%s\n", sure ? " *" : "");
}

static void print_effect(FILE *out, const char *name, const struct nrg_effect *e,
                         struct nrg_shown (*show)(double), double p, double level)
{
    nrg_text_pad(out, name, 26);
    nrg_text_right(out, show(e->a).text, 11);
    nrg_text_right(out, show(e->b).text, 11);
    nrg_text_right(out, nrg_show_change(e->ratio).text, 10);
    if (isnan(e->low))
        fprintf(out, "%22s", "-");
    else
        fprintf(out, " %9s … %-9s", nrg_show_change(e->low).text, nrg_show_change(e->high).text);
    print_p(out, p, p < level);
}

/* Parts that one side alone has: named, because nothing is compared with nothing. */
static void print_only(const struct nrg_compare_report *r, FILE *out)
{
    const struct nrg_comparison *c = r->comparison;
    size_t top = r->top;
    for (int s = 0; s < 2; s++) {
        size_t n = 0;
        for (size_t i = 0; i < c->n_only; i++) {
            const struct nrg_compare_only *only = &c->only[i];
            if (only->side != s || (n++ >= top && top))
                continue;
            if (n == 1)
                fprintf(out, "\nonly in %s:", nrg_compare_side_name(r->comparison->sides, s));
            fprintf(out, "%s %s %s (%s)", n == 1 ? "" : ",", only->kind, only->name,
                    nrg_show_energy(only->energy_j).text);
        }
        if (top && n > top)
            fprintf(out, " and %zu more", n - top);
        if (n)
            fprintf(out, "\n");
    }
}

static void print_rows(const struct nrg_compare_report *r, FILE *out)
{
    const struct nrg_comparison *c = r->comparison;
    size_t *order = nrg_calloc(c->n_rows + 1, sizeof *order);
    size_t n = order ? nrg_compare_order(r, order) : 0;
    const char *kind = "";
    for (size_t i = 0; i < n; i++) {
        const struct nrg_compare_row *row = &c->rows[order[i]];
        if (strcmp(kind, row->kind) != 0)
            fprintf(out, "\n%s, p adjusted for %zu rows\n", row->kind, c->n_rows);
        kind = row->kind;
        print_effect(out, row->name, &row->effect, nrg_show_energy, row->p_adjusted,
                     nrg_compare_level(r));
    }
    free(order);
    print_only(r, out);
}

void nrg_compare_text(const struct nrg_compare_report *r, FILE *out)
{
    const struct nrg_comparison *c = r->comparison;
    struct nrg_text_style st = nrg_text_style(r->colour);
    struct nrg_str answer = {0};
    if (!nrg_compare_answer(r, &answer))
        fprintf(out, "%s%s%s\n", st.bold, answer.text, st.off);
    nrg_str_release(&answer);
    for (size_t i = 0; i < c->warnings.n; i++)
        fprintf(out, "%s! %s%s\n", st.warn, c->warnings.items[i], st.off);
    fprintf(out, "\n%s%-26s", st.dim, "");
    for (int side = 0; side < 2; side++)
        nrg_text_right(out, nrg_compare_side_name(c->sides, side), 11);
    fprintf(out, "%10s%22s      p%s\n", "change", "interval", st.off);
    for (int q = 0; q < NRG_COMPARE_QUANTITIES; q++)
        if (!isnan(c->quantities[q].ratio))
            print_effect(out, nrg_compare_quantities[q].name, &c->quantities[q],
                         nrg_compare_quantities[q].show, c->quantities[q].p_value,
                         nrg_compare_level(r));
    struct nrg_str basis = {0};
    if (!nrg_compare_basis(r, &basis))
        fprintf(out, "%s\n", basis.text);
    nrg_str_release(&basis);
    print_rows(r, out);
}
