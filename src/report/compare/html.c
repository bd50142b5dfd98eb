/*
 * A comparison as a page, see report.h: one file without a script, so that there is nothing to wait
 * for and nothing that names from recordings could run; its policy allows its own styles alone.
 * Numbers for other programs are in data-nrg attributes, as on the page of a run.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/compare/html.h"
#include "report/units.h"

static const char head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<title>nrg compare</title>\n<style>\n"
    ":root{color-scheme:light dark;--ink:#1d2733;--dim:#5b6673;--line:#d6dce3;--back:#fff;"
    "--less:#0b62c4;--more:#b3261e;--a:#6b7480;--b:#8a4b00;--warn:#fff4d6}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6eaef;--dim:#a3adb8;--line:#37414c;"
    "--back:#14191f;--less:#7db7ff;--more:#ff9a90;--a:#aab4bf;--b:#ffb86b;--warn:#3a3218}}\n"
    "body{font:16px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--back);"
    "max-width:62rem;margin:0 auto;padding:1rem}\n"
    "h1{font-size:1.5rem;line-height:1.3}h2{font-size:1.1rem;margin:1.6rem 0 .4rem}\n"
    "p{margin:.4rem 0}.dim{color:var(--dim)}.warn{background:var(--warn);padding:.4rem "
    ".7rem;border-radius:.3rem}\n"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:"
    "tabular-nums}\n"
    "th,td{padding:.25rem .6rem;border-bottom:1px solid var(--line);text-align:right;"
    "white-space:nowrap}\n"
    "th:first-child,td:first-child{text-align:left;white-space:normal;overflow-wrap:anywhere;"
    "min-width:8rem;max-width:24rem}\n"
    "thead th{color:var(--dim);font-weight:600}.less{color:var(--less)}.more{color:var(--more)}\n"
    "svg{display:block;max-width:100%}svg text{font-size:12px;fill:var(--dim)}\n"
    ".axis{stroke:var(--line);stroke-width:1}.span{stroke:var(--dim);stroke-width:2}\n"
    ".span.less,.span.more{stroke:currentColor}.dot{fill:var(--dim)}.dot.less,.dot.more{fill:"
    "currentColor}\n"
    ".a{fill:var(--a);stroke:var(--a)}.b{fill:var(--b);stroke:var(--b)}\n"
    "@media print{body{max-width:none}.warn{border:1px solid}}\n"
    "</style>\n</head>\n<body>\n<main>\n";

void nrg_html_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        const char *entity = *text == '&'    ? "&amp;"
                             : *text == '<'  ? "&lt;"
                             : *text == '>'  ? "&gt;"
                             : *text == '"'  ? "&quot;"
                             : *text == '\'' ? "&#39;"
                                             : NULL;
        if (entity)
            fputs(entity, out);
        else
            fputc(*text, out);
    }
}

const char *nrg_html_verdict(const struct nrg_effect *e, bool sure)
{
    return sure && e->verdict == NRG_EFFECT_LESS   ? "less"
           : sure && e->verdict == NRG_EFFECT_MORE ? "more"
                                                   : "";
}

/* ---- tables ---- */

static void print_row(FILE *out, const struct nrg_html_row *row, double level, double widest)
{
    const struct nrg_effect *e = row->effect;
    const char *verdict = nrg_html_verdict(e, row->p < level);
    fprintf(out, "<tr><td>");
    nrg_html_text(out, row->name);
    fprintf(out, "</td><td>%s</td><td>%s</td><td class=\"%s\"", row->show(e->a).text,
            row->show(e->b).text, verdict);
    if (isfinite(e->ratio))
        fprintf(out, " data-nrg=\"ratio\" data-value=\"%.9g\"", e->ratio);
    fprintf(out, ">%s</td><td>", nrg_show_change(e->ratio).text);
    if (isnan(e->low))
        fprintf(out, "-");
    else
        fprintf(out,
                "<span data-nrg=\"low\" data-value=\"%.9g\">%s</span> … <span data-nrg=\"high\" "
                "data-value=\"%.9g\">%s</span>",
                e->low, nrg_show_change(e->low).text, e->high, nrg_show_change(e->high).text);
    fprintf(out, "</td><td>");
    if (!isnan(e->low))
        nrg_html_whisker(out, e, verdict, widest);
    if (isnan(row->p))
        fprintf(out, "</td><td>-</td></tr>\n");
    else
        fprintf(out,
                row->p < 0.001 ? "</td><td>&lt; 0.001</td></tr>\n" : "</td><td>%.3f</td></tr>\n",
                row->p);
}

static void print_table(const struct nrg_compare_report *r, FILE *out, const char *p_word,
                        const struct nrg_html_row *rows, size_t n)
{
    double widest = 0.001;
    for (size_t i = 0; i < n; i++)
        if (!isnan(rows[i].effect->low))
            widest =
                fmax(widest, fmax(fabs(rows[i].effect->low - 1), fabs(rows[i].effect->high - 1)));
    fprintf(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"table\"><table>"
                 "<thead><tr><th scope=\"col\"></th><th scope=\"col\">");
    nrg_html_text(out, nrg_compare_side_name(r->comparison->sides, 0));
    fprintf(out, "</th><th scope=\"col\">");
    nrg_html_text(out, nrg_compare_side_name(r->comparison->sides, 1));
    fprintf(
        out,
        "</th><th scope=\"col\">change</th><th scope=\"col\">%.4g %% interval</th><th "
        "scope=\"col\">&minus;%.3g to +%.3g %%</th><th scope=\"col\">%s</th></tr></thead><tbody>\n",
        100 * r->comparison->confidence, 100 * fmin(widest, 1), 100 * fmin(widest, 1), p_word);
    for (size_t i = 0; i < n; i++)
        print_row(out, &rows[i], nrg_compare_level(r), fmin(widest, 1));
    fprintf(out, "</tbody></table></div>\n");
}

