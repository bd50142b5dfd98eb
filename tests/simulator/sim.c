/* See sim.h. */
#include "simulator/sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SELDOM_STEPS 50
#define LEAST_SCALE  0.2 /* a call is never shorter than this part of the nominal */

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static uint64_t next_random(struct sim_machine *m)
{
    uint64_t z = m->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double uniform(struct sim_machine *m)
{
    return ((double)(next_random(m) >> 11) + 0.5) / 9007199254740992.0;
}

static double gauss(struct sim_machine *m)
{
    double r = sqrt(-2 * log(uniform(m)));
    return r * cos(6.283185307179586 * uniform(m));
}

struct sim_options sim_defaults(void)
{
    return (struct sim_options){.seed = 1,
                                .layers = 50,
                                .steps = 5000,
                                .shortest_s = 20e-6,
                                .longest_s = 5e-3,
                                .jitter = 0.03,
                                .low_w = 5,
                                .high_w = 60,
                                .idle_w = 10,
                                .gap_s = 5e-3,
                                .sensor = SIM_COUNTER,
                                .period_s = 1e-3,
                                .quantum = 61e-6};
}

static void add_piece(struct sim_machine *m, double begin_s, double power_w)
{
    if (m->n_pieces == m->cap_pieces) {
        m->cap_pieces = m->cap_pieces ? 2 * m->cap_pieces : 4096;
        m->pieces = must(realloc(m->pieces, m->cap_pieces * sizeof *m->pieces));
    }
    double sum_j = 0;
    if (m->n_pieces) {
        const struct sim_piece *last = &m->pieces[m->n_pieces - 1];
        sum_j = last->sum_j + last->power_w * (begin_s - last->begin_s);
    }
    m->pieces[m->n_pieces++] = (struct sim_piece){begin_s, power_w, sum_j};
}

/* Last piece that begins at or before t; readings ask in order, so from near the last answer. */
static size_t find_piece(const struct sim_machine *m, double t_s)
{
    size_t low = 0, high = m->n_pieces;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        *(m->pieces[middle].begin_s <= t_s ? &low : &high) = middle;
    }
    return low;
}

static double energy_until(const struct sim_machine *m, double t_s)
{
    const struct sim_piece *p = &m->pieces[find_piece(m, t_s)];
    return p->sum_j + p->power_w * (t_s - p->begin_s);
}

static int64_t stamp(const struct sim_machine *m, double t_s, double resolution_s)
{
    double t_ns = t_s * 1e9, grain_ns = fmax(resolution_s * 1e9, 1);
    return m->start_ns + (int64_t)llround(round(t_ns / grain_ns) * grain_ns);
}

static void make_layers(struct sim_machine *m)
{
    struct sim_options *o = &m->options;
    o->idle_w *= 0.95 + 0.1 * uniform(m); /* else it may fit the sensor's steps by chance */
    for (size_t i = 0; i < o->layers; i++) {
        m->nominal_s[i] = o->shortest_s * pow(o->longest_s / o->shortest_s, uniform(m));
        m->power_w[i] = o->low_w + (o->high_w - o->low_w) * uniform(m);
    }
    for (size_t i = 0; i < o->twins && 2 * i + 1 < o->layers; i++)
        m->nominal_s[2 * i + 1] = 2 * m->nominal_s[2 * i];
}

static double call_s(struct sim_machine *m, size_t layer, double twin_scale, double *scale)
{
    const struct sim_options *o = &m->options;
    *scale = fmax(1 + o->jitter * gauss(m), LEAST_SCALE);
    if (layer % 2 && layer / 2 < o->twins)
        *scale = twin_scale;
    /* Whole ns, so that stamps without rounding are exact. */
    return round(m->nominal_s[layer] * *scale * 1e9) / 1e9;
}

static double run_step(struct sim_machine *m, size_t step, double t_s)
{
    const struct sim_options *o = &m->options;
    double scale = 1, hot = 1 + o->drift * ((double)step / (double)o->steps - 0.5);
    for (size_t i = 0; i < o->layers; i++) {
        if (i >= o->layers - o->seldom && step % SELDOM_STEPS)
            continue;
        double s = call_s(m, i, scale, &scale);
        add_piece(m, t_s, o->idle_w + m->power_w[i] * hot);
        m->energy_j[i] += m->power_w[i] * hot * s;
        m->time_s[i] += s;
        m->calls[m->n_calls++] = (struct sim_call){stamp(m, t_s, o->span_stamp_s),
                                                   stamp(m, t_s + s, o->span_stamp_s), (uint32_t)i};
        t_s += s;
    }
    double gap_s = o->gap_s * fmax(1 + o->jitter * gauss(m), LEAST_SCALE);
    if (o->gap_s > 0)
        add_piece(m, t_s, o->idle_w);
    return t_s + round(gap_s * 1e9) / 1e9;
}

struct sensor {
    double t_s;       /* of the state */
    double phase_s;   /* of the first update */
    double updates;   /* so far: moments are counted, sums of periods would drift */
    double average_w; /* of a running average */
    double shown_j, noise_j, last_j, last_w;
};

