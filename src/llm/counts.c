/*
 * See counts.h. Between two readings the number of sequences is the mean of both; where it changed,
 * nobody knows when: the variance of that is kept with the slot (uniform, per sequence).
 */
#include "llm/counts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"

#define LONG_SLOT  5   /* times the median distance of readings: nobody answered in between */
#define LUMPY      0.5 /* of the readings at which sequences ran and no token was counted */
#define MOST_LUMPS 10
#define FEW        10   /* readings, to judge that */
#define UNIFORM    12.0 /* variance of a uniform time in an interval: its square over this */

struct columns {
    struct nrg_server_counts *counts;
    const struct nrg_recorded_channel *of[NRG_SERVER_COUNTS];
    int64_t begin_ns, end_ns;
};

static double cell(const struct nrg_rows *rows, const struct nrg_recorded_channel *c, size_t row)
{
    if (!c || c->column >= rows->n_columns)
        return NAN;
    int64_t raw = nrg_rows_column(rows, c->column)[row];
    double value = raw == NRG_MISSING ? NAN : (double)raw * c->channel.scale;
    return value >= 0 ? value : NAN;
}

static int take_rows(void *arg, const struct nrg_rows *rows)
{
    struct columns *columns = arg;
    struct nrg_server_counts *counts = columns->counts;
    for (size_t i = 0; i < rows->n; i++) {
        struct nrg_server_reading r = {.t_ns = rows->t_ns[i]};
        bool later = !counts->n || r.t_ns > counts->readings[counts->n - 1].t_ns;
        if (!later || r.t_ns < columns->begin_ns || r.t_ns > columns->end_ns)
            continue;
        for (size_t c = 0; c < NRG_SERVER_COUNTS; c++)
            r.value[c] = cell(rows, columns->of[c], i);
        if (isnan(r.value[NRG_SERVER_OUTPUT_TOKENS]))
            continue;
        if (nrg_append(&counts->readings, &counts->n, &counts->cap, &r, sizeof r))
            return -ENOMEM;
    }
    return 0;
}

static void find_family(struct nrg_server_counts *counts, const struct nrg_recording *recording)
{
    size_t n;
    const struct nrg_event *events = nrg_recording_events(recording, &n);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(events[i].kind, "server"))
            nrg_copy(counts->family, sizeof counts->family, events[i].detail);
}

int nrg_server_counts_read(struct nrg_server_counts *counts, struct nrg_recording *recording,
                           int64_t begin_ns, int64_t end_ns)
{
    struct columns columns = {.counts = counts, .begin_ns = begin_ns, .end_ns = end_ns};
    size_t n;
    const struct nrg_recorded_channel *channels = nrg_recording_channels(recording, &n);
    *counts = (struct nrg_server_counts){0};
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < NRG_SERVER_COUNTS; c++)
            if (channels[i].channel.quantity == NRG_COUNT &&
                !strcmp(channels[i].channel.name, nrg_server_channel((enum nrg_server_count)c)))
                columns.of[c] = &channels[i];
    const struct nrg_recorded_channel *output = columns.of[NRG_SERVER_OUTPUT_TOKENS];
    if (!output)
        return 0;
    for (size_t c = 0; c < NRG_SERVER_COUNTS; c++)
        if (columns.of[c] && columns.of[c]->series != output->series)
            columns.of[c] = NULL;
    counts->asked = true;
    counts->url = output->channel.source;
    find_family(counts, recording);
    int rc = nrg_recording_read_series(recording, output->series, take_rows, &columns, NULL);
    if (rc == -ENOMEM) {
        nrg_server_counts_release(counts);
        return rc;
    }
    return 0; /* what can't be read is noted by the recording */
}

void nrg_server_counts_release(struct nrg_server_counts *counts)
{
    free(counts->readings);
    counts->readings = NULL;
    counts->n = counts->cap = 0;
}

double nrg_server_growth(const struct nrg_server_counts *counts, size_t from, size_t to,
                         enum nrg_server_count count)
{
    double growth = counts->readings[to].value[count] - counts->readings[from].value[count];
    return growth >= 0 ? growth : NAN;
}

/* Tokens of the output that a step made; where steps are not counted, one for each sequence. */
static double step_tokens(double steps, double running, double output)
{
    double tokens = steps > 0 ? output / steps : isnan(running) ? output : running;
    return fmin(tokens, output);
}

