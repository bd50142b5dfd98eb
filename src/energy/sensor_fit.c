/*
 * See sensor_fit.h. The time that the load was on up to t is piecewise linear, so the mean over any
 * window is two look-ups, and a residual is one pass over the updates. A coarse grid over window
 * and delay finds the valley, then ever smaller steps its floor. How far the window can be moved
 * until the residual says that it is another one gives its interval.
 */
#include "energy/sensor_fit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "base/stats.h"
#include "energy/updates/update_grid.h"
#include "record/read/span_catalog.h"
#include "record/read/spans.h"

#define LEAST_SPANS     32
#define LEAST_UPDATES   48
#define READ_PER_UPDATE 2.9 /* else two updates and one reading between them are mixed up */
#define LEAST_EXPLAINED 0.8
#define WIDEST          1.25 /* of the window's interval, high over low */
#define SHORTEST_S      0.001
#define LONGEST_S       3.0
#define COARSE          1.2 /* from one window of the coarse grid to the next */
#define DELAYS          64  /* of the coarse grid, over one update before to three after */
#define ROUNDS          24
#define NARROW          0.6  /* of the steps, from round to round */
#define STEP            1.01 /* of the window, on the way to the ends of its interval */
#define CHI_95          3.84

struct update {
    double t_s, power_w;
};

struct load {
    int64_t zero_ns;
    double *begin_s, *end_s, *on_s; /* on_s: before begin_s */
    size_t n, cap;
    struct update *updates;
    size_t n_updates, cap_updates;
};

/* A line through (part on, power). */
struct line {
    double residual, slope, offset, all; /* all: sum of squares of the powers */
};

struct place {
    double window_s, delay_s;
    struct line line;
};

/* --- the load --- */

static int add_span(struct load *load, double begin_s, double end_s)
{
    size_t caps[2] = {load->cap, load->cap};
    if (load->n && begin_s < load->end_s[load->n - 1])
        begin_s = load->end_s[load->n - 1]; /* of a second thread, or out of order */
    if (end_s <= begin_s)
        return 0;
    if (nrg_reserve(&load->begin_s, &caps[0], load->n + 1, sizeof(double)) ||
        nrg_reserve(&load->end_s, &caps[1], load->n + 1, sizeof(double)) ||
        nrg_reserve(&load->on_s, &load->cap, load->n + 1, sizeof(double)))
        return -ENOMEM;
    size_t i = load->n++;
    load->begin_s[i] = begin_s;
    load->end_s[i] = end_s;
    load->on_s[i] = i ? load->on_s[i - 1] + load->end_s[i - 1] - load->begin_s[i - 1] : 0;
    return 0;
}

static bool is_on(const struct nrg_span_catalog *catalog, int64_t name)
{
    const struct nrg_span_name *n = nrg_span_catalog_name(catalog, name);
    return n && !strcmp(n->text, "on");
}

/* A load has one thread, so the next end after an `on` is its own. */
static int read_spans(struct load *load, struct nrg_recording *recording,
                      const struct nrg_span_catalog *catalog)
{
    struct nrg_span_reader *reader;
    struct nrg_span_row row;
    int64_t begin_ns = 0, track = 0;
    int rc = nrg_span_reader_new(recording, &reader), more = 0;
    if (rc)
        return rc;
    while (!rc && (more = nrg_span_reader_next(reader, &row)) > 0) {
        if (row.event == NRG_SPAN_BEGIN && !track && is_on(catalog, row.name)) {
            track = row.track;
            begin_ns = row.t_ns;
        } else if (row.event == NRG_SPAN_END && row.track == track) {
            track = 0;
            if (!load->n)
                load->zero_ns = begin_ns;
            rc = add_span(load, (double)(begin_ns - load->zero_ns) / 1e9,
                          (double)(row.t_ns - load->zero_ns) / 1e9);
        }
    }
    nrg_span_reader_free(reader);
    return rc ? rc : more;
}

static double on_up_to(const struct load *load, double t_s)
{
    size_t low = 0, high = load->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (load->begin_s[middle] <= t_s)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return 0;
    return load->on_s[low - 1] + fmin(t_s, load->end_s[low - 1]) - load->begin_s[low - 1];
}

/* --- its updates --- */

