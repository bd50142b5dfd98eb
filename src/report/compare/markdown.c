/* A comparison as Markdown, for a pull request. See report.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/compare/report.h"
#include "report/units.h"

/* Names come from programs: what Markdown would take for its own is escaped. */
static void print_name(FILE *out, const char *name)
{
    for (; *name; name++) {
        if (strchr("\\`*_{}[]<>()#+!|~&", *name))
            fputc('\\', out);
        fputc(*name, out);
    }
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

void nrg_compare_markdown(const struct nrg_compare_report *r, FILE *out)
{
    const struct nrg_comparison *c = r->comparison;
    struct nrg_str answer = {0};
    if (!nrg_compare_answer(r, &answer))
        fprintf(out, "**%s**\n\n", answer.text);
    nrg_str_release(&answer);
    for (size_t i = 0; i < c->warnings.n; i++) {
        fprintf(out, "> ");
        print_name(out, c->warnings.items[i]);
        fprintf(out, "\n\n");
    }
    fprintf(out, "%zu runs of %s: %s; ", c->sides[0].n_runs, r->names[0],
            nrg_show_energy(nrg_compare_mean(&c->sides[0], nrg_compare_energy_j)).text);
    fprintf(out, "%zu runs of %s: %s\n\n", c->sides[1].n_runs, r->names[1],
            nrg_show_energy(nrg_compare_mean(&c->sides[1], nrg_compare_energy_j)).text);
    fprintf(out, "| | | change | %.0f %% interval | p |\n|---|---|---:|---|---:|\n",
            100 * c->confidence);
    for (int q = 0; q < NRG_COMPARE_QUANTITIES; q++)
        if (!isnan(c->quantities[q].ratio))
            print_row(out, "", nrg_compare_names[q], &c->quantities[q], c->quantities[q].p_value);
    size_t *order = calloc(c->n_rows + 1, sizeof *order);
    size_t n = order ? nrg_compare_order(r, order) : 0;
    for (size_t i = 0; i < n; i++) {
        const struct nrg_compare_row *row = &c->rows[order[i]];
        print_row(out, row->kind, row->name, &row->effect, row->p_adjusted);
    }
    free(order);
}
