/* See serving.h. */
#include "report/run/serving.h"

#include <math.h>

#include "base/json/set.h"
#include "report/units.h"

/* In the order of a request's life. */
static const struct {
    enum nrg_serving_term term;
    const char *key, *title, *per;
    bool power;
} terms[] = {
    {NRG_SERVING_PROMPT, "j_per_input_token", "token of a prompt",
     "tokens of prompts that no cache had; one more of them in a batch that runs anyway", false},
    {NRG_SERVING_OUTPUT, "j_per_output_token", "token of the output",
     "tokens of the output; one more of them in a batch that runs anyway", false},
    {NRG_SERVING_SEQUENCE, "sequence_w", "sequence that runs",
     "seconds of sequences that run, tokens apart", true},
    {NRG_SERVING_BUSY, "busy_w", "busy, for any number",
     "seconds in which at least one sequence runs: what all of a batch share", true},
    {NRG_SERVING_IDLE, "idle_w", "idle, with the model", "seconds of the steady state, always",
     true},
};
#define TERMS  (sizeof terms / sizeof *terms)
#define FAIR   0.05 /* half widths that people ask for */
#define GOOD   0.01
#define UNTOLD 0.5 /* half widths beyond that are those of prices that are not resolved */
static const char with_time_per[] =
    "tokens of the output; with the seconds of sequences that there are per token";

static const char all_in_output_per[] =
    "tokens of the output; with the part of all seconds, idle ones too, that tokens of it take";
static const char all_in_prompt_per[] =
    "tokens of prompts that no cache had; with the part of all seconds that reading them takes";

static struct nrg_shown show(double value, bool power)
{
    return power ? nrg_show_power(value) : nrg_show_energy(value);
}

static double share(const struct nrg_serving_domain *d, enum nrg_serving_term term)
{
    return d->fit.energy_j > 0 ? d->fit.price[term].energy_j / d->fit.energy_j : NAN;
}

/* Never both: what other terms explain wholly has no price of its own. */
static const char *remark(const struct nrg_serving_price *p)
{
    if (!p->used)
        return "not counted";
    return p->joined ? "always with the others: in these" : p->resolved ? "" : "not resolved";
}

static void print_term(const struct nrg_serving *s, size_t i, FILE *out)
{
    const struct nrg_serving_price *p = &s->total.fit.price[terms[i].term];
    double least = s->estimated ? 1 : s->total.least, most = s->estimated ? 1 : s->total.most;
    struct nrg_shown (*unit)(double) = terms[i].power ? nrg_show_power : nrg_show_energy;
    double part = share(&s->total, terms[i].term);
    char percent[16] = "-";
    if (!isnan(p->per.value) && !isnan(part))
        snprintf(percent, sizeof percent, "%.1f %%", 100 * part);
    const char *more = remark(p);
    fprintf(out, "%-20s %12s %8s  %s%s%s\n", terms[i].title,
            show(p->per.value, terms[i].power).text, percent,
            nrg_show_range(p->per.low * least, p->per.high * most, unit).text, *more ? "   " : "",
            more);
}

static bool is_resolved(struct nrg_serving_value v)
{
    return v.high - v.low <= v.value;
}

/* A token with other things: of all joules it has the part that its tokens and these have. */
static void print_with(const char *title, const struct nrg_serving *s, enum nrg_serving_term tokens,
                       struct nrg_serving_value v, FILE *out)
{
    double least = s->estimated ? 1 : s->total.least, most = s->estimated ? 1 : s->total.most;
    double part = v.value * s->total.fit.price[tokens].amount / s->total.fit.energy_j;
    char percent[16];
    if (!s->total.fit.price[tokens].used || isnan(v.value))
        return;
    snprintf(percent, sizeof percent, "%.1f %%", 100 * part);
    fprintf(out, "%-20s %12s %8s  %s%s\n", title, nrg_show_energy(v.value).text, percent,
            nrg_show_interval(v.low * least, v.high * most).text,
            is_resolved(v) ? "" : "   not resolved");
}