/* Running average, exactly, piece by piece. */
static void average_until(const struct sim_machine *m, struct sensor *s, double t_s)
{
    for (size_t i = find_piece(m, s->t_s); s->t_s < t_s; i++) {
        double end_s = i + 1 < m->n_pieces ? fmin(m->pieces[i + 1].begin_s, t_s) : t_s;
        double keep = exp(-(end_s - s->t_s) / m->options.memory_s);
        s->average_w = m->pieces[i].power_w + (s->average_w - m->pieces[i].power_w) * keep;
        s->t_s = end_s;
    }
}

/* Samples of the moment go into new = old + (sample - old) / N. */
static void filter_until(const struct sim_machine *m, struct sensor *s, double t_s)
{
    const struct sim_options *o = &m->options;
    double part = o->update_s / o->memory_s;
    for (; s->phase_s + s->updates * o->update_s <= t_s; s->updates++) {
        double now_w = m->pieces[find_piece(m, s->phase_s + s->updates * o->update_s)].power_w;
        s->average_w += (now_w - s->average_w) * part;
    }
}

static void update_counter(struct sim_machine *m, struct sensor *s, double t_s)
{
    double now_j = energy_until(m, t_s), step_j = now_j - s->last_j;
    s->noise_j += step_j * fmax(m->options.noise * gauss(m), -1);
    s->last_j = now_j;
    s->shown_j = now_j + s->noise_j;
}

/* A counter adds noise to every update, and shows the last one. */
static double counter_j(struct sim_machine *m, struct sensor *s, double t_s)
{
    const struct sim_options *o = &m->options;
    if (!(o->update_s > 0))
        update_counter(m, s, t_s);
    else
        for (; s->phase_s + s->updates * o->update_s <= t_s; s->updates++)
            update_counter(m, s, s->phase_s + s->updates * o->update_s);
    return s->shown_j;
}

static double gauge_w(struct sim_machine *m, struct sensor *s, double t_s)
{
    const struct sim_options *o = &m->options;
    double now_j;
    switch (o->sensor) {
    case SIM_MEAN:
        now_j = energy_until(m, t_s);
        if (t_s > s->t_s)
            s->last_w = (now_j - s->last_j) / (t_s - s->t_s);
        s->last_j = now_j;
        s->t_s = t_s;
        return s->last_w;
    case SIM_AVERAGE:
        average_until(m, s, t_s);
        return s->average_w;
    case SIM_FILTER:
        filter_until(m, s, t_s);
        return s->average_w;
    case SIM_WINDOW:
        return (energy_until(m, t_s) - energy_until(m, fmax(t_s - o->memory_s, 0))) /
               fmin(o->memory_s, fmax(t_s, 1e-9));
    default:
        return m->pieces[find_piece(m, t_s)].power_w;
    }
}

static int64_t reading(struct sim_machine *m, struct sensor *s, double t_s)
{
    const struct sim_options *o = &m->options;
    if (o->sensor == SIM_COUNTER) {
        int64_t raw = (int64_t)floor(counter_j(m, s, t_s) / o->quantum);
        return o->wrap_j > 0 ? raw % (int64_t)llround(o->wrap_j / o->quantum) : raw;
    }
    double w = gauge_w(m, s, t_s) * fmax(1 + o->noise * gauss(m), 0);
    return (int64_t)llround(w / o->quantum);
}

static void read_sensor(struct sim_machine *m)
{
    const struct sim_options *o = &m->options;
    size_t room = (size_t)(m->end_s / o->period_s) + 2;
    struct sensor s = {.average_w = o->idle_w, .phase_s = o->update_s * uniform(m)};
    m->readings = must(calloc(room, sizeof *m->readings));
    for (size_t i = 0; i < room; i++) {
        double t_s = (double)i * o->period_s + o->read_jitter_s * uniform(m);
        if (t_s >= m->end_s)
            break;
        int64_t raw = reading(m, &s, t_s);
        double stamp_s = t_s + o->stamp_jitter_s * gauss(m);
        int64_t t_ns = stamp(m, stamp_s, o->stamp_s);
        if (m->n_readings && t_ns <= m->readings[m->n_readings - 1].t_ns)
            continue;
        m->readings[m->n_readings++] = (struct sim_reading){t_ns, raw};
    }
}

void sim_run(struct sim_machine *m, const struct sim_options *options)
{
    *m = (struct sim_machine){.options = *options, .random = options->seed * 7919 + 17};
    size_t n = options->layers;
    m->start_ns = 1700000000LL * 1000000000LL;
    m->energy_j = must(calloc(4 * n, sizeof *m->energy_j));
    m->time_s = m->energy_j + n;
    m->nominal_s = m->time_s + n;
    m->power_w = m->nominal_s + n;
    m->calls = must(calloc(n * options->steps + 1, sizeof *m->calls));
    make_layers(m);
    double t_s = round(options->gap_s * uniform(m) * 1e9) / 1e9;
    add_piece(m, 0, m->options.idle_w);
    for (size_t step = 0; step < options->steps; step++)
        t_s = run_step(m, step, t_s);
    add_piece(m, t_s, m->options.idle_w);
    m->end_s = t_s;
    m->total_j = energy_until(m, t_s);
    m->idle_j = m->options.idle_w * t_s;
    read_sensor(m);
}

void sim_release(struct sim_machine *m)
{
    free(m->energy_j);
    free(m->calls);
    free(m->readings);
    free(m->pieces);
    *m = (struct sim_machine){0};
}
