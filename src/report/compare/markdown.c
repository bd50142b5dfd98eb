/* A comparison as Markdown, for a pull request. See report.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/compare/report.h"
#include "report/units.h"

/* Names come from programs: what Markdown would take for its own is escaped. */
static bool is_markup(char c)
{
    return strchr("\\`*_{}[]<>#!|~&", c) != NULL;
}

static void print_name(FILE *out, const char *name)
{
    for (; *name; name++) {
        if (is_markup(*name))
            fputc('\\', out);
        fputc(*name, out);
    }
}

static void print_bold(FILE *out, const char *text)
{
    fprintf(out, "**");
    print_name(out, text);
    fprintf(out, "**\n\n");
}

static void print_row(FILE *out, const char *kind, const char *name, const struct nrg_effect *e,
                      double p)
{
    fprintf(out, "| %s | ", kind);
    print_name(out, name);
    fprintf(out, " | %s | ", nrg_show_change(e->ratio).text);
    if (isnan(e->low))
        fprintf(out, "- | ");
    else
        fprintf(out, "%s … %s | ", nrg_show_change(e->low).text, nrg_show_change(e->high).text);
    if (isnan(p))
        fprintf(out, "- |\n");
    else
        fprintf(out, "%.2g |\n", p);
}

static void print_notes(FILE *out, const struct nrg_compare_notes *notes)
{
    for (size_t i = 0; i < notes->n; i++) {
        fprintf(out, "> ");
        print_name(out, notes->items[i]);
        fprintf(out, "\n\n");
    }
}

static void print_conditions(const struct nrg_compare_report *r, FILE *out)
{
    for (size_t i = 0; i < r->n_conditions; i++) {
        fprintf(out, "* fails if ");
        print_name(out, r->conditions[i]);
        fprintf(out, ": %s\n%s", nrg_gate_words[nrg_compare_condition(r, i)],
                i + 1 < r->n_conditions ? "" : "\n");
    }
}

static void print_sides(const struct nrg_compare_report *r, FILE *out)
{
    for (int s = 0; s < 2; s++) {
        const struct nrg_compare_side *side = &r->comparison->sides[s];
        fprintf(out, "%zu run%s of ", side->n_runs, side->n_runs == 1 ? "" : "s");
        print_name(out, nrg_compare_side_name(r->comparison->sides, s));
        fprintf(
            out, ": %s, %s%s", nrg_show_energy(nrg_compare_mean(side, nrg_compare_energy_j)).text,
            side->n_runs ? nrg_provenance_name(side->runs[0].provenance) : "", s ? "\n\n" : "; ");
    }
}

static void print_table(const struct nrg_compare_report *r, FILE *out)
{
    const struct nrg_comparison *c = r->comparison;
    fprintf(out, "| | | change | %.4g %% interval | p |\n|---|---|---:|---|---:|\n",
            100 * c->confidence);
    for (int q = 0; q < NRG_COMPARE_QUANTITIES; q++)
        if (!isnan(c->quantities[q].ratio))
            print_row(out, "", nrg_compare_names[q], &c->quantities[q], c->quantities[q].p_value);
    size_t *order = nrg_calloc(c->n_rows + 1, sizeof *order);
    size_t n = order ? nrg_compare_order(r, order) : 0;
    for (size_t i = 0; i < n; i++) {
        const struct nrg_compare_row *row = &c->rows[order[i]];
        print_row(out, row->kind, row->name, &row->effect, row->p_adjusted);
    }
    free(order);
}

void nrg_compare_markdown(const struct nrg_compare_report *r, FILE *out)
{
    const struct nrg_comparison *c = r->comparison;
    struct nrg_str answer = {0};
    if (!nrg_compare_answer(r, &answer))
        print_bold(out, answer.text);
    nrg_str_release(&answer);
    print_conditions(r, out);
    print_notes(out, &c->refusals);
    print_notes(out, &c->warnings);
    print_sides(r, out);
    if (!nrg_compare_is_refused(r))
        print_table(r, out);
}
