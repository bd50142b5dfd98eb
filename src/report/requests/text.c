/* The table of requests. See report.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/requests/report.h"
#include "report/style.h"
#include "report/units.h"
#include "sensors/channel.h"

#define MOST_MODELS 5 /* with percentiles; the JSON has all */

static const char *name_of(const char *model)
{
    return *model ? model : "(not said)";
}

static void print_sum(const struct nrg_llm_share *s, FILE *out)
{
    fprintf(out, "%zu request%s in %s\n", s->requests.n, s->requests.n == 1 ? "" : "s",
            nrg_show_seconds(s->summary.duration_s).text);
    fprintf(out, "requests %s", nrg_show_energy(s->requests_j).text);
    if (!isnan(s->idle_j))
        fprintf(out, " + idle %s (%s)", nrg_show_energy(s->idle_j).text, s->idle_method);
    fprintf(out, " + unattributed %s", nrg_show_energy(fmax(0, s->unattributed_j)).text);
    fprintf(out, " = %s   %s\n", nrg_show_energy(s->total_j).text,
            nrg_provenance_name(s->summary.total_provenance));
    if (isnan(s->idle_j))
        fputs("idle power is not known: it is in the figures of requests (--baseline 10s)\n", out);
}

static void print_models(const struct nrg_llm_share *s, FILE *out)
{
    size_t n;
    struct nrg_request_use *uses = nrg_request_uses(s, false, &n);
    fprintf(out, "\n%-28s %8s %7s %10s %10s %10s %10s %11s %9s  %s\n", "MODEL", "REQUESTS",
            "FAILED", "INPUT", "CACHED", "OUTPUT", "ENERGY", "PER REQUEST", "PER TOKEN",
            "ALL LOW ... ALL HIGH");
    for (size_t i = 0; i < n; i++) {
        const struct nrg_request_use *u = &uses[i];
        nrg_text_pad(out, name_of(u->name), 28);
        double tokens = u->output > 0 ? u->output : NAN;
        fprintf(out, " %8zu %7zu %10.0f %10.0f %10.0f %10s %11s %9s  %s\n", u->requests, u->failed,
                u->input, u->cached, u->output, nrg_show_energy(u->energy_j).text,
                nrg_show_energy(u->energy_j / (double)u->requests).text,
                nrg_show_energy(u->made_j / tokens).text,
                nrg_show_interval(u->made_low_j / tokens, u->made_high_j / tokens).text);
    }
    if (n)
        fputs("per token: all joules of requests whose output is known over their output's tokens, "
              "with its interval\n",
              out);
    for (size_t i = 0; i < n; i++)
        if (uses[i].failed)
            fprintf(out, "failed of %s: %s and %.0f tokens of output, both in its sums\n",
                    name_of(uses[i].name), nrg_show_energy(uses[i].failed_j).text,
                    uses[i].failed_output);
    free(uses);
}

/* What is known by its time alone. */
static void print_not_understood(const struct nrg_llm_share *s, FILE *out)
{
    size_t n;
    struct nrg_request_use *uses = nrg_request_uses(s, true, &n);
    if (n)
        fprintf(out, "\n%-40s %8s %7s %10s %10s  %s\n", "NOT UNDERSTOOD, BY TIME", "REQUESTS",
                "FAILED", "TIME", "ENERGY", "ALL LOW ... ALL HIGH");
    for (size_t i = 0; i < n; i++) {
        const struct nrg_request_use *u = &uses[i];
        nrg_text_pad(out, u->name, 40);
        fprintf(out, " %8zu %7zu %10s %10s  %s\n", u->requests, u->failed,
                nrg_show_seconds(u->seconds).text, nrg_show_energy(u->energy_j).text,
                nrg_show_interval(u->low_j, u->high_j).text);
    }
    if (n)
        fputs("they said nothing about tokens: their joules are those that others' tokens don't "
              "explain, and others' intervals are wider for it\n",
              out);
    if (s->requests.left_out)
        fprintf(out, "%zu quick request%s that only asked (GET, HEAD, OPTIONS): left out\n",
                s->requests.left_out, s->requests.left_out == 1 ? "" : "s");
    free(uses);
}

static void print_figure(const struct nrg_llm_share *s, const char *model, const char *what,
                         enum nrg_request_figure figure, FILE *out)
{
    struct nrg_request_percentiles p = nrg_request_percentiles(s, model, figure);
    if (isnan(p.part[0]))
        return;
    fprintf(out, "%-28s", what);
    for (size_t i = 0; i < NRG_REQUEST_PARTS; i++)
        fprintf(
            out, " %10s",
            (figure == NRG_REQUEST_ENERGY ? nrg_show_energy : nrg_show_seconds)(p.part[i]).text);
    fputc('\n', out);
}