static void print_domains(const struct nrg_serving *s, const struct nrg_text_style *st, FILE *out)
{
    if (s->n_domains < 2)
        return;
    fprintf(out, "%s%-12s %14s %14s %14s %14s %14s%s\n", st->dim, "OF THESE", "PROMPT TOKEN",
            "OUTPUT TOKEN", "SEQUENCE", "BUSY", "IDLE", st->off);
    for (size_t d = 0; d < s->n_domains; d++) {
        fprintf(out, "%-12s", s->domains[d].name);
        for (size_t i = 0; i < TERMS; i++)
            fprintf(out, " %14s",
                    show(s->domains[d].fit.price[terms[i].term].per.value, terms[i].power).text);
        fprintf(out, "\n");
    }
}

static void print_ratio(const char *before, struct nrg_serving_value v, const char *what, FILE *out)
{
    if (!isnan(v.value))
        fprintf(out, "%s%s %s (%s)", before, nrg_show_energy(v.value).text, what,
                nrg_show_interval(v.low, v.high).text);
}

static void print_ratios(const struct nrg_serving *s, FILE *out)
{
    if (isnan(s->per_output.value))
        return;
    print_ratio("all joules of the steady state: ", s->per_output, "per output token", out);
    print_ratio(", ", s->per_request, "per finished request", out);
    fprintf(out, ", %.4g output tokens per joule (%.4g … %.4g)\n", s->output_per_j.value,
            s->output_per_j.low, s->output_per_j.high);
}

static void print_amounts(const struct nrg_serving *s, FILE *out)
{
    fprintf(out, "steady state %.1f s .. %.1f s, after %.1f s of warm-up: ", s->begin_s, s->end_s,
            s->warm_up_s);
    if (!isnan(s->prompt_tokens))
        fprintf(out, "%s tokens of prompts, ", nrg_show_amount(s->prompt_tokens).text);
    if (s->cached_tokens > 0)
        fprintf(out, "of these %s in a cache, ", nrg_show_amount(s->cached_tokens).text);
    fprintf(out, "%s of output", nrg_show_amount(s->output_tokens).text);
    if (!isnan(s->requests))
        fprintf(out, ", %s requests", nrg_show_amount(s->requests).text);
    if (!isnan(s->running))
        fprintf(out, ", %.3g sequences at a time", s->running);
    fprintf(out, "\n");
}

/* Of the interval, the sensors' own band apart, which no run makes narrower; 0: not known. */
static double half_part(struct nrg_serving_value v)
{
    return v.value > 0 && v.high > v.low ? (v.high - v.low) / 2 / v.value : 0;
}

/* Length of a run of the same load, warm-up included; NAN: none does, because the price is not told
 * from others, or because the sensor itself is not as good. */
static double time_for(const struct nrg_serving *s, const struct nrg_serving_domain *d,
                       struct nrg_serving_value v, double then)
{
    double now = half_part(v), band = s->estimated ? 0 : (d->most - d->least) / 2;
    bool never = now > UNTOLD || then <= band;
    return never ? NAN : nrg_serving_time_for(&d->fit, now, then - band) + s->warm_up_s;
}

/* Both ends, where one is much nearer: a price is never less than nothing. */
static void print_known(const char *what, struct nrg_serving_value v, int digits, FILE *out)
{
    double below = 100 * (1 - v.low / v.value), above = 100 * (v.high / v.value - 1);
    if (fmin(below, above) < fmax(below, above) / 2 || fmax(below, above) > 100)
        fprintf(out, "%s is known to -%.*f .. +%.*f %%", what, digits, below, digits, above);
    else
        fprintf(out, "%s is known to ±%.*f %%", what, digits, 100 * half_part(v));
}

/* How well a figure is known, and how long the run would have to be for the next step. */
static void print_outlook(const char *what, const struct nrg_serving *s, struct nrg_serving_value v,
                          FILE *out)
{
    double now = half_part(v), then = now > FAIR ? FAIR : GOOD;
    double for_s = time_for(s, &s->total, v, then);
    if (!(now > 0))
        return;
    print_known(what, v, now < UNTOLD / 5 ? 1 : 0, out);
    if (now > UNTOLD)
        fprintf(out, ": this load hardly tells it from time; one that varies does (pauses, other "
                     "numbers of clients)");
    else if (!isnan(for_s))
        fprintf(out, ", to ±%g %% after about %s of this load", 100 * then,
                nrg_show_seconds(round(for_s)).text);
    fprintf(out, "\n");
}