static void print_quantities(const struct nrg_compare_report *r, FILE *out)
{
    struct nrg_html_row rows[NRG_COMPARE_QUANTITIES];
    size_t n = 0;
    for (int q = 0; q < NRG_COMPARE_QUANTITIES; q++) {
        const struct nrg_effect *e = &r->comparison->quantities[q];
        if (!isnan(e->ratio))
            rows[n++] = (struct nrg_html_row){nrg_compare_quantities[q].name, e,
                                              nrg_compare_quantities[q].show, e->p_value};
    }
    print_table(r, out, "p", rows, n);
}

/* The rows of each kind are a table of their own. */
static void print_rows(const struct nrg_compare_report *r, FILE *out)
{
    const struct nrg_comparison *c = r->comparison;
    size_t *order = calloc(c->n_rows + 1, sizeof *order), n, end;
    struct nrg_html_row *rows = calloc(c->n_rows + 1, sizeof *rows);
    n = order && rows ? nrg_compare_order(r, order) : 0;
    for (size_t begin = 0; begin < n; begin = end) {
        const char *kind = c->rows[order[begin]].kind;
        for (end = begin; end < n && !strcmp(c->rows[order[end]].kind, kind); end++) {
            const struct nrg_compare_row *row = &c->rows[order[end]];
            rows[end - begin] =
                (struct nrg_html_row){row->name, &row->effect, nrg_show_energy, row->p_adjusted};
        }
        fprintf(out, "<h2>Energy by %s</h2>\n", kind);
        print_table(r, out, "p, adjusted", rows, end - begin);
    }
    free(rows);
    free(order);
}

static void print_only(const struct nrg_compare_report *r, FILE *out)
{
    const struct nrg_comparison *c = r->comparison;
    if (c->n_only)
        fprintf(out, "<h2>Only on one side</h2>\n<ul>\n");
    for (size_t i = 0; i < c->n_only; i++) {
        fprintf(out, "<li>");
        nrg_html_text(out, nrg_compare_side_name(c->sides, c->only[i].side));
        fprintf(out, ": %s ", c->only[i].kind);
        nrg_html_text(out, c->only[i].name);
        fprintf(out, ", %s</li>\n", nrg_show_energy(c->only[i].energy_j).text);
    }
    if (c->n_only)
        fprintf(out, "</ul>\n");
}

/* ---- all of it ---- */

static void print_notes(FILE *out, const struct nrg_compare_notes *notes, const char *word)
{
    for (size_t i = 0; i < notes->n; i++) {
        fprintf(out, "<p class=\"warn\">%s", word);
        nrg_html_text(out, notes->items[i]);
        fprintf(out, "</p>\n");
    }
}

static void print_sides(const struct nrg_compare_report *r, FILE *out)
{
    for (int s = 0; s < 2; s++) {
        const struct nrg_compare_side *side = &r->comparison->sides[s];
        fprintf(out, "<p>");
        nrg_html_text(out, nrg_compare_side_name(r->comparison->sides, s));
        fprintf(out, ": %zu run%s, %s", side->n_runs, side->n_runs == 1 ? "" : "s",
                nrg_show_energy(nrg_compare_mean(side, nrg_compare_energy_j)).text);
        if (side->n_runs)
            fprintf(out, " in the mean, %s. <code>", nrg_provenance_name(side->runs[0].provenance));
        nrg_html_text(out, side->n_runs ? side->runs[0].command : "");
        fprintf(out, "%s</p>\n", side->n_runs ? "</code>" : "");
    }
}

static void print_basis(const struct nrg_compare_report *r, FILE *out)
{
    struct nrg_str basis = {0};
    if (!nrg_compare_basis(r, &basis) && basis.text) {
        fprintf(out, "<p class=\"dim\">");
        nrg_html_text(out, basis.text);
        fprintf(out, "</p>\n");
    }
    nrg_str_release(&basis);
}

static void print_findings(const struct nrg_compare_report *r, FILE *out)
{
    print_quantities(r, out);
    print_basis(r, out);
    print_rows(r, out);
    print_only(r, out);
    fprintf(out,
            "<p class=\"dim\">The interval holds the true ratio in %.4g of 100 comparisons; it "
            "is made of how much runs vary and of what the sensors may be off by, with a "
            "linear drift of the machine taken out. p-values of rows are adjusted for their "
            "number (Holm).</p>\n",
            100 * r->comparison->confidence);
}

static void print_conditions(const struct nrg_compare_report *r, FILE *out)
{
    for (size_t i = 0; i < r->n_conditions; i++) {
        fprintf(out, "<p>Fails if <code>");
        nrg_html_text(out, r->conditions[i]);
        fprintf(out, "</code>: %s</p>\n", nrg_gate_words[nrg_compare_condition(r, i)]);
    }
}

void nrg_compare_html(const struct nrg_compare_report *r, FILE *out)
{
    struct nrg_str answer = {0};
    fputs(head, out);
    if (!nrg_compare_answer(r, &answer)) {
        fprintf(out, "<h1 data-nrg=\"answer\">");
        nrg_html_text(out, answer.text);
        fprintf(out, "</h1>\n");
    }
    nrg_str_release(&answer);
    print_conditions(r, out);
    print_notes(out, &r->comparison->refusals, "Not comparable: ");
    print_notes(out, &r->comparison->warnings, "");
    print_sides(r, out);
    nrg_html_runs(r, out);
    if (!nrg_compare_is_refused(r))
        print_findings(r, out);
    fprintf(out, "<p class=\"dim\">Made by nrg compare.</p>\n</main>\n</body>\n</html>\n");
}
