/*
 * Power over time, stacked: the domains of the total, which add up. Gaps stay gaps. Below it the
 * spans, a lane per depth of each track; those of less than a pixel that are covered by others are
 * not written.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "energy/bins.h"
#include "report/attribution/report.h"
#include "report/export/stacks.h"
#include "report/picture/pen.h"
#include "report/units.h"

#define LEFT       70.0
#define RIGHT      10.0
#define TOP        44.0
#define PLOT       220.0
#define LANE       15.0
#define STEPS      920 /* as many as there are pixels */
#define MOST_LANES 40
#define MOST_PARTS 8
#define MOST_W     1e15

struct timeline {
    const struct nrg_picture *p;
    FILE *out;
    size_t n_parts, channel[MOST_PARTS];
    int64_t begin_ns, duration_ns, period_ns;
    float (*power_w)[STEPS]; /* per part; NAN: not read */
};

static double x_of(const struct timeline *t, double ns)
{
    return LEFT + ns / (double)t->duration_ns * (NRG_PEN_WIDTH - LEFT - RIGHT);
}

/* Powers that no machine has can't be drawn. */
static float to_drawn(double power_w)
{
    return fabs(power_w) < MOST_W ? (float)power_w : NAN;
}

static int on_bin(void *arg, const struct nrg_bin *bin)
{
    struct timeline *t = arg;
    int64_t k = (bin->begin_ns - t->begin_ns) / t->period_ns;
    for (size_t i = 0; k >= 0 && k < STEPS && i < t->n_parts; i++)
        t->power_w[i][k] = to_drawn(nrg_bin_mean(&bin->cells[t->channel[i]]));
    return 0;
}

/* The channels of the attribution's domains. */
static int load_power(struct timeline *t, struct nrg_arena *memory, struct nrg_error *err)
{
    const struct nrg_attribution *a = t->p->attribution;
    size_t n;
    const struct nrg_recorded_channel *channels = nrg_recording_channels(t->p->recording, &n);
    for (size_t i = 0; i < a->n_domains && t->n_parts < MOST_PARTS; i++)
        if (a->domains[i].domain && a->domains[i].domain->channel)
            t->channel[t->n_parts++] = (size_t)(a->domains[i].domain->channel - channels);
    t->power_w = nrg_arena_array(memory, t->n_parts + 1, sizeof *t->power_w);
    if (!t->power_w)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    for (size_t i = 0; i < t->n_parts; i++)
        for (size_t k = 0; k < STEPS; k++)
            t->power_w[i][k] = NAN;
    t->period_ns = t->duration_ns / STEPS > 0 ? t->duration_ns / STEPS : 1;
    const struct nrg_span_ns run = {t->begin_ns, t->begin_ns + t->duration_ns};
    const struct nrg_bins_options how = {.spans = &run, .n_spans = 1, .period_ns = t->period_ns};
    return t->n_parts ? nrg_bins_make(t->p->recording, &how, on_bin, t, err) : 0;
}

/* Sum of the parts up to `part` in a step; those that were not read count as nothing. */
static double stacked_w(const struct timeline *t, size_t part, size_t step)
{
    double sum_w = 0;
    for (size_t i = 0; i <= part && i < t->n_parts; i++)
        sum_w += isnan(t->power_w[i][step]) ? 0 : t->power_w[i][step];
    return sum_w;
}

static double most_w(const struct timeline *t)
{
    double most = 0;
    for (size_t k = 0; t->n_parts && k < STEPS; k++)
        most = fmax(most, stacked_w(t, t->n_parts - 1, k));
    return most > 0 ? 1.08 * most : 1;
}

static double y_of(double power_w, double most)
{
    return TOP + PLOT - power_w / most * PLOT;
}