static void print_hints(const struct nrg_serving *s, const struct nrg_text_style *st, FILE *out)
{
    if (s->lump_s > 0)
        fprintf(out,
                "%sthe server counts tokens when requests end: slots of %.1f s, and a longer run "
                "tells more%s\n",
                st->dim, s->slot_s, st->off);
    if (s->estimated)
        fprintf(out, "%severy figure times %.2f .. %.2f: the estimate's scale%s\n", st->dim,
                s->total.least, s->total.most, st->off);
    fprintf(out,
            "%sprices are of the loads that this run had, at other batch sizes they differ%s\n",
            st->dim, st->off);
}

void nrg_serving_text(const struct nrg_serving *s, const struct nrg_text_style *st, FILE *out)
{
    if (!s->asked)
        return;
    fprintf(out, "\n%stokens%s of %s at %s\n", st->bold, st->off,
            s->server[0] ? s->server : "the server", s->url);
    if (s->why) {
        fprintf(out, "  %s\n", s->why);
        return;
    }
    const struct nrg_serving_fit *fit = &s->total.fit;
    print_amounts(s, out);
    print_ratios(s, out);
    if (fit->why) {
        fprintf(out, "no prices of tokens: %s\n", fit->why);
        return;
    }
    fprintf(out, "%s%-20s %12s %8s  %s%s\n", st->dim, "PER", "ENERGY", "SHARE", "95 % INTERVAL",
            st->off);
    for (size_t i = 0; i < TERMS; i++) {
        print_term(s, i, out);
        if (terms[i].term == NRG_SERVING_OUTPUT)
            print_with("  and its seconds", s, NRG_SERVING_OUTPUT, fit->output_with_time, out);
    }
    fprintf(out, "%sor all joules as prices of tokens, with the time that they take%s\n", st->dim,
            st->off);
    print_with("token of a prompt", s, NRG_SERVING_PROMPT, fit->prompt_all_in, out);
    print_with("token of the output", s, NRG_SERVING_OUTPUT, fit->output_all_in, out);
    print_domains(s, st, out);
    print_outlook("a token of the output", s, fit->price[NRG_SERVING_OUTPUT].per, out);
    print_outlook("with all its time it", s, fit->output_all_in, out);
    print_hints(s, st, out);
}

static json_t *value_json(struct nrg_serving_value v, const struct nrg_serving *s,
                          const struct nrg_serving_domain *d)
{
    json_t *o = json_object();
    double least = s->estimated ? 1 : d->least, most = s->estimated ? 1 : d->most;
    NRG_JSON_REALS(o, {"value", v.value}, {"low", v.low * least}, {"high", v.high * most},
                   {"s_for_5_percent", time_for(s, d, v, FAIR)},
                   {"s_for_1_percent", time_for(s, d, v, GOOD)});
    if (s->estimated)
        NRG_JSON_REALS(o, {"low_with_scale", v.low * s->total.least},
                       {"high_with_scale", v.high * s->total.most});
    return o;
}

/* A token with other things. */
static void add_with(json_t *o, const char *key, const struct nrg_serving *s,
                     const struct nrg_serving_domain *d, struct nrg_serving_value v,
                     const char *per)
{
    if (d->fit.why || isnan(v.value))
        return;
    json_t *price = value_json(v, s, d);
    json_object_set_new(price, "resolved", json_boolean(is_resolved(v)));
    nrg_json_text(price, "per", per);
    json_object_set_new(o, key, price);
}