/* A quarter of the distances between changes is at most this: some updates do not change it. */
static double usual_distance_ns(const struct nrg_timeline *tl, int64_t begin_ns, int64_t end_ns)
{
    double *apart = nrg_calloc(tl->n + 1, sizeof *apart), result = NAN;
    size_t n = 0, last = 0;
    for (size_t i = 1; apart && i < tl->n && nrg_point_ns(tl, i) <= end_ns; i++) {
        if (nrg_point_ns(tl, i) < begin_ns || !nrg_update_is_news(tl, i))
            continue;
        if (last)
            apart[n++] = (double)(nrg_point_ns(tl, i) - nrg_point_ns(tl, last));
        last = i;
    }
    if (n) {
        nrg_sort(apart, n);
        result = apart[n / 4];
    }
    free(apart);
    return result;
}

static int list_updates(struct load *load, const struct nrg_timeline *tl, int64_t end_ns,
                        const struct nrg_update_grid *grid)
{
    int rc = 0;
    for (size_t i = 1; !rc && i < tl->n && nrg_point_ns(tl, i) <= end_ns; i++) {
        if (nrg_point_ns(tl, i) < load->zero_ns || !nrg_update_is_news(tl, i))
            continue;
        double t_s = (double)(nrg_point_ns(tl, i - 1) - load->zero_ns) / 2e9 +
                     (double)(nrg_point_ns(tl, i) - load->zero_ns) / 2e9;
        double k = round((t_s - grid->origin_s) / grid->period_s);
        struct update update = {grid->origin_s + k * grid->period_s, nrg_point_gauge(tl, i)};
        rc = nrg_append(&load->updates, &load->n_updates, &load->cap_updates, &update,
                        sizeof update);
    }
    return rc;
}

/* --- the fit --- */

static struct line fit_line(const struct load *load, double window_s, double delay_s)
{
    double n = (double)load->n_updates, mx = 0, my = 0, xx = 0, xy = 0, yy = 0;
    for (size_t i = 0; i < load->n_updates; i++) {
        double end = load->updates[i].t_s - delay_s, y = load->updates[i].power_w;
        double x = (on_up_to(load, end) - on_up_to(load, end - window_s)) / window_s;
        double dx = x - mx, dy = y - my, k = (double)i + 1;
        mx += dx / k;
        my += dy / k;
        xx += dx * (x - mx);
        xy += dx * (y - my);
        yy += dy * (y - my);
    }
    struct line line = {.all = yy, .residual = yy, .offset = my};
    if (n > 2 && xx > 1e-9 * n && xy > 0) {
        line.slope = xy / xx;
        line.offset = my - line.slope * mx;
        line.residual = fmax(0, yy - line.slope * xy);
    }
    return line;
}

static bool try_place(const struct load *load, struct place *best, double window_s, double delay_s)
{
    if (window_s < SHORTEST_S / 2 || window_s > 2 * LONGEST_S)
        return false;
    struct line line = fit_line(load, window_s, delay_s);
    if (!(line.residual < best->line.residual))
        return false;
    *best = (struct place){window_s, delay_s, line};
    return true;
}

/* Smaller and smaller steps from a place; `windows`: also of the window. */
static void descend(const struct load *load, struct place *best, double delay_step_s, bool windows)
{
    double factor = COARSE;
    for (int round = 0; round < ROUNDS; round++) {
        for (int moves = 0; moves < ROUNDS; moves++) {
            double w = best->window_s, d = best->delay_s;
            bool moved = try_place(load, best, w, d + delay_step_s);
            moved |= try_place(load, best, w, d - delay_step_s);
            for (int way = -1; windows && way <= 1; way += 2)
                for (int along = -1; along <= 1; along++) /* one end, the other, or the middle */
                    moved |= try_place(load, best, way < 0 ? w / factor : w * factor,
                                       d + along * (way < 0 ? w - w / factor : w - w * factor) / 2);
            if (!moved)
                break;
        }
        delay_step_s *= NARROW;
        factor = 1 + (factor - 1) * NARROW;
    }
}

static struct place find_place(const struct load *load, double update_s)
{
    struct place best = {.line = {.residual = INFINITY}};
    for (double w = SHORTEST_S; w < LONGEST_S; w *= COARSE)
        for (int d = -DELAYS / 4; d < DELAYS * 3 / 4; d++)
            try_place(load, &best, w, 4 * update_s * d / DELAYS);
    descend(load, &best, 4 * update_s / DELAYS, true);
    return best;
}