/* One area from the first step to before the last, all of which were read. */
static void put_area(const struct timeline *t, size_t part, size_t first, size_t last, double most)
{
    fputs("<polygon points=\"", t->out);
    for (size_t k = first; k < last; k++) {
        double y = y_of(stacked_w(t, part, k), most);
        fprintf(t->out, "%.2f %.2f %.2f %.2f ", x_of(t, (double)t->period_ns * (double)k), y,
                fmin(x_of(t, (double)t->period_ns * (double)(k + 1)), NRG_PEN_WIDTH - RIGHT), y);
    }
    for (size_t k = last; k-- > first;) {
        double y = y_of(part ? stacked_w(t, part - 1, k) : 0, most);
        fprintf(t->out, "%.2f %.2f %.2f %.2f ",
                fmin(x_of(t, (double)t->period_ns * (double)(k + 1)), NRG_PEN_WIDTH - RIGHT), y,
                x_of(t, (double)t->period_ns * (double)k), y);
    }
    fprintf(t->out, "\" fill=\"%s\" opacity=\"0.75\"/>\n", nrg_pen_colour_of(part));
}

static void put_part(const struct timeline *t, size_t part, double most)
{
    for (size_t k = 0, first; k < STEPS; k++) {
        while (k < STEPS && isnan(t->power_w[part][k]))
            k++;
        for (first = k; k < STEPS && !isnan(t->power_w[part][k]);)
            k++;
        if (k > first)
            put_area(t, part, first, k, most);
    }
}

static void put_axes(const struct timeline *t, double most, double bottom)
{
    double duration_s = (double)t->duration_ns / 1e9, step_s = nrg_pen_step(duration_s, 9);
    double step_w = nrg_pen_step(most, 5);
    char text[48];
    for (double s = 0; s <= duration_s * 1.0001; s += step_s) {
        nrg_pen_line(t->out, x_of(t, s * 1e9), TOP, x_of(t, s * 1e9), bottom, NRG_GRID, 1);
        snprintf(text, sizeof text, "%.6g s", s);
        nrg_pen_text(t->out, x_of(t, s * 1e9), TOP + PLOT + 15, "middle", NRG_DIM, text, 0);
    }
    for (double w = 0; w <= most; w += step_w) {
        nrg_pen_line(t->out, LEFT, y_of(w, most), NRG_PEN_WIDTH - RIGHT, y_of(w, most), NRG_GRID,
                     1);
        snprintf(text, sizeof text, "%.6g W", w);
        nrg_pen_text(t->out, LEFT - 6, y_of(w, most) + 4, "end", NRG_DIM, text, 0);
    }
}

static void put_legend(const struct timeline *t)
{
    double x = LEFT;
    for (size_t i = 0; i < t->n_parts; i++) {
        const struct nrg_attribution_domain *d = &t->p->attribution->domains[i];
        char text[128];
        snprintf(text, sizeof text, "%s (%s)", nrg_attribution_domain_name(d),
                 nrg_provenance_name(d->domain->channel->channel.provenance));
        nrg_pen_rect(t->out, (struct nrg_box){x, 26, 9, 9}, nrg_pen_colour_of(i), 1);
        nrg_pen_text(t->out, x + 13, 35, "start", NRG_DIM, text, 0);
        x += 7.0 * (double)strlen(text) + 30;
    }
}

/* ---- spans ---- */

/* Lanes of each track begin where those of the track before end. Number of lanes. */
static size_t place_lanes(const struct nrg_stacks *s, size_t *first_lane)
{
    size_t n = 0;
    for (size_t first = 0, last; first < s->n_spans; first = last) {
        uint32_t most = 0;
        last = nrg_stacks_track_end(s, first);
        for (size_t i = first; i < last; i++)
            most = s->spans[i].depth > most ? s->spans[i].depth : most;
        first_lane[s->spans[first].track] = n;
        n += most + 1;
    }
    return n < MOST_LANES ? n : MOST_LANES;
}

