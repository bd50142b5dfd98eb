/*
 * The layers of a layer log for people: means over all cycles, as the earlier Jetson tool's
 * statistics have them, and below what such numbers leave out: the time between the layers, and
 * the sensor's lag.
 */
#include <string.h>

#include "attribute/layer_means.h"
#include "report/attribution/internal.h"
#include "report/units.h"

#define MAX_NAME 40

static int print_layer(const struct nrg_layer_mean *l, const struct nrg_attribution_view *view,
                       FILE *out)
{
    char clean[512];
    struct nrg_str name = {0};
    nrg_copy_clean(clean, sizeof clean, l->name, strlen(l->name));
    int rc = nrg_str_addf(&name, "%s%s%s%s", clean[0] ? clean : "(no name)", l->type[0] ? " (" : "",
                          l->type, l->type[0] ? ")" : "");
    if (!rc)
        rc = nrg_fit_text(&name, MAX_NAME, true, view->unicode);
    if (!rc) {
        nrg_text_pad(out, name.text, MAX_NAME);
        fprintf(out, " %7zu %10zu %11s %11s %11s %11s\n", l->runs, l->with_power,
                nrg_show_power(l->power_w).text, nrg_show_power(l->above_idle_w).text,
                nrg_show_seconds(l->run_time_s).text, nrg_show_energy(l->energy_j).text);
    }
    nrg_str_release(&name);
    return rc;
}

static int print_layers(const struct nrg_attribution_report *r,
                        const struct nrg_attribution_view *view, FILE *out)
{
    struct nrg_text_style st = nrg_text_style(view->colour);
    struct nrg_layer_means all;
    int rc = nrg_layer_means_make(&all, r->cycles, r->attribution);
    size_t shown = view->top && view->top < all.n ? view->top : all.n;
    fprintf(out, "\n%s%-*s %7s %10s %11s %11s %11s %11s%s\n", st.dim, MAX_NAME, "LAYER", "RUNS",
            "WITH POWER", "POWER", "ABOVE IDLE", "RUN TIME", "ENERGY", st.off);
    for (size_t i = 0; !rc && i < shown; i++)
        rc = print_layer(&all.items[i], view, out);
    if (all.n > shown)
        fprintf(out, "%s %zu more layers, shorter ones\n", view->unicode ? "…" : "...",
                all.n - shown);
    nrg_layer_means_release(&all);
    return rc;
}

static void print_sum(FILE *out, const char *what, double layers_j, double all_j)
{
    fprintf(out, "%-36s %12s %12s %12s\n", what, nrg_show_energy(layers_j).text,
            nrg_show_energy(all_j).text, nrg_show_energy(all_j - layers_j).text);
}

static void print_sums(const struct nrg_cycles *c, FILE *out)
{
    char lag[80];
    fprintf(out, "\nlayers take %s of the %s between the first start and the last end (%.2f %%)\n",
            nrg_show_seconds(c->layers_s).text, nrg_show_seconds(c->between_s).text,
            100 * c->layers_s / c->between_s);
    fprintf(out, "%-36s %12s %12s %12s\n", "", "LAYERS", "ALL OF IT", "NOT LAYERS");
    print_sum(out, "as the meter showed it", c->layers_j, c->between_j);
    if (!(c->lag_s > 0))
        return;
    snprintf(lag, sizeof lag, "lag of %.3g s corrected (%s)", c->lag_s, c->lag_source);
    print_sum(out, lag, c->layers_corrected_j, c->between_corrected_j);
}

void nrg_attribution_layers_text(const struct nrg_attribution_report *r,
                                 const struct nrg_attribution_view *view, FILE *out)
{
    if (print_layers(r, view, out))
        fprintf(out, "(out of memory)\n");
    print_sums(r->cycles, out);
}
