/*
 * See calibration.h. Joules per unit are above idle: idle power is a line of its own. For both
 * together, add idle power times time.
 */
#include "report/calibration.h"

#include <math.h>
#include <string.h>

#include "base/json/set.h"
#include "calibrate/prices.h"
#include "report/units.h"

#define BUSY 0.1 /* of the processors while idle is measured: worth a word */

/* ---- text ---- */

static void print_number(FILE *out, double value, int width)
{
    if (isnan(value))
        fprintf(out, " %*s", width, "-");
    else
        fprintf(out, " %*.*f", width, value >= 100 ? 0 : value >= 10 ? 1 : 2, value);
}

static void print_point(const struct nrg_point_result *r, FILE *out)
{
    const struct nrg_point *p = r->point;
    fprintf(out, "%-6s %-26s %10s %10s %6.1f %%", nrg_point_families[p->family], p->name,
            nrg_show_seconds(r->time_s).text, nrg_show_energy(r->energy_j).text,
            100 * r->uncertainty_j / r->energy_j);
    print_number(out, r->energy_j / r->time_s, 8);
    print_number(out, p->macs > 0 ? 2 * p->macs / r->time_s / 1e9 : NAN, 8);
    print_number(out, nrg_point_bytes(p) / r->time_s / 1e9, 8);
    print_number(out, p->macs > 0 ? r->above_j / p->macs * 1e12 : NAN, 8);
    print_number(out, p->family == NRG_POINT_STREAM ? r->above_j / nrg_point_bytes(p) * 1e12 : NAN,
                 8);
    fprintf(out, "%s\n", r->reached_error ? "" : "  ~");
}

static void print_notes(const struct nrg_calibration_report *r, FILE *out)
{
    const struct nrg_calibration *c = r->calibration;
    size_t idle = 0, loose = 0;
    for (size_t i = 0; i < c->n; i++) {
        idle += isnan(c->results[i].above_j) ? 1 : 0;
        loose += !c->results[i].reached_error;
    }
    if (loose)
        fprintf(out, "~ %zu points: the time limit came before the error asked for\n", loose);
    if (idle)
        fprintf(out,
                "%zu points used no more than the idle machine, as far as their spread tells: no "
                "price\n",
                idle);
    if (c->idle_utilisation > BUSY)
        fprintf(out, "the machine was not idle: others used %.0f %% of its processors, %s\n",
                100 * c->idle_utilisation,
                c->others_out ? "which is taken out by CPU time; times are longer than on an idle "
                                "machine"
                              : "so idle power is too high and prices above it are too low");
    if (r->points->caches_assumed)
        fprintf(out, "the kernel does not tell the caches' sizes: usual ones were taken\n");
    if (r->points->memory_short)
        fprintf(out, "not enough memory for a set well beyond the last cache: none was streamed\n");
    if (c->interrupted)
        fprintf(out, "interrupted: %zu of %zu points\n", c->n, c->n_points);
}

static void print_prices(const struct nrg_calibration_report *r, FILE *out)
{
    const struct nrg_calibration *c = r->calibration;
    const struct nrg_point_result *best = nrg_cheapest_mac(c);
    fprintf(out, "\nabove idle\n");
    if (best)
        fprintf(out, "  per multiply-accumulate  %8.2f pJ ± %.2f   at best: %s\n",
                1e12 * best->above_j / best->point->macs,
                1e12 * best->above_uncertainty_j / best->point->macs, best->point->name);
    for (size_t l = 0; l < NRG_MEMORY_LEVELS; l++) {
        struct nrg_level_price cost = nrg_level_price(c, l);
        if (cost.n)
            fprintf(out, "  per byte, %-14s %8.2f pJ ± %.2f   up to %.1f GB/s\n", cost.level,
                    1e12 * cost.j_per_byte, 1e12 * cost.uncertainty, cost.gb_per_s);
    }
}

void nrg_calibration_text(const struct nrg_calibration_report *r, FILE *out)
{
    const struct nrg_calibration *c = r->calibration;
    fprintf(out, "%s, %u threads; %s energy of %s\n", r->device, r->threads, r->provenance,
            r->domains[0] ? r->domains : "nothing");
    if (!isnan(c->idle_w))
        fprintf(out, "idle %.3f W ± %.3f (%.3f before, %.3f after)\n", c->idle_w,
                c->idle_uncertainty_w, c->idle_before_w, c->idle_after_w);
    fprintf(out, "\n%-6s %-26s %10s %10s %8s %8s %8s %8s %8s %8s\n", "WHAT", "SIZE", "TIME",
            "ENERGY", "±", "W", "GFLOP/s", "GB/s", "pJ/MAC", "pJ/byte");
    for (size_t i = 0; i < c->n; i++)
        print_point(&c->results[i], out);
    print_prices(r, out);
    print_notes(r, out);
}

