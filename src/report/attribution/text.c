/*
 * An attribution for people: where the energy was measured and how it was shared out, the tree,
 * joules per unit of work, and what the reader has to know before quoting a number.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "report/attribution/internal.h"
#include "report/attribution/waiting.h"
#include "report/units.h"

#define MAX_SHOWN_NOTES   8
#define MAX_SHOWN_DOMAINS 6

static void print_title(const struct nrg_attribution_report *r, const struct nrg_text_style *st,
                        FILE *out)
{
    const struct nrg_attribution *a = r->attribution;
    const char *command = r->recording ? nrg_recording_text(r->recording, "command_line") : NULL;
    const char *path = r->recording ? nrg_recording_path(r->recording) : "";
    fprintf(out, "%s%s%s   %s   %llu spans\n", st->bold, command ? command : path, st->off,
            nrg_show_seconds(a->duration_s).text, (unsigned long long)a->spans);
    if (!isnan(a->from_s))
        fprintf(out, "%s%-9s%s%.9g s .. %.9g s of the run; sums are of this time, the fit of all\n",
                st->dim, "range", st->off, a->from_s, a->to_s);
}

static void print_source(const struct nrg_attribution_domain *d, const struct nrg_text_style *st,
                         FILE *out)
{
    const struct nrg_recorded_channel *c = d->domain ? d->domain->channel : NULL;
    if (!c)
        return;
    bool estimated = c->channel.provenance == NRG_ESTIMATED;
    fprintf(out, "%s%-9s%s%s %s, %s%s%s (%s, %s)\n", st->dim, "source", st->off, c->channel.name,
            nrg_show_energy(d->total_j).text, estimated ? st->warn : "",
            nrg_provenance_name(c->channel.provenance), estimated ? st->off : "", c->driver,
            c->channel.kind == NRG_COUNTER ? "counter" : "gauge");
}

static void print_method(const struct nrg_attribution_domain *d, const struct nrg_text_style *st,
                         FILE *out)
{
    const char *method = nrg_method_name(d->method), *why = d->why;
    size_t len = strlen(method);
    if (!strncmp(why, method, len) && !strncmp(why + len, ": ", 2))
        why += len + 2; /* the method's name stands there already */
    fprintf(out, "%s%-9s%s%s by %s%s%s", st->dim, "method", st->off, nrg_attribution_domain_name(d),
            method, why[0] ? ": " : "", why);
    if (!isnan(d->residual))
        fprintf(out, " (%.1f %% not explained)", 100 * d->residual);
    fputc('\n', out);
}

static void print_lag_and_idle(const struct nrg_attribution *a, const struct nrg_text_style *st,
                               FILE *out)
{
    static const char *const words[] = {"apart", "shared out by time", "not separated"};
    for (size_t i = 0; i < a->n_domains && i < MAX_SHOWN_DOMAINS; i++) {
        const struct nrg_attribution_domain *d = &a->domains[i];
        if (d->lag_s > 0)
            fprintf(out, "%s%-9s%s%s %s (%s)\n", st->dim, "lag", st->off,
                    nrg_attribution_domain_name(d), nrg_show_seconds(d->lag_s).text, d->lag_source);
    }
    for (size_t i = 0; i < a->n_domains && i < MAX_SHOWN_DOMAINS; i++) {
        const struct nrg_attribution_domain *d = &a->domains[i];
        if (a->idle != NRG_IDLE_NONE && !isnan(d->idle_w))
            fprintf(out, "%s%-9s%s%s %s (%s), %s\n", st->dim, "idle", st->off,
                    nrg_attribution_domain_name(d), nrg_show_power(d->idle_w).text, d->idle_source,
                    words[a->idle]);
    }
}

/* Said once, for all rows: see nrg_scale. */
static void print_scale(const struct nrg_attribution *a, const struct nrg_text_style *st, FILE *out)
{
    size_t others = 0;
    if (isnan(a->scale.low))
        return;
    fprintf(out, "%s%-9s%s%severy energy", st->dim, "scale", st->off, st->warn);
    for (size_t i = 0; i < a->n_domains; i++)
        others += isnan(a->domains[i].scale.low) ? 1 : 0;
    for (size_t i = 0, n = 0; others && i < a->n_domains; i++)
        if (!isnan(a->domains[i].scale.low))
            fprintf(out, "%s %s", n++ ? "," : " of", nrg_attribution_domain_name(&a->domains[i]));
    fprintf(out, " here times %.2f .. %.2f%s: %s\n", a->scale.low, a->scale.high, st->off,
            nrg_attribution_scale_why);
}

static void print_attribution_head(const struct nrg_attribution_report *r,
                                   const struct nrg_text_style *st, FILE *out)
{
    const struct nrg_attribution *a = r->attribution;
    size_t n = a->n_domains < MAX_SHOWN_DOMAINS ? a->n_domains : MAX_SHOWN_DOMAINS;
    print_title(r, st, out);
    for (size_t i = 0; i < n; i++)
        print_source(&a->domains[i], st, out);
    for (size_t i = 0; i < n; i++)
        print_method(&a->domains[i], st, out);
    if (a->n_domains > n)
        fprintf(out, "%s%zu more domains: --json lists all%s\n", st->dim, a->n_domains - n,
                st->off);
    print_lag_and_idle(a, st, out);
    print_scale(a, st, out);
    fprintf(out, "%sintervals are those of %g %%", st->dim, 100 * r->confidence);
    if (!isnan(a->scale.low))
        fputs(", the total's with the scale", out);
    fprintf(out, "%s\n\n", st->off);
}

static void print_notes(const struct nrg_attribution *a, const struct nrg_text_style *st, FILE *out)
{
    if (!a->n_notes)
        return;
    fprintf(out, "\n%snotes:%s\n", st->dim, st->off);
    for (size_t i = 0; i < a->n_notes && i < MAX_SHOWN_NOTES; i++)
        fprintf(out, "  %s: %s\n", a->notes[i].what, a->notes[i].why);
    if (a->n_notes > MAX_SHOWN_NOTES)
        fprintf(out, "  and %zu more: --json lists all\n", a->n_notes - MAX_SHOWN_NOTES);
}

void nrg_attribution_text(const struct nrg_attribution_report *r,
                          const struct nrg_attribution_view *view, FILE *out)
{
    struct nrg_text_style st = nrg_text_style(view->colour);
    print_attribution_head(r, &st, out);
    if (nrg_attribution_table(r, view, out))
        fprintf(out, "(out of memory)\n");
    if (nrg_attribution_per_text(r, view, out))
        fprintf(out, "(out of memory)\n");
    if (r->waiting && r->waiting->n)
        nrg_waiting_text(r->waiting, &st, view->unicode, out);
    if (r->cycles)
        nrg_attribution_layers_text(r, view, out);
    print_notes(r->attribution, &st, out);
}
