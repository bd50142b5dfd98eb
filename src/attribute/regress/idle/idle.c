/*
 * Idle power and a regression: what is known of it before (a baseline and what else was busy then,
 * how it may drift from there on, a line over cells, or only the range that it lies in), and what
 * the readings made of it.
 */
#include "attribute/regress/idle/idle.h"

#include <math.h>
#include <string.h>

#include "attribute/internal.h"
#include "attribute/recorder.h"
#include "attribute/regress/fit.h"
#include "base/mem.h"
#include "energy/idle.h"

#define BASELINE_BUSY 2    /* ticks of the baseline: fewer may be their rounding */
#define MOST_WATTS    2.0  /* times those of the mean CPU second: what others' may draw */
#define FAR_WATTS     4.0  /* times them: more is an error of a first fit */
#define BENDS         0.5  /* of a drift: how far from a line it may be in the middle */
#define CHANGED       5    /* deviations of a baseline: by that much the one after it differs */
#define BENT          0.25 /* of that change: as far above the line is the middle of a warm-up */
#define LEAKS         0.01 /* of idle power, by which it may grow per degree */
#define GUESSES       10   /* standard errors: a first guess says next to nothing */
#define GUESSED       0.5  /* of it, at least */

/*
 * Of two baselines, others may have been busier in one: that is no drift of idle power, and tells
 * their watts. Returns what the first one drew.
 */
static double know_busy_ends(struct nrg_engine *e, struct nrg_part *part, size_t busy_channel,
                             struct nrg_regress_options *o)
{
    size_t power = (size_t)(part->channel - e->frame.channels);
    struct nrg_baseline_ends w = nrg_frame_baseline_ends_at(&e->frame, power, busy_channel);
    struct nrg_baseline_ends busy =
        nrg_frame_baseline_ends_at(&e->frame, busy_channel, busy_channel);
    part->baseline_busy = o->idle_busy = busy.before;
    o->busy_after = busy.after - busy.before;
    o->idle_after_w = w.after - w.before;
    o->idle_bent_w = 0;
    return w.before;
}

/*
 * Others that were busy during the baseline are in its power. How much they were is known from one
 * reading of the busy time to another, to a tick, so power is taken between the same two; at most
 * all of it was theirs.
 */
static void know_busy_baseline(struct nrg_engine *e, struct nrg_part *part, double length_s,
                               struct nrg_regress_options *o)
{
    size_t channel = nrg_frame_find(&e->frame, "cpu.busy", NRG_SECONDS);
    size_t power = (size_t)(part->channel - e->frame.channels);
    double busy = nrg_frame_baseline_rate_at(&e->frame, channel, channel);
    double w = nrg_frame_baseline_rate_at(&e->frame, power, channel);
    double tick_s = nrg_busy_tick_s(e);
    if (part->pool || !(busy > BASELINE_BUSY * tick_s / length_s) || !(w > 0))
        return;
    part->baseline_busy = o->idle_busy = busy;
    if (o->seen_twice)
        w = know_busy_ends(e, part, channel, o);
    o->idle_w += w - part->out->idle_w - part->baseline_off_w;
    part->baseline_off_w = w - part->out->idle_w;
    o->idle_busy_w = fmin(w, busy * FAR_WATTS * nrg_cpu_watts(e, part));
    o->others_most_w = w / part->baseline_busy;
    o->idle_error_w = hypot(o->idle_error_w, fmin(w / busy, MOST_WATTS * nrg_cpu_watts(e, part)) *
                                                 tick_s / length_s / sqrt(6));
}

/* CPUs that others had in the mean of the run, beyond those of the baseline. */
static double others_busy(const struct nrg_engine *e, const struct nrg_part *part)
{
    const struct nrg_cells *c = &e->cells;
    double other_s = 0;
    for (size_t k = 0; c->other_s && k < c->n; k++)
        other_s += c->outside[k] ? 0 : c->other_s[k];
    return other_s / e->out->duration_s - part->baseline_busy;
}

/*
 * A little that is busy all through the run, but was not in the baseline (the recorder itself,
 * which reads faster from the first span on), can't be told from idle power, and would be taken
 * from the spans where idle power may not rise by as much. Its CPU time is known in the mean, and
 * not from cell to cell, where ticks hide it: so it is taken to be there at all times. Of its watts
 * nothing is known but that they are positive, and what a CPU second draws in the mean: they may
 * differ from that by as much (an exponential distribution). Where others had more, or came and
 * went, their watts show, and only the error of a little counts; but what the recorder itself is
 * known to have used is there in any case.
 */
