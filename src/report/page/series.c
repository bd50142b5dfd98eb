/*
 * Channels over time, in equal steps: power of the domains, load, memory, temperatures, clocks; and
 * the CPU time of the processes, by which the page shares out a selection between them. A step
 * without a reading is NAN: a gap.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/json/set.h"
#include "energy/bins.h"
#include "report/page/internal.h"

#define MOST_STEPS     4000
#define MOST_CHANNELS  40
#define MOST_PROCESSES 24

struct series {
    struct nrg_page_data *d;
    size_t channels[MOST_CHANNELS], n_channels; /* numbers in the recording */
    float *values;                              /* [channel * n + step] */
    int64_t begin_ns, period_ns;
    size_t n;
    const struct nrg_process_info *processes[MOST_PROCESSES];
    size_t n_processes;
    float *cpu_s; /* [process * n + step] */
};

static bool is_domain(const struct nrg_summary *s, const struct nrg_recorded_channel *c)
{
    for (size_t i = 0; i < s->n_domains; i++)
        if (s->domains[i].channel == c)
            return true;
    return false;
}

/* Domains, and what tells of load and heat; a second way to say a domain's power is not shown. */
static bool is_shown(const struct nrg_summary *s, const struct nrg_recorded_channel *c)
{
    switch (c->channel.quantity) {
    case NRG_UTILISATION:
    case NRG_BYTES:
    case NRG_CLOCK:
    case NRG_TEMPERATURE:
        return strcmp(c->channel.name, "memory.total") != 0;
    case NRG_SECONDS:
        return !strcmp(c->channel.name, "cpu.busy");
    default:
        return is_domain(s, c);
    }
}

static json_t *channel_json(const struct nrg_summary *s, const struct nrg_recorded_channel *c)
{
    json_t *o = json_object();
    nrg_json_text(o, "name", c->channel.name);
    nrg_json_text(o, "parent", c->channel.parent);
    nrg_json_text(o, "quantity", nrg_quantity_name(c->channel.quantity));
    nrg_json_text(o, "provenance", nrg_provenance_name(c->channel.provenance));
    nrg_json_text(o, "driver", c->driver);
    bool in_total = false;
    for (size_t i = 0; i < s->n_domains; i++)
        in_total |= s->domains[i].channel == c && s->domains[i].in_total;
    json_object_set_new(o, "in_total", json_boolean(in_total));
    json_object_set_new(o, "domain", json_boolean(is_domain(s, c)));
    return o;
}

static json_t *choose_channels(struct series *s)
{
    size_t n;
    const struct nrg_summary *summary = &s->d->run->attribution->summary;
    const struct nrg_recorded_channel *channels = nrg_recording_channels(s->d->run->recording, &n);
    json_t *list = json_array();
    for (int domains = 1; domains >= 0; domains--) /* these come first */
        for (size_t i = 0; i < n && s->n_channels < MOST_CHANNELS; i++)
            if (is_domain(summary, &channels[i]) == domains && is_shown(summary, &channels[i])) {
                s->channels[s->n_channels++] = i;
                json_array_append_new(list, channel_json(summary, &channels[i]));
            }
    return list;
}

/* Those that the report lists first. */
static void choose_processes(struct series *s)
{
    const struct nrg_summary *run = &s->d->run->report->runs[0];
    for (size_t i = 0; i < run->n_processes && s->n_processes < MOST_PROCESSES; i++)
        s->processes[s->n_processes++] = run->processes[i].info;
}

static int on_bin(void *arg, const struct nrg_bin *bin)
{
    struct series *s = arg;
    size_t k = (size_t)((bin->begin_ns - s->begin_ns) / s->period_ns);
    if (k >= s->n)
        return 0;
    for (size_t i = 0; i < s->n_channels; i++)
        s->values[i * s->n + k] = (float)nrg_bin_mean(&bin->cells[s->channels[i]]);
    for (size_t i = 0; i < bin->n_processes; i++)
        for (size_t p = 0; p < s->n_processes; p++)
            if (bin->processes[i].info == s->processes[p])
                s->cpu_s[p * s->n + k] += (float)bin->processes[i].cpu_s;
    return 0;
}

/* Steps that whole buckets are made of. */
static void set_steps(struct series *s)
{
    const struct nrg_attribution_buckets *b = s->d->run->attribution->buckets;
    int64_t duration_ns = b->edges_ns[b->n], width_ns = b->n > 1 ? b->edges_ns[1] : duration_ns;
    static const int64_t parts[] = {100, 50, 20, 10, 5, 2, 1};
    size_t i = 0;
    while (parts[i] > 1 && (width_ns % parts[i] || width_ns / parts[i] < NRG_NS_PER_MS ||
                            duration_ns / (width_ns / parts[i]) > MOST_STEPS))
        i++;
    s->period_ns = width_ns / parts[i] > 0 ? width_ns / parts[i] : 1;
    s->n = (size_t)((duration_ns + s->period_ns - 1) / s->period_ns);
    s->begin_ns = s->d->run->attribution->summary.begin_ns;
}

int nrg_page_series(struct nrg_page_data *d, struct nrg_error *err)
{
    struct series s = {.d = d};
    const struct nrg_attribution_buckets *b = d->run->attribution->buckets;
    set_steps(&s);
    json_t *list = choose_channels(&s);
    choose_processes(&s);
    s.values = nrg_arena_array(&d->memory, s.n_channels * s.n + 1, sizeof *s.values);
    s.cpu_s = nrg_arena_array(&d->memory, s.n_processes * s.n + 1, sizeof *s.cpu_s);
    for (size_t i = 0; s.values && i < s.n_channels * s.n; i++)
        s.values[i] = NAN;
    struct nrg_span_ns run = {s.begin_ns, s.begin_ns + b->edges_ns[b->n]};
    const struct nrg_bins_options options = {
        .spans = &run, .n_spans = 1, .period_ns = s.period_ns, .processes = true};
    json_object_set_new(d->head, "channels", list);
    json_object_set_new(d->head, "series",
                        json_pack("{s:I, s:I, s:I}", "n", (json_int_t)s.n, "period_ns",
                                  (json_int_t)s.period_ns, "processes", (json_int_t)s.n_processes));
    nrg_page_array(d, "series", "f4", s.values, s.n_channels * s.n);
    nrg_page_array(d, "process_cpu_s", "f4", s.cpu_s, s.n_processes * s.n);
    if (d->memory.failed)
        return -ENOMEM;
    return nrg_bins_make(d->run->recording, &options, on_bin, &s, err);
}