/* ---- JSON ---- */

static json_t *point_json(const struct nrg_point_result *r)
{
    const struct nrg_point *p = r->point;
    json_t *o = json_pack("{s:s, s:s, s:s, s:I, s:b}", "family", nrg_point_families[p->family],
                          "name", p->name, "kind", p->kind, "repeats", (json_int_t)r->repeats,
                          "reached_error", r->reached_error);
    if (p->family == NRG_POINT_GEMM)
        json_object_set_new(
            o, "sizes",
            json_pack("[I, I, I]", (json_int_t)p->m, (json_int_t)p->n, (json_int_t)p->k));
    if (p->family == NRG_POINT_STREAM) {
        nrg_json_text(o, "stream", nrg_stream_names[p->stream]);
        nrg_json_text(o, "level", p->level);
        nrg_json_count(o, "working_set_bytes", (int64_t)p->set_bytes);
    }
    NRG_JSON_REALS(o, {"calls", r->calls}, {"macs", p->macs}, {"read_bytes", p->read_bytes},
                   {"written_bytes", p->written_bytes}, {"time_s", r->time_s},
                   {"energy_j", r->energy_j}, {"uncertainty_j", r->uncertainty_j},
                   {"spread_percent", 100 * r->spread}, {"power_w", r->energy_j / r->time_s},
                   {"energy_above_idle_j", r->above_j},
                   {"uncertainty_above_idle_j", r->above_uncertainty_j},
                   {"gb_per_s", nrg_point_bytes(p) / r->time_s / 1e9});
    if (p->macs > 0) {
        nrg_json_real(o, "gflop_per_s", 2 * p->macs / r->time_s / 1e9);
        nrg_json_real(o, "j_per_mac", r->above_j / p->macs);
    } else {
        nrg_json_real(o, "j_per_byte", r->above_j / nrg_point_bytes(p));
    }
    return o;
}

static json_t *levels_json(const struct nrg_calibration *c)
{
    json_t *list = json_array();
    for (size_t l = 0; l < NRG_MEMORY_LEVELS; l++) {
        struct nrg_level_price cost = nrg_level_price(c, l);
        if (!cost.n)
            continue;
        json_array_append_new(list, json_pack("{s:s, s:f, s:f, s:f}", "level", cost.level,
                                              "j_per_byte", cost.j_per_byte, "uncertainty_j",
                                              cost.uncertainty, "gb_per_s", cost.gb_per_s));
    }
    return list;
}

static json_t *idle_json(const struct nrg_calibration *c)
{
    json_t *o = json_object();
    NRG_JSON_REALS(o, {"power_w", c->idle_w}, {"uncertainty_w", c->idle_uncertainty_w},
                   {"before_w", c->idle_before_w}, {"after_w", c->idle_after_w},
                   {"utilisation", c->idle_utilisation});
    return o;
}

json_t *nrg_calibration_json(const struct nrg_calibration_report *r)
{
    const struct nrg_calibration *c = r->calibration;
    json_t *points = json_array(), *caches = json_array();
    for (size_t i = 0; i < c->n; i++)
        json_array_append_new(points, point_json(&c->results[i]));
    for (size_t i = 0; i < r->caches->n; i++)
        json_array_append_new(caches,
                              json_pack("{s:i, s:I, s:i}", "level", r->caches->levels[i].level,
                                        "size_bytes", (json_int_t)r->caches->levels[i].size_bytes,
                                        "shared_by", (int)r->caches->levels[i].shared_by));
    json_t *o = json_pack("{s:s, s:s, s:i, s:s, s:s, s:f, s:b, s:I}", "schema", "nrg.calibration/1",
                          "device", r->device, "threads", (int)r->threads, "provenance",
                          r->provenance, "domains", r->domains, "duration_s", r->seconds,
                          "interrupted", c->interrupted, "points_planned", (json_int_t)c->n_points);
    if (!o)
        return NULL;
    json_object_set_new(o, "idle", idle_json(c));
    json_object_set_new(o, "caches", caches);
    json_object_set_new(o, "levels", levels_json(c));
    json_object_set_new(o, "points", points);
    return o;
}