static void know_trickle(const struct nrg_engine *e, struct nrg_part *part,
                         struct nrg_regress_options *o)
{
    double seen = others_busy(e, part), watts = nrg_cpu_watts(e, part);
    part->trickle_busy = part->trickle_w = 0;
    if (part->pool || !isfinite(watts))
        return;
    double own = nrg_recorder_more_busy(e, part), counted = e->cells.own_s / e->out->duration_s;
    double busy = fmax(seen, own), tick_s = nrg_busy_tick_s(e);
    if (!(busy > 0))
        return;
    bool shows = busy - own > NRG_TRICKLE || nrg_others_scatter_s(&e->cells, tick_s) > tick_s;
    o->idle_error_w = hypot(o->idle_error_w, fmin(busy, NRG_TRICKLE) * watts);
    part->trickle_busy = shows ? counted : fmax(seen, counted);
    part->trickle_w = (shows ? own : busy) * watts;
    o->idle_w += part->trickle_w;
}

/* What the recorder woke in the baseline is not idle power's, and spans lack it. */
static void know_woken(struct nrg_engine *e, struct nrg_part *part, struct nrg_regress_options *o)
{
    o->woken_w = nrg_recorder_woken_w(e, part);
    part->woken_w = o->woken_w * nrg_own_busy(e);
}

/* Idle power where it was seen: before the run, and how much more it was after it; or only then. */
static void know_ends(struct nrg_engine *e, struct nrg_part *part, struct nrg_regress_options *o)
{
    struct nrg_baseline_ends ends =
        nrg_frame_baseline_ends(&e->frame, (size_t)(part->channel - e->frame.channels));
    bool both = !isnan(ends.before) && !isnan(ends.after);
    o->course.seen = isnan(ends.before) ? NRG_IDLE_AFTER : NRG_IDLE_BEFORE;
    o->seen_twice = both;
    o->idle_after_w = both ? ends.after - ends.before : 0;
    if (both && fabs(o->idle_after_w) > CHANGED * o->idle_error_w)
        o->idle_bent_w = BENT * o->idle_after_w;
    part->baseline_off_w = both ? ends.before - part->out->idle_w : 0;
    o->idle_w += part->baseline_off_w;
}

/* The baseline beside what is looked at, before it or after it; NULL: there is none. */
static const struct nrg_run *baseline_beside(const struct nrg_engine *e,
                                             const struct nrg_idle_course *c, bool before)
{
    size_t n_runs;
    const struct nrg_run *runs = nrg_recording_runs(e->frame.recording, &n_runs), *at = NULL;
    for (size_t i = 0; i < n_runs; i++) {
        bool beside = before ? runs[i].end_ns <= c->begin_ns : runs[i].begin_ns >= c->end_ns && !at;
        at = beside && !strcmp(runs[i].kind, "baseline") ? &runs[i] : at;
    }
    return at;
}

/* How much more per second something was in the second half of a run than in the first; 0 where
 * that is not known. */
static double more_in_second_half(const struct nrg_timeline *tl, const struct nrg_run *run)
{
    int64_t middle_ns = run->begin_ns + (run->end_ns - run->begin_ns) / 2, first_ns, second_ns;
    double first = nrg_timeline_between(tl, run->begin_ns, middle_ns, &first_ns);
    double second = nrg_timeline_between(tl, middle_ns, run->end_ns, &second_ns);
    return first_ns > 0 && second_ns > 0
               ? (second / (double)second_ns - first / (double)first_ns) * 1e9
               : 0;
}

/*
 * How much that baseline's halves differ: idle power that was on its way is not, where the run
 * begins or ends, what it was in the mean. As far as it is more than the age of a counter's
 * readings makes, and than a little that others had may have drawn.
 */
static double leaning_w(struct nrg_engine *e, const struct nrg_part *part,
                        const struct nrg_run *run)
{
    const struct nrg_timeline *busy =
        nrg_frame_timeline(&e->frame, nrg_frame_find(&e->frame, "cpu.busy", NRG_SECONDS));
    double half_s = (double)(run->end_ns - run->begin_ns) / 2e9, watts = nrg_cpu_watts(e, part);
    double aged_w = 2 * (double)part->channel->channel.update_ns / 1e9 / half_s * part->out->idle_w;
    if (part->tl->is_gauge || part->pool || !busy || !isfinite(watts))
        return 0;
    double more = fabs(more_in_second_half(busy, run)) + nrg_busy_tick_s(e) / half_s;
    double more_w = more_in_second_half(part->tl, run);
    double explained_w = hypot(aged_w, MOST_WATTS * watts * more);
    return fabs(more_w) > explained_w ? sqrt(more_w * more_w - explained_w * explained_w) : 0;
}