static void print_percentiles(const struct nrg_llm_share *s, FILE *out)
{
    size_t n;
    struct nrg_request_use *uses = nrg_request_uses(s, false, &n);
    for (size_t i = 0; i < n && i < MOST_MODELS; i++) {
        const char *model = uses[i].name;
        if (uses[i].requests == uses[i].failed)
            continue;
        fputc('\n', out);
        nrg_text_pad(out, name_of(model), 28);
        fprintf(out, " %10s %10s %10s   of answered requests\n", "HALF", "90 %", "99 %");
        print_figure(s, model, "joules of a request", NRG_REQUEST_ENERGY, out);
        print_figure(s, model, "stream: until first text", NRG_REQUEST_FIRST_S, out);
        print_figure(s, model, "stream: per output token", NRG_REQUEST_TOKEN_S, out);
        print_figure(s, model, "stream: between two texts", NRG_REQUEST_GAP_S, out);
        print_figure(s, model, "until its end", NRG_REQUEST_ALL_S, out);
    }
    free(uses);
}

static void print_price(const char *what, const struct nrg_serving_price *p,
                        struct nrg_shown (*show)(double), FILE *out)
{
    if (!p->used || p->joined || !isfinite(p->per.value))
        return;
    fprintf(out, "  %-26s %10s   %s%s\n", what, show(p->per.value).text,
            nrg_show_range(p->per.low, p->per.high, show).text,
            p->resolved ? "" : "   not resolved");
}

static void print_law(const struct nrg_llm_share *s, FILE *out)
{
    const struct nrg_serving_fit *fit = &s->fit;
    if (fit->why) {
        fprintf(out, "\nrequests that run at the same time share equally: %s\n", fit->why);
        return;
    }
    fputs("\nwhat one more of each costs in this load, 95 %:\n", out);
    print_price("token of a prompt", &fit->price[NRG_SERVING_PROMPT], nrg_show_energy, out);
    print_price("token of an output", &fit->price[NRG_SERVING_OUTPUT], nrg_show_energy, out);
    print_price("request that runs", &fit->price[NRG_SERVING_SEQUENCE], nrg_show_power, out);
    print_price("any request that runs", &fit->price[NRG_SERVING_BUSY], nrg_show_power, out);
    print_price("one that is not understood", &fit->price[NRG_SERVING_OTHER], nrg_show_power, out);
    print_price("idle machine", &fit->price[NRG_SERVING_IDLE], nrg_show_power, out);
}

struct ranked {
    size_t index;
    double energy_j;
};

static int by_energy(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->energy_j != y->energy_j)
        return x->energy_j < y->energy_j ? 1 : -1;
    return x->index < y->index ? -1 : 1;
}

/* "429", "200 broken", "cancelled". */
static struct nrg_shown show_status(const struct nrg_relayed_request *q)
{
    struct nrg_shown shown = {""};
    bool told = !strcmp(q->outcome, "answered") || q->status >= 400; /* by the status alone */
    const char *outcome = q->open ? "running" : told ? "" : q->outcome;
    if (q->status)
        snprintf(shown.text, sizeof shown.text, "%d%s%s", q->status, *outcome ? " " : "", outcome);
    else
        snprintf(shown.text, sizeof shown.text, "%s", told ? q->outcome : outcome);
    return shown;
}

static void print_request(const struct nrg_llm_share *s, size_t i, FILE *out)
{
    const struct nrg_relayed_request *q = &s->requests.items[i];
    const struct nrg_llm_energy *e = &s->energies[i];
    char input[24] = "-", output[24] = "-";
    if (q->input != NRG_MISSING)
        snprintf(input, sizeof input, "%lld", (long long)q->input);
    if (!isnan(q->output_tokens))
        snprintf(output, sizeof output, "%s%.0f", q->output_estimated ? "~" : "", q->output_tokens);
    fprintf(out, "%7lld ", (long long)q->id);
    nrg_text_pad(out, *q->path ? q->path : name_of(q->model), 28);
    fprintf(out, " %8s %8s %10s %10s %10s  %-24s %s\n", input, output,
            nrg_show_seconds(nrg_request_first_s(q)).text,
            nrg_show_seconds((double)(q->end_ns - q->begin_ns) * 1e-9).text,
            nrg_show_energy(e->energy_j).text, nrg_show_interval(e->low_j, e->high_j).text,
            show_status(q).text);
}

static void print_requests(const struct nrg_llm_share *s, size_t most, FILE *out)
{
    size_t n = s->requests.n;
    struct ranked *order = nrg_calloc(n + 1, sizeof *order);
    if (!order)
        return;
    for (size_t i = 0; i < n; i++)
        order[i] = (struct ranked){i, s->energies[i].energy_j};
    qsort(order, n, sizeof *order, by_energy);
    fprintf(out, "\n%7s %-28s %8s %8s %10s %10s %10s  %-24s %s\n", "REQUEST", "MODEL", "INPUT",
            "OUTPUT", "FIRST", "END", "ENERGY", "95 %", "STATUS");
    for (size_t i = 0; i < n && i < most; i++)
        print_request(s, order[i].index, out);
    if (n > most)
        fprintf(out, "        %zu more: --requests %zu, or --json\n", n - most, n);
    free(order);
}

void nrg_requests_print(const struct nrg_llm_share *s, size_t most, FILE *out)
{
    print_sum(s, out);
    print_models(s, out);
    print_not_understood(s, out);
    print_percentiles(s, out);
    print_law(s, out);
    print_requests(s, most, out);
    if (s->estimated)
        fprintf(out, "~ %zu request%s without usage: pieces of text were counted, an estimate\n",
                s->estimated, s->estimated == 1 ? "" : "s");
}