/* Adds what lies between two readings next to each other. False: a count went back. */
static bool add_interval(struct nrg_serving_slot *slot, const struct nrg_server_counts *counts,
                         size_t i)
{
    const struct nrg_server_reading *a = &counts->readings[i - 1], *b = &counts->readings[i];
    double length_s = (double)(b->t_ns - a->t_ns) / 1e9;
    double output = nrg_server_growth(counts, i - 1, i, NRG_SERVER_OUTPUT_TOKENS);
    double prompt = nrg_server_growth(counts, i - 1, i, NRG_SERVER_PROMPT_TOKENS);
    double cached = nrg_server_growth(counts, i - 1, i, NRG_SERVER_CACHED_TOKENS);
    bool counts_prompts =
        !isnan(a->value[NRG_SERVER_PROMPT_TOKENS]) || !isnan(b->value[NRG_SERVER_PROMPT_TOKENS]);
    if (isnan(output) || (counts_prompts && isnan(prompt)))
        return false;
    slot->amount[NRG_SERVING_OUTPUT] += output;
    if (!isnan(prompt))
        slot->amount[NRG_SERVING_PROMPT] += fmax(prompt - (isnan(cached) ? 0 : cached), 0);
    slot->amount[NRG_SERVING_IDLE] += length_s;
    double steps = nrg_server_growth(counts, i - 1, i, NRG_SERVER_STEPS);
    slot->steps += isnan(steps) ? 0 : steps;
    slot->output_step =
        fmax(slot->output_step, step_tokens(steps, b->value[NRG_SERVER_RUNNING], output));
    slot->prompt_step = fmax(slot->prompt_step, isnan(prompt) ? 0 : prompt);
    double before = a->value[NRG_SERVER_RUNNING], after = b->value[NRG_SERVER_RUNNING];
    if (isnan(before) || isnan(after))
        return true;
    double one = length_s * length_s / UNIFORM;
    bool turns = (before > 0) != (after > 0);
    slot->amount[NRG_SERVING_SEQUENCE] += (before + after) / 2 * length_s;
    slot->amount[NRG_SERVING_BUSY] += ((before > 0) + (after > 0)) / 2.0 * length_s;
    slot->sequence_s2 += fabs(after - before) * one;
    slot->busy_s2 += turns ? one : 0;
    slot->both_s2 += turns ? one : 0;
    return true;
}

static int64_t median_distance_ns(const struct nrg_server_counts *counts)
{
    enum { MOST = 512 }; /* from the beginning; the pace hardly changes */
    int64_t distance[MOST];
    size_t n = 0;
    for (size_t i = 1; i < counts->n && n < MOST; i++)
        distance[n++] = counts->readings[i].t_ns - counts->readings[i - 1].t_ns;
    return n ? nrg_median_i64(distance, n) : 0;
}

static bool may_end(const struct nrg_server_reading *r, double length_s, double lump_s)
{
    bool quiet = !(r->value[NRG_SERVER_RUNNING] > 0);
    return length_s >= (quiet ? lump_s : MOST_LUMPS * lump_s);
}

size_t nrg_server_slots(const struct nrg_server_counts *counts, size_t first, double lump_s,
                        struct nrg_serving_slot *slots)
{
    int64_t most_ns = LONG_SLOT * median_distance_ns(counts);
    struct nrg_serving_slot slot = {0};
    bool open = false;
    size_t n = 0;
    for (size_t i = first + 1; i < counts->n; i++) {
        int64_t from_ns = counts->readings[i - 1].t_ns, to_ns = counts->readings[i].t_ns;
        if (!open)
            slot = (struct nrg_serving_slot){.begin_ns = from_ns};
        open = to_ns - from_ns <= most_ns && add_interval(&slot, counts, i);
        if (!open || !may_end(&counts->readings[i], (double)(to_ns - slot.begin_ns) / 1e9, lump_s))
            continue;
        slot.end_ns = to_ns;
        slots[n++] = slot;
        open = false;
    }
    return n;
}

double nrg_server_lump_s(const struct nrg_server_counts *counts, size_t first)
{
    double ran = 0, silent = 0, lumps = 0, sequence_s = 0, finished = 0;
    for (size_t i = first + 1; i < counts->n; i++) {
        struct nrg_serving_slot slot = {0};
        if (!add_interval(&slot, counts, i))
            continue;
        bool runs = counts->readings[i - 1].value[NRG_SERVER_RUNNING] > 0 &&
                    counts->readings[i].value[NRG_SERVER_RUNNING] > 0;
        double done = nrg_server_growth(counts, i - 1, i, NRG_SERVER_FINISHED);
        if (runs && !(done > 0)) { /* nothing ended meanwhile that a lump could come from */
            ran++;
            silent += !(slot.amount[NRG_SERVING_OUTPUT] > 0);
        }
        lumps += slot.amount[NRG_SERVING_OUTPUT] > 0;
        sequence_s += slot.amount[NRG_SERVING_SEQUENCE];
        finished += isnan(done) ? 0 : done;
    }
    if (ran < FEW || silent < LUMPY * ran)
        return 0;
    double parts = fmax(finished, lumps);
    return parts > 0 ? sequence_s / parts : 0;
}