static void know_sides(struct nrg_engine *e, const struct nrg_part *part,
                       struct nrg_regress_options *o)
{
    const struct nrg_run *before = baseline_beside(e, &o->course, true);
    const struct nrg_run *after = baseline_beside(e, &o->course, false);
    const struct nrg_run *seen = o->course.seen == NRG_IDLE_BEFORE ? before : after;
    if (seen && o->idle_busy <= NRG_TRICKLE) /* else others came and went, at watts of their own */
        o->idle_error_w = hypot(o->idle_error_w, leaning_w(e, part, seen));
    o->course.before_ns = before ? o->course.begin_ns - before->end_ns : 0;
    o->course.after_ns = after ? after->begin_ns - o->course.end_ns : 0;
}

static void know_shapes(struct nrg_engine *e, struct nrg_part *part, struct nrg_regress_options *o)
{
    double w = part->out->idle_w, drift_w = NRG_IDLE_DRIFT * w;
    o->idle_shape_w[NRG_IDLE_LINE] = drift_w;
    o->idle_shape_w[NRG_IDLE_BEND] = BENDS * drift_w;
    if (o->idle_bent_w != 0)
        o->idle_shape_w[NRG_IDLE_BEND] = fabs(o->idle_bent_w);
    for (size_t i = NRG_IDLE_WARM; i < NRG_IDLE_HEAT; i++)
        o->idle_shape_w[i] = BENDS * drift_w;
    if (nrg_heat_find(e, part, o->course.seen, &part->heat)) {
        o->course.heat = &part->heat;
        o->idle_shape_w[NRG_IDLE_HEAT] = LEAKS * w * part->heat.range_c;
    }
}

/*
 * A baseline shows idle power, and whatever else was busy then: that is taken off the others' CPU
 * time, whose watts are found. Idle power drifts from there on.
 */
static void know_baseline(struct nrg_engine *e, struct nrg_part *part,
                          struct nrg_regress_options *o)
{
    bool after;
    double length_s = nrg_frame_baseline_s(&e->frame, &after), w = part->out->idle_w;
    part->idle_corrected =
        part->idle_known && length_s > 0 && w > 0 && !strcmp(part->out->idle_source, "baseline");
    if (!part->idle_corrected)
        return;
    o->idle_error_w = fmax(part->idle_error_w, NRG_BASELINE_ERROR * w);
    know_ends(e, part, o);
    know_shapes(e, part, o);
    know_busy_baseline(e, part, length_s, o);
    know_sides(e, part, o);
    know_trickle(e, part, o);
    know_woken(e, part, o);
    part->baseline_error_w = o->idle_error_w;
}

/*
 * Idle power that was found from the same readings, by a line over cells, is a first guess: a
 * regression sees more of them, and its intervals have what is not known of it.
 */
static void know_guess(struct nrg_engine *e, struct nrg_part *part, struct nrg_regress_options *o)
{
    bool line = part->idle_known && !strcmp(part->out->idle_source, "regression");
    if (!line && !part->idle_guessed)
        return;
    double range_w = isnan(part->least_w) ? 0 : part->least_w / sqrt(12);
    part->idle_corrected = o->idle_guessed = true;
    o->idle_error_w =
        fmax(range_w, fmax(GUESSES * part->idle_error_w, GUESSED * part->out->idle_w));
    know_shapes(e, part, o);
}

static void set_idle(struct nrg_engine *e, struct nrg_part *part, double w, const char *source)
{
    for (size_t k = 0; k < e->cells.n; k++)
        nrg_part_set_idle(part, k, isnan(w) ? 0 : w);
    part->out->idle_w = w;
    nrg_copy(part->out->idle_source, sizeof part->out->idle_source, source);
}

/*
 * Idle power of which nothing is known lies between nothing and the least power that was seen. The
 * middle is a guess that is as far off as a place in that range may be; readings correct it as far
 * as they tell idle power from threads that work, and what they leave open is in all intervals.
 */
void nrg_regress_guess_idle(struct nrg_engine *e, struct nrg_part *part)
{
    if (part->idle_known || !(part->idle_most_w > 0) || part->pool || !e->cells.has_rates)
        return;
    part->idle_known = part->idle_guessed = true;
    set_idle(e, part, part->idle_most_w / 2, "fitted");
}

/* What was guessed is said. Integration has no use for it: its intervals have the whole range. */
void nrg_regress_settle_guess(struct nrg_engine *e, struct nrg_part *part)
{
    if (part->method == NRG_METHOD_REGRESS && part->idle_guessed) {
        nrg_attribution_note(e->out, part->channel->channel.name,
                             "idle power was not measured: between 0 and %.3g W, and by the "
                             "regression %.3g W; nrg run --baseline 5s measures it first",
                             part->idle_most_w, part->out->idle_w);
        part->idle_most_w = 0;
    } else if (part->idle_guessed) {
        part->idle_known = part->idle_guessed = false;
        set_idle(e, part, NAN, "unknown");
    }
    if (!part->idle_known && isnan(part->out->idle_w))
        nrg_part_note_idle(e, part, NULL);
}

/* Idle power that was known, as the readings correct it: what it was off by, others that were busy
 * when it was measured, and its drift. */
