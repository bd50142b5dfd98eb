/*
 * The layers of a layer log for people: means over all cycles, as the earlier Jetson tool's
 * statistics have them, and below what such numbers leave out: the time between the layers, and
 * the sensor's lag.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/attribution/internal.h"
#include "report/units.h"

#define MAX_NAME 40

/* One layer over all cycles. */
struct layer {
    const char *name, *type;
    size_t runs, with_power;
    double power_w, above_idle_w, run_time_s, energy_j; /* sums */
};

struct layers {
    struct layer *items;
    size_t n, cap;
};

/* Executions come in the order of the log: the next layer is mostly the one after the last. */
static struct layer *layer_of(struct layers *all, size_t *hint, const char *name, const char *type)
{
    for (size_t k = 0; k < all->n; k++) {
        size_t at = (*hint + 1 + k) % all->n;
        if (!strcmp(all->items[at].name, name))
            return &all->items[*hint = at];
    }
    if (nrg_reserve(&all->items, &all->cap, all->n + 1, sizeof *all->items))
        return NULL;
    *hint = all->n;
    all->items[all->n] = (struct layer){.name = name, .type = type};
    return &all->items[all->n++];
}

static int collect(struct layers *all, const struct nrg_attribution_report *r)
{
    const struct nrg_attribution *a = r->attribution;
    size_t hint = 0;
    for (size_t i = 0; i < r->cycles->n; i++) {
        const struct nrg_execution *e = &r->cycles->executions[i];
        if (e->row >= a->n_rows || e->left_out)
            continue;
        struct layer *l = layer_of(all, &hint, a->rows[e->row].name, a->rows[e->row].detail);
        if (!l)
            return -ENOMEM;
        l->runs++;
        l->run_time_s += e->run_time_s;
        l->energy_j += isnan(e->lag_corrected_j) ? 0 : e->lag_corrected_j;
        if (isnan(e->power_w))
            continue;
        l->with_power++;
        l->power_w += e->power_w;
        l->above_idle_w += e->power_above_idle_w;
    }
    return 0;
}

static int longest_first(const void *left, const void *right)
{
    const struct layer *a = left, *b = right;
    if (a->run_time_s > b->run_time_s || b->run_time_s > a->run_time_s)
        return a->run_time_s > b->run_time_s ? -1 : 1;
    return strcmp(a->name, b->name);
}

static double mean(double sum, size_t n)
{
    return n ? sum / (double)n : NAN;
}

static int print_layer(const struct layer *l, const struct nrg_attribution_view *view, FILE *out)
{
    char power[32], above[32], time_s[32], energy[32], clean[512];
    struct nrg_str name = {0};
    nrg_copy_clean(clean, sizeof clean, l->name, strlen(l->name));
    int rc = nrg_str_addf(&name, "%s%s%s%s", clean[0] ? clean : "(no name)", l->type[0] ? " (" : "",
                          l->type, l->type[0] ? ")" : "");
    if (!rc)
        rc = nrg_fit_text(&name, MAX_NAME, true, view->unicode);
    if (!rc)
        fprintf(out, "%s%*s %7zu %10zu %11s %11s %11s %11s\n", name.text,
                (int)(MAX_NAME - nrg_text_width(name.text)), "", l->runs, l->with_power,
                nrg_show_power(power, sizeof power, mean(l->power_w, l->with_power)),
                nrg_show_power(above, sizeof above, mean(l->above_idle_w, l->with_power)),
                nrg_show_seconds(time_s, sizeof time_s, mean(l->run_time_s, l->runs)),
                nrg_show_energy(energy, sizeof energy, l->energy_j));
    nrg_str_release(&name);
    return rc;
}

static int print_layers(const struct nrg_attribution_report *r,
                        const struct nrg_attribution_view *view, FILE *out)
{
    struct nrg_text_style st = nrg_text_style(view->colour);
    struct layers all = {0};
    int rc = collect(&all, r);
    size_t shown = view->top && view->top < all.n ? view->top : all.n;
    if (all.n)
        qsort(all.items, all.n, sizeof *all.items, longest_first);
    fprintf(out, "\n%s%-*s %7s %10s %11s %11s %11s %11s%s\n", st.dim, MAX_NAME, "LAYER", "RUNS",
            "WITH POWER", "POWER", "ABOVE IDLE", "RUN TIME", "ENERGY", st.off);
    for (size_t i = 0; !rc && i < shown; i++)
        rc = print_layer(&all.items[i], view, out);
    if (all.n > shown)
        fprintf(out, "%s %zu more layers, shorter ones\n", view->unicode ? "…" : "...",
                all.n - shown);
    free(all.items);
    return rc;
}

static void print_sums(const struct nrg_cycles *c, FILE *out)
{
    char a[32], b[32], d[32], lag[80];
    fprintf(out, "\nlayers take %s of the %s between the first start and the last end (%.2f %%)\n",
            nrg_show_seconds(a, sizeof a, c->layers_s), nrg_show_seconds(b, sizeof b, c->between_s),
            100 * c->layers_s / c->between_s);
    fprintf(out, "%-36s %12s %12s %12s\n", "", "LAYERS", "ALL OF IT", "NOT LAYERS");
    fprintf(out, "%-36s %12s %12s %12s\n", "as the meter showed it",
            nrg_show_energy(a, sizeof a, c->layers_j), nrg_show_energy(b, sizeof b, c->between_j),
            nrg_show_energy(d, sizeof d, c->between_j - c->layers_j));
    if (!(c->lag_s > 0))
        return;
    snprintf(lag, sizeof lag, "lag of %.3g s corrected (%s)", c->lag_s, c->lag_source);
    fprintf(out, "%-36s %12s %12s %12s\n", lag, nrg_show_energy(a, sizeof a, c->layers_corrected_j),
            nrg_show_energy(b, sizeof b, c->between_corrected_j),
            nrg_show_energy(d, sizeof d, c->between_corrected_j - c->layers_corrected_j));
}

void nrg_attribution_layers_text(const struct nrg_attribution_report *r,
                                 const struct nrg_attribution_view *view, FILE *out)
{
    if (print_layers(r, view, out))
        fprintf(out, "(out of memory)\n");
    print_sums(r->cycles, out);
}