static int put_lanes(const struct timeline *t, const struct nrg_stacks *s, const size_t *first_lane,
                     double top)
{
    double painted[MOST_LANES] = {0};
    struct nrg_str label = {0};
    int rc = 0;
    for (size_t i = 0; !rc && i < s->n_spans; i++) {
        const struct nrg_stack_span *span = &s->spans[i];
        size_t lane = first_lane[span->track] + span->depth;
        double x = x_of(t, (double)span->begin_ns);
        double right = fmin(NRG_PEN_WIDTH - RIGHT, fmax(x + 0.7, x_of(t, (double)span->end_ns)));
        const struct nrg_attribution_row *row = &t->p->attribution->rows[span->row];
        if (lane >= MOST_LANES || right <= painted[lane] || x > NRG_PEN_WIDTH - RIGHT)
            continue;
        painted[lane] = right - x < 1.5 ? ceil(right) : right;
        nrg_pen_rect(t->out, (struct nrg_box){x, top + LANE * (double)lane, right - x, LANE - 2},
                     nrg_pen_colour(row->kind, row->detail[0] ? row->detail : row->name), 0.9);
        if (right - x < 24)
            continue;
        rc = nrg_attribution_label(t->p->attribution, span->row, true, &label);
        if (!rc)
            nrg_pen_text(t->out, x + 3, top + LANE * (double)lane + 10.5, "start", "#ffffff",
                         label.text, right - x - 4);
    }
    nrg_str_release(&label);
    return rc;
}

static int put_track_names(const struct timeline *t, const struct nrg_stacks *s,
                           const size_t *first_lane, double top)
{
    struct nrg_str name = {0};
    int rc = 0;
    for (size_t first = 0, last; !rc && first < s->n_spans; first = last) {
        size_t track = s->spans[first].track;
        last = nrg_stacks_track_end(s, first);
        rc = nrg_stacks_track_name(s, track, &name);
        if (!rc && first_lane[track] < MOST_LANES)
            nrg_pen_text(t->out, 2, top + LANE * (double)first_lane[track] + 10.5, "start", NRG_DIM,
                         name.text, LEFT - 4);
    }
    nrg_str_release(&name);
    return rc;
}

static int draw(struct timeline *t, const struct nrg_stacks *s, struct nrg_arena *memory)
{
    size_t *first_lane = nrg_arena_array(memory, s->catalog.n_tracks + 1, sizeof *first_lane);
    if (!first_lane)
        return -ENOMEM;
    size_t lanes = place_lanes(s, first_lane);
    double most = most_w(t), top = TOP + PLOT + 24, bottom = top + LANE * (double)lanes;
    nrg_pen_begin(t->out, bottom + 8);
    nrg_pen_caption(t->out, t->p->attribution, "Power over time", 16);
    put_axes(t, most, lanes ? bottom : TOP + PLOT);
    for (size_t i = 0; i < t->n_parts; i++)
        put_part(t, i, most);
    put_legend(t);
    int rc = put_lanes(t, s, first_lane, top);
    if (!rc)
        rc = put_track_names(t, s, first_lane, top);
    nrg_pen_end(t->out);
    return rc;
}

int nrg_picture_timeline(const struct nrg_picture *p, FILE *out, struct nrg_error *err)
{
    const struct nrg_attribution_buckets *b = p->attribution->buckets;
    struct timeline t = {.p = p,
                         .out = out,
                         .begin_ns = p->attribution->summary.begin_ns,
                         .duration_ns = b->edges_ns[b->n] > 0 ? b->edges_ns[b->n] : 1};
    struct nrg_arena memory = {0};
    struct nrg_stacks stacks = {0};
    int rc = load_power(&t, &memory, err);
    if (!rc)
        rc = nrg_stacks_load(&stacks, p->recording, p->attribution, err);
    if (!rc && (rc = draw(&t, &stacks, &memory)))
        nrg_fail(err, rc, nrg_recording_path(p->recording), "%s", strerror(-rc));
    nrg_stacks_release(&stacks);
    nrg_arena_release(&memory);
    return rc;
}