static void correct_idle(struct nrg_engine *e, struct nrg_part *part, double idle_off_w)
{
    const struct nrg_regress_result *r = &part->regressed;
    const struct nrg_cells *c = &e->cells;
    double others_w = r->classes[e->other_class].power_w;
    double off_w = part->baseline_off_w + idle_off_w - part->woken_w -
                   (isnan(others_w) ? 0 : others_w * part->baseline_busy);
    double steady_w = part->out->idle_w + off_w - nrg_idle_walk_mean_w(&r->idle_walk);
    for (size_t i = 0; i < NRG_IDLE_SHAPES; i++)
        steady_w -= r->idle_shape_w[i] * nrg_idle_shape_mean(&part->course, i);
    for (size_t k = 0; k < c->n; k++) {
        int64_t middle_ns = c->begin_ns[k] + (c->begin_ns[k + 1] - c->begin_ns[k]) / 2;
        double w = steady_w + nrg_idle_walk_w(&r->idle_walk, &part->course, middle_ns);
        double shapes[NRG_IDLE_SHAPES];
        nrg_idle_shapes(&part->course, middle_ns, shapes);
        for (size_t i = 0; i < NRG_IDLE_SHAPES; i++)
            w += r->idle_shape_w[i] * shapes[i];
        nrg_part_set_idle(part, k, w);
    }
    part->out->idle_w = fmax(0, part->out->idle_w + off_w);
    part->baseline_moved_w = idle_off_w;
}

/* Idle power as the regression found it holds for the whole run. */
void nrg_regress_take_idle(struct nrg_engine *e, struct nrg_part *part)
{
    const struct nrg_regress_result *r = &part->regressed;
    if (part->idle_known && part->idle_corrected)
        correct_idle(e, part, r->idle_off_w);
    if (part->idle_known)
        return;
    /* Where it could not be told, the powers of the classes have it. */
    bool fitted = r->idle_fitted && !isnan(r->idle_w);
    set_idle(e, part, fitted ? r->idle_w : NAN, fitted ? "fitted" : "unknown");
    if (fitted)
        part->idle_most_w = 0;
}

/* What integration would not know of idle power by itself: after one baseline that it drifted, and
 * between two how it went. */
static double unknown_w(struct nrg_engine *e, const struct nrg_part *part, bool *twice)
{
    struct nrg_baseline_ends ends =
        nrg_frame_baseline_ends(&e->frame, (size_t)(part->channel - e->frame.channels));
    *twice = !isnan(ends.before) && !isnan(ends.after);
    return *twice ? fabs(ends.after - ends.before) / 2 : nrg_part_drift_w(e, part);
}

double nrg_regress_idle_doubt_w(struct nrg_engine *e, const struct nrg_part *part)
{
    bool twice;
    return part->idle_corrected && !part->idle_guessed
               ? fmin(part->regressed.beside_half_w, unknown_w(e, part, &twice))
               : 0;
}

/* Watts of others' CPU seconds: those that the regression found, and those of a trickle. */
static double found_others_w(const struct nrg_engine *e, const struct nrg_part *part)
{
    double others_w = part->regressed.classes[e->other_class].power_w;
    double busy = part->baseline_busy + part->trickle_busy;
    others_w = others_w > 0 ? others_w : 0;
    return part->trickle_busy > 0 ? (others_w * part->baseline_busy + part->trickle_w) / busy
                                  : others_w;
}

/*
 * A regression that can't tell the spans may still tell idle power, and others: where it is surer
 * of what both drew in the mean than integration is, that has it from there. As long as it may be
 * what the baseline says, it is taken to be that.
 */
void nrg_regress_leave_idle(struct nrg_engine *e, struct nrg_part *part)
{
    const struct nrg_regress_result *r = &part->regressed;
    double more_w = part->baseline_off_w + part->trickle_w + r->beside_w;
    double half_w = r->beside_half_w;
    bool twice, corrected = part->idle_corrected && !part->idle_guessed;
    if (!corrected || !(half_w < unknown_w(e, part, &twice)))
        return;
    part->idle_found = true;
    part->idle_less_w = part->idle_more_w = half_w;
    part->idle_error_w = 0;
    if (fabs(more_w) < half_w && !twice) {
        part->idle_less_w -= more_w;
        part->idle_more_w += more_w;
        return;
    }
    part->found_others_w = found_others_w(e, part);
    correct_idle(e, part, r->beside_idle_w);
}

void nrg_regress_know_idle(struct nrg_engine *e, struct nrg_part *part,
                           struct nrg_regress_options *o)
{
    know_baseline(e, part, o);
    know_guess(e, part, o);
    o->others_busy = part->pool ? 0 : fmax(others_busy(e, part), 0);
    o->others_hidden = o->others_busy < NRG_TRICKLE;
}