/* The window that is so much longer or shorter that readings tell it from the best one. */
static double end_of_interval(const struct load *load, const struct place *best, double update_s,
                              double factor)
{
    double most =
        best->line.residual * (1 + CHI_95 / ((double)load->n_updates - 4)) + 1e-6 * best->line.all;
    struct place at = *best;
    while (at.window_s > SHORTEST_S / 2 && at.window_s < 2 * LONGEST_S) {
        at.window_s *= factor;
        at.line = fit_line(load, at.window_s, at.delay_s);
        descend(load, &at, update_s / DELAYS, false);
        if (at.line.residual > most)
            break;
    }
    return at.window_s;
}

static int judge(const struct load *load, struct nrg_sensor_fit *fit, struct nrg_error *err)
{
    if (!(fit->explained > LEAST_EXPLAINED))
        return nrg_fail(err, -ENODATA, NULL,
                        "can't be told: the load explains %.0f %% of the readings' changes",
                        100 * fit->explained);
    if (fit->window_high_s > WIDEST * fit->window_low_s)
        return nrg_fail(err, -ENODATA, NULL,
                        "can't be told: windows from %.3g to %.3g ms explain the readings; the "
                        "load must change more often, at irregular times",
                        1e3 * fit->window_low_s, 1e3 * fit->window_high_s);
    fit->updates = load->n_updates;
    return 0;
}

static int fit_load(struct load *load, const struct nrg_timeline *tl, struct nrg_sensor_fit *fit,
                    struct nrg_error *err)
{
    struct nrg_update_grid grid;
    int64_t end_ns = nrg_add_i64(load->zero_ns, nrg_round_i64(load->end_s[load->n - 1] * 1e9));
    double usual_ns = usual_distance_ns(tl, load->zero_ns, end_ns);
    if (!nrg_update_grid_fit(tl, load->zero_ns, end_ns, usual_ns, READ_PER_UPDATE, &grid))
        return nrg_fail(err, -ENODATA, NULL,
                        "can't be told: it was not read at least three times per update; read it "
                        "more often (--rate)");
    if (list_updates(load, tl, end_ns, &grid))
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    if (load->n_updates < LEAST_UPDATES)
        return nrg_fail(err, -ENODATA, NULL, "can't be told: only %zu updates were seen",
                        load->n_updates);
    fit->update_s = grid.period_s;
    struct place best = find_place(load, fit->update_s);
    fit->window_s = best.window_s;
    fit->window_low_s = end_of_interval(load, &best, fit->update_s, 1 / STEP);
    fit->window_high_s = end_of_interval(load, &best, fit->update_s, STEP);
    fit->delay_s = best.delay_s;
    fit->delay_sd_s = grid.half_origin_s / sqrt(3);
    fit->off_w = best.line.offset;
    fit->on_w = best.line.offset + best.line.slope;
    fit->explained = best.line.all > 0 ? 1 - best.line.residual / best.line.all : 0;
    return judge(load, fit, err);
}

int nrg_sensor_fit(struct nrg_recording *recording, const struct nrg_recorded_channel *channel,
                   struct nrg_sensor_fit *fit, struct nrg_error *err)
{
    struct nrg_span_catalog catalog;
    struct nrg_timeline tl = {0};
    struct load load = {0};
    *fit = (struct nrg_sensor_fit){0};
    int rc = nrg_span_catalog_load(&catalog, recording, err);
    if (rc)
        return rc;
    rc = read_spans(&load, recording, &catalog);
    if (!rc)
        rc = nrg_timeline_load(&tl, recording, channel);
    if (rc)
        nrg_fail(err, rc, nrg_recording_path(recording), "cannot be read: %s", strerror(-rc));
    else if (load.n < LEAST_SPANS || !tl.n)
        rc = nrg_fail(err, -ENODATA, NULL,
                      "can't be told: %zu spans called 'on' and %zu readings are too few", load.n,
                      tl.n);
    else
        rc = fit_load(&load, &tl, fit, err);
    nrg_span_catalog_release(&catalog);
    nrg_timeline_release(&tl);
    free(load.begin_s);
    free(load.end_s);
    free(load.on_s);
    free(load.updates);
    return rc;
}
