/* See report/attribution/waiting.h. */
#include "report/attribution/waiting.h"

#include <math.h>

#include "base/json/set.h"
#include "report/units.h"

struct table {
    FILE *out;
    const char *plus_minus;
};

static void print_use(const struct table *t, const char *name, int indent,
                      const struct nrg_wait_use *use, double all_s)
{
    fprintf(t->out, "%*s%-*s %10s %6.1f %% %10s ", indent, "", 24 - indent, name,
            nrg_show_seconds(use->seconds).text, all_s > 0 ? 100 * use->seconds / all_s : 0,
            nrg_show_energy(use->energy_j).text);
    nrg_text_right(t->out,
                   nrg_show_band(use->energy_j, use->low_j, use->high_j, t->plus_minus).text, 22);
    fprintf(t->out, " %10s\n", nrg_show_power(use->energy_j / use->seconds).text);
}

static void print_device(const struct table *t, const struct nrg_waiting_device *d)
{
    char name[104];
    snprintf(name, sizeof name, d->rank[0] ? "%s (%s)" : "%s", d->name, d->rank);
    print_use(t, name, 0, &d->all, d->all.seconds);
    for (int kind = 0; kind < NRG_WAIT_KINDS; kind++)
        if (d->kinds[kind].seconds > 0)
            print_use(t, nrg_wait_kind_name((enum nrg_wait_kind)kind), 2, &d->kinds[kind],
                      d->all.seconds);
}

static void print_powers(const struct nrg_waiting_device *d, FILE *out)
{
    const struct {
        const char *word;
        const struct nrg_wait_power *power;
    } powers[] = {{"idle", &d->idle}, {"static", &d->static_}, {"active", &d->active}};
    if (isnan(d->static_.power_w) && isnan(d->active.power_w))
        return;
    fprintf(out, "%s:", d->name);
    for (size_t i = 0; i < 3; i++) {
        const struct nrg_wait_power *p = powers[i].power;
        if (isnan(p->power_w))
            fprintf(out, "%s %s not known", i ? "," : "", powers[i].word);
        else
            fprintf(out, "%s %s %s (%.3g .. %.3g)", i ? "," : "", powers[i].word,
                    nrg_show_power(p->power_w).text, p->low_w, p->high_w);
    }
    fputc('\n', out);
}

void nrg_waiting_text(const struct nrg_waiting *w, const struct nrg_text_style *st, bool unicode,
                      FILE *out)
{
    const struct table t = {out, unicode ? "±" : "+-"};
    fprintf(out, "\n%s%-24s %10s %8s %10s ", st->dim, "WAITING OF GPUS", "TIME", "OF IT", "ENERGY");
    nrg_text_right(out, t.plus_minus, 22);
    fprintf(out, " %10s%s\n", "POWER", st->off);
    for (size_t d = 0; d < w->n; d++)
        print_device(&t, &w->devices[d]);
    if (!isnan(w->share))
        fprintf(out,
                "%.1f %% (%.1f .. %.1f %%) of the joules went to waiting, between first and last "
                "work of the GPU%s\n",
                100 * w->share, 100 * w->low, 100 * w->high, w->n > 1 ? "s" : "");
    else
        fprintf(out,
                "%.1f %% of the time went to waiting, between first and last work of the GPU%s; "
                "its energy is not known\n",
                100 * w->time_share, w->n > 1 ? "s" : "");
    for (size_t d = 0; d < w->n; d++) {
        print_powers(&w->devices[d], out);
        if (!w->devices[d].kernels)
            fprintf(out,
                    "%s: kernels were not traced (nrg run --gpu-trace), so only waiting for data "
                    "is seen\n",
                    w->devices[d].name);
    }
}

/* ---- JSON ---- */

static void add_use(json_t *o, const struct nrg_wait_use *use)
{
    NRG_JSON_REALS(o, {"seconds", use->seconds}, {"energy_j", use->energy_j}, {"low_j", use->low_j},
                   {"high_j", use->high_j});
}

static void add_power(json_t *o, const char *key, const struct nrg_wait_power *power)
{
    if (isnan(power->power_w))
        return;
    json_t *p = json_object();
    NRG_JSON_REALS(p, {"value", power->power_w}, {"low", power->low_w}, {"high", power->high_w});
    json_object_set_new(o, key, p);
}

static json_t *named(const struct nrg_waiting_device *d, const char *kind)
{
    json_t *o = json_object();
    if (kind)
        nrg_json_text(o, "kind", kind);
    nrg_json_text(o, "device", d->name);
    if (d->rank[0])
        nrg_json_text(o, "rank", d->rank);
    return o;
}

static json_t *device_json(const struct nrg_waiting_device *d)
{
    json_t *o = named(d, NULL), *work = json_object(), *waiting = json_object();
    add_use(o, &d->all);
    add_use(work, &d->kinds[NRG_WAIT_NOT]);
    add_use(waiting, &d->waiting);
    json_object_set_new(o, "work", work);
    json_object_set_new(o, "waiting", waiting);
    json_object_set_new(o, "kernels", json_boolean(d->kernels));
    nrg_json_text(o, "method", nrg_method_name(d->method));
    add_power(o, "idle_w", &d->idle);
    add_power(o, "static_w", &d->static_);
    add_power(o, "active_w", &d->active);
    return o;
}

json_t *nrg_waiting_json(const struct nrg_waiting *w)
{
    json_t *o = json_object(), *parts = json_array(), *devices = json_array();
    NRG_JSON_REALS(o, {"share", w->share}, {"low", w->low}, {"high", w->high},
                   {"time_share", w->time_share}, {"seconds", w->waiting.seconds},
                   {"energy_j", w->waiting.energy_j}, {"of_seconds", w->all.seconds},
                   {"of_j", w->all.energy_j});
    for (size_t d = 0; d < w->n; d++) {
        for (int kind = NRG_WAIT_NOT + 1; kind < NRG_WAIT_KINDS; kind++) {
            if (!(w->devices[d].kinds[kind].seconds > 0))
                continue;
            json_t *part = named(&w->devices[d], nrg_wait_kind_name((enum nrg_wait_kind)kind));
            add_use(part, &w->devices[d].kinds[kind]);
            json_array_append_new(parts, part);
        }
        json_array_append_new(devices, device_json(&w->devices[d]));
    }
    json_object_set_new(o, "parts", parts);
    json_object_set_new(o, "devices", devices);
    return o;
}