static void add_prices(json_t *o, const struct nrg_serving *s, const struct nrg_serving_domain *d)
{
    for (size_t i = 0; i < TERMS; i++) {
        const struct nrg_serving_price *p = &d->fit.price[terms[i].term];
        if (d->fit.why || !p->used)
            continue;
        json_t *price = value_json(p->per, s, d);
        NRG_JSON_REALS(price, {"amount", p->amount}, {"energy_j", p->energy_j});
        json_object_set_new(price, "resolved", json_boolean(p->resolved && !p->joined));
        if (p->joined)
            json_object_set_new(price, "joined", json_true());
        nrg_json_text(price, "per", terms[i].per);
        json_object_set_new(o, terms[i].key, price);
    }
    if (d->fit.price[NRG_SERVING_OUTPUT].used)
        add_with(o, "j_per_output_token_with_time", s, d, d->fit.output_with_time, with_time_per);
    add_with(o, "all_in_j_per_output_token", s, d, d->fit.output_all_in, all_in_output_per);
    add_with(o, "all_in_j_per_input_token", s, d, d->fit.prompt_all_in, all_in_prompt_per);
    NRG_JSON_REALS(o, {"energy_j", d->energy_j}, {"energy_low_j", d->low_j},
                   {"energy_high_j", d->high_j}, {"late_s", d->late_s});
}

static void add_ratio(json_t *o, const char *key, struct nrg_serving_value v, double amount,
                      const char *per)
{
    if (isnan(v.value))
        return;
    json_t *ratio = json_object();
    NRG_JSON_REALS(ratio, {"value", v.value}, {"low", v.low}, {"high", v.high}, {"amount", amount});
    nrg_json_text(ratio, "per", per);
    json_object_set_new(o, key, ratio);
}

static void add_idle_share(json_t *o, const struct nrg_serving_fit *fit)
{
    const struct nrg_serving_price *p = &fit->price[NRG_SERVING_IDLE];
    if (fit->why || !(fit->energy_j > 0) || isnan(p->per.value))
        return;
    double all = p->amount / fit->energy_j;
    json_t *idle = json_object();
    NRG_JSON_REALS(idle, {"value", p->per.value * all}, {"low", p->per.low * all},
                   {"high", fmin(p->per.high * all, 1)});
    nrg_json_text(idle, "per", "all joules of the steady state");
    json_object_set_new(o, "idle_share", idle);
}

static void add_fitted(json_t *o, const struct nrg_serving *s)
{
    json_t *domains = json_array();
    add_ratio(o, "all_j_per_output_token", s->per_output, s->output_tokens,
              "tokens of the output; all joules of the steady state");
    add_ratio(o, "j_per_request", s->per_request, s->requests,
              "finished requests; all joules of the steady state");
    add_ratio(o, "tokens_per_joule", s->output_per_j, s->output_tokens,
              "tokens of the output, over all joules of the steady state");
    add_prices(o, s, &s->total);
    add_idle_share(o, &s->total.fit);
    nrg_json_text(o, "unfitted", s->total.fit.why);
    for (size_t i = 0; i < s->n_domains; i++) {
        json_t *d = json_object();
        nrg_json_text(d, "name", s->domains[i].name);
        add_prices(d, s, &s->domains[i]);
        json_array_append_new(domains, d);
    }
    json_object_set_new(o, "domains", domains);
}

json_t *nrg_serving_json(const struct nrg_serving *s)
{
    if (!s->asked)
        return NULL;
    json_t *o = json_object();
    nrg_json_text(o, "server", s->server);
    nrg_json_text(o, "url", s->url);
    nrg_json_text(o, "why", s->why);
    if (s->why)
        return o;
    NRG_JSON_REALS(o, {"begin_s", s->begin_s}, {"end_s", s->end_s}, {"warm_up_s", s->warm_up_s},
                   {"prompt_tokens", s->prompt_tokens}, {"cached_tokens", s->cached_tokens},
                   {"output_tokens", s->output_tokens}, {"requests", s->requests},
                   {"running", s->running}, {"slot_s", s->slot_s}, {"row_s", s->row_s},
                   {"lump_s", s->lump_s});
    json_object_set_new(o, "rows", json_integer((json_int_t)s->total.fit.rows));
    add_fitted(o, s);
    return o;
}
