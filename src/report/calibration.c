/*
 * See calibration.h. Joules per unit are above idle: idle power is a line of its own, and whoever
 * wants both adds idle power times time.
 */
#include "report/calibration.h"

#include <math.h>
#include <string.h>

#include "report/units.h"

static const char *const levels[] = {"L1", "L2", "L3", "L4", "memory"};
#define LEVELS (sizeof levels / sizeof *levels)
#define BUSY   0.1 /* of the processors while idle is measured: worth a word */

static double bytes_of(const struct nrg_point *p)
{
    return p->read_bytes + p->written_bytes;
}

/* Of all streams of a level: mean of joules per byte, and the larger of spread and error. */
struct level_cost {
    size_t n;
    double j_per_byte, uncertainty, gb_per_s;
};

static struct level_cost level_cost(const struct nrg_calibration *c, const char *level)
{
    struct level_cost out = {0};
    double low = INFINITY, high = 0, worst = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct nrg_point_result *r = &c->results[i];
        if (r->point->family != NRG_POINT_STREAM || strcmp(r->point->level, level) ||
            isnan(r->above_j))
            continue;
        double cost = r->above_j / bytes_of(r->point);
        out.n++;
        out.j_per_byte += cost;
        out.gb_per_s = fmax(out.gb_per_s, bytes_of(r->point) / r->time_s / 1e9);
        low = fmin(low, cost);
        high = fmax(high, cost);
        worst = fmax(worst, r->above_uncertainty_j / bytes_of(r->point));
    }
    if (out.n) {
        out.j_per_byte /= (double)out.n;
        out.uncertainty = fmax(worst, (high - low) / 2);
    }
    return out;
}

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
    char energy[24], time[24];
    const struct nrg_point *p = r->point;
    fprintf(out, "%-6s %-26s %10s %10s %6.1f %%", nrg_point_families[p->family], p->name,
            nrg_show_seconds(time, sizeof time, r->time_s),
            nrg_show_energy(energy, sizeof energy, r->energy_j),
            100 * r->uncertainty_j / r->energy_j);
    print_number(out, r->energy_j / r->time_s, 8);
    print_number(out, p->macs > 0 ? 2 * p->macs / r->time_s / 1e9 : NAN, 8);
    print_number(out, bytes_of(p) / r->time_s / 1e9, 8);
    print_number(out, p->macs > 0 ? r->above_j / p->macs * 1e12 : NAN, 8);
    print_number(out, p->family == NRG_POINT_STREAM ? r->above_j / bytes_of(p) * 1e12 : NAN, 8);
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
        fprintf(out,
                "the machine was not idle: others used %.0f %% of its processors, so idle power is "
                "too high and prices above it are too low\n",
                100 * c->idle_utilisation);
    if (r->points->caches_assumed)
        fprintf(out, "the kernel does not tell the caches' sizes: usual ones were taken\n");
    if (r->points->memory_short)
        fprintf(out, "not enough memory for a set well beyond the last cache: none was streamed\n");
    if (c->interrupted)
        fprintf(out, "interrupted: %zu of %zu points\n", c->n, c->n_points);
}

/* Noise makes some points cheap: the cheapest is the one that is surely so. */
static double surely_per_mac(const struct nrg_point_result *r)
{
    return (r->above_j + r->above_uncertainty_j) / r->point->macs;
}

static void print_prices(const struct nrg_calibration_report *r, FILE *out)
{
    const struct nrg_calibration *c = r->calibration;
    const struct nrg_point_result *best = NULL;
    fprintf(out, "\nabove idle\n");
    for (size_t i = 0; i < c->n; i++)
        if (c->results[i].point->macs > 0 && !isnan(c->results[i].above_j) &&
            (!best || surely_per_mac(&c->results[i]) < surely_per_mac(best)))
            best = &c->results[i];
    if (best)
        fprintf(out, "  per multiply-accumulate  %8.2f pJ ± %.2f   at best: %s\n",
                1e12 * best->above_j / best->point->macs,
                1e12 * best->above_uncertainty_j / best->point->macs, best->point->name);
    for (size_t l = 0; l < LEVELS; l++) {
        struct level_cost cost = level_cost(c, levels[l]);
        if (cost.n)
            fprintf(out, "  per byte, %-14s %8.2f pJ ± %.2f   up to %.1f GB/s\n", levels[l],
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

static void set_number(json_t *o, const char *key, double value)
{
    if (isfinite(value))
        json_object_set_new(o, key, json_real(value));
}

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
        json_object_set_new(o, "stream", json_string(nrg_stream_names[p->stream]));
        json_object_set_new(o, "level", json_string(p->level));
        json_object_set_new(o, "working_set_bytes", json_integer((json_int_t)p->set_bytes));
    }
    set_number(o, "calls", r->calls);
    set_number(o, "macs", p->macs);
    set_number(o, "read_bytes", p->read_bytes);
    set_number(o, "written_bytes", p->written_bytes);
    set_number(o, "time_s", r->time_s);
    set_number(o, "energy_j", r->energy_j);
    set_number(o, "uncertainty_j", r->uncertainty_j);
    set_number(o, "spread_percent", 100 * r->spread);
    set_number(o, "power_w", r->energy_j / r->time_s);
    set_number(o, "energy_above_idle_j", r->above_j);
    set_number(o, "uncertainty_above_idle_j", r->above_uncertainty_j);
    set_number(o, "gb_per_s", bytes_of(p) / r->time_s / 1e9);
    if (p->macs > 0) {
        set_number(o, "gflop_per_s", 2 * p->macs / r->time_s / 1e9);
        set_number(o, "j_per_mac", r->above_j / p->macs);
    } else {
        set_number(o, "j_per_byte", r->above_j / bytes_of(p));
    }
    return o;
}

static json_t *levels_json(const struct nrg_calibration *c)
{
    json_t *list = json_array();
    for (size_t l = 0; l < LEVELS; l++) {
        struct level_cost cost = level_cost(c, levels[l]);
        if (!cost.n)
            continue;
        json_array_append_new(list, json_pack("{s:s, s:f, s:f, s:f}", "level", levels[l],
                                              "j_per_byte", cost.j_per_byte, "uncertainty_j",
                                              cost.uncertainty, "gb_per_s", cost.gb_per_s));
    }
    return list;
}

static json_t *idle_json(const struct nrg_calibration *c)
{
    json_t *o = json_object();
    set_number(o, "power_w", c->idle_w);
    set_number(o, "uncertainty_w", c->idle_uncertainty_w);
    set_number(o, "before_w", c->idle_before_w);
    set_number(o, "after_w", c->idle_after_w);
    set_number(o, "utilisation", c->idle_utilisation);
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
