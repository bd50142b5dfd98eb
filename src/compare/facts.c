/*
 * How a run was made, as texts that both sides should have in common; see side.h. What a recording
 * does not say is "", so that recordings of older versions differ from newer ones only in that, and
 * a warning shows it as "not known".
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attribute/attribution.h"
#include "base/mem.h"
#include "compare/internal.h"
#include "energy/timeline.h"

/* Notes by which people say what a program worked on. */
static const char *const input_notes[] = {"input", "dataset", "data", "model", "batch_size"};

const char *nrg_compare_keep(struct nrg_compare_side *side, const char *text)
{
    const char *kept = text ? nrg_arena_copy(&side->arena, text, strlen(text)) : "";
    return kept ? kept : "";
}

static const char *keep_built(struct nrg_compare_side *side, struct nrg_str *text)
{
    const char *kept = nrg_compare_keep(side, text->text);
    nrg_str_release(text);
    return kept;
}

static const char *sensors_of(struct nrg_compare_side *side, const struct nrg_summary *s)
{
    struct nrg_str text = {0};
    for (size_t i = 0; i < s->n_domains; i++) {
        const struct nrg_domain *d = &s->domains[i];
        if (d->in_total)
            nrg_str_addf(&text, "%s%s by %s", text.len ? ", " : "", d->channel->channel.name,
                         d->channel->driver);
    }
    return keep_built(side, &text);
}

/* The processors' limits as the kernel told them, and those of GPUs, which their channels have. */
static const char *limits_of(struct nrg_compare_side *side, const struct nrg_recording *recording)
{
    struct nrg_str text = {0};
    size_t n;
    const struct nrg_recorded_channel *channels = nrg_recording_channels(recording, &n);
    const char *processors = nrg_recording_text(recording, "power_limits");
    if (processors)
        nrg_str_addf(&text, "%s", processors);
    for (size_t i = 0; i < n; i++) {
        const struct nrg_channel *c = &channels[i].channel;
        if (c->quantity == NRG_POWER && c->limit_w > 0 && !strncmp(c->name, "gpu-", 4))
            nrg_str_addf(&text, "%s%s %.4g W", text.len ? ", " : "", c->name, c->limit_w);
    }
    return keep_built(side, &text);
}

static const char *input_of(struct nrg_compare_side *side, const struct nrg_recording *recording)
{
    struct nrg_str text = {0};
    char key[32];
    for (size_t i = 0; i < sizeof input_notes / sizeof *input_notes; i++) {
        snprintf(key, sizeof key, "note.%s", input_notes[i]);
        const char *value = nrg_recording_text(recording, key);
        if (value && !(side->by && !strcmp(side->by, input_notes[i])))
            nrg_str_addf(&text, "%s%s=%s", text.len ? ", " : "", input_notes[i], value);
    }
    return keep_built(side, &text);
}

static const char *parameters_of(struct nrg_compare_side *side,
                                 const struct nrg_recording *recording)
{
    char number[32];
    int64_t params;
    if (nrg_recording_integer(recording, "model_params", &params))
        return "";
    snprintf(number, sizeof number, "%lld", (long long)params);
    return nrg_compare_keep(side, number);
}

void nrg_compare_facts(struct nrg_compare_side *side, struct nrg_compare_run *run,
                       const struct nrg_recording *recording, const struct nrg_summary *s)
{
    static const char *const keys[NRG_FACTS] = {
        [NRG_FACT_HOST] = "host",           [NRG_FACT_CPU] = "cpu",
        [NRG_FACT_KERNEL] = "kernel",       [NRG_FACT_GOVERNOR] = "governor",
        [NRG_FACT_RATE] = "option.rate",    [NRG_FACT_CLOCK_LIMITS] = "clock_limits",
        [NRG_FACT_VERSION] = "nrg_version", [NRG_FACT_GPU_DRIVER] = "gpu_driver",
    };
    for (size_t i = 0; i < NRG_FACTS; i++)
        run->facts[i] =
            keys[i] ? nrg_compare_keep(side, nrg_recording_text(recording, keys[i])) : "";
    run->command = nrg_compare_keep(side, nrg_recording_text(recording, "command_line"));
    run->imported = nrg_recording_text(recording, "imported_from") != NULL;
    run->facts[NRG_FACT_SENSORS] = sensors_of(side, s);
    run->facts[NRG_FACT_POWER_LIMITS] = limits_of(side, recording);
    run->facts[NRG_FACT_INPUT] = input_of(side, recording);
    run->facts[NRG_FACT_PARAMETERS] = parameters_of(side, recording);
}

/* What was counted in all, wherever: the spans may have other names on the other side. */
void nrg_compare_work(struct nrg_compare_side *side, struct nrg_compare_run *run,
                      const struct nrg_attribution *a)
{
    struct nrg_str text = {0};
    double amount = 0;
    for (size_t i = 0; i < a->n_units; i++) {
        const struct nrg_unit_use *u = &a->units[i], *next = i + 1 < a->n_units ? u + 1 : NULL;
        if (strcmp(u->kind, NRG_KIND_COUNTER) != 0)
            continue;
        amount += u->amount;
        if (next && !strcmp(next->name, u->name)) /* they are in order of their names */
            continue;
        nrg_str_addf(&text, "%s%.0f %s", text.len ? ", " : "", amount, u->name);
        amount = 0;
    }
    run->facts[NRG_FACT_WORK] = keep_built(side, &text);
}

/* ---- clocks and temperatures while it ran ---- */

static double mean_gauge(struct nrg_recording *recording,
                         const struct nrg_recorded_channel *channel, const struct nrg_summary *s)
{
    struct nrg_timeline timeline = {0};
    int64_t covered_ns = 0;
    double sum = NAN;
    if (!nrg_timeline_load(&timeline, recording, channel))
        sum = nrg_timeline_between(&timeline, s->begin_ns, s->end_ns, &covered_ns);
    nrg_timeline_release(&timeline);
    return covered_ns > 0 ? sum / ((double)covered_ns * 1e-9) : NAN;
}

void nrg_compare_clocks(struct nrg_compare_run *run, struct nrg_recording *recording,
                        const struct nrg_summary *s)
{
    double sums[NRG_COMPARE_CLOCKS] = {0}, n[NRG_COMPARE_CLOCKS] = {0};
    size_t n_channels;
    const struct nrg_recorded_channel *channels = nrg_recording_channels(recording, &n_channels);
    run->temperature_c = NAN;
    for (size_t i = 0; i < n_channels; i++) {
        const struct nrg_channel *c = &channels[i].channel;
        const char *suffix = strrchr(c->name, '.');
        bool gpu = !strncmp(c->name, "gpu-", 4) && suffix && !strcmp(suffix, ".sm-clock");
        if (c->quantity == NRG_TEMPERATURE)
            run->temperature_c = fmax(run->temperature_c, mean_gauge(recording, &channels[i], s));
        if (c->quantity != NRG_CLOCK || (!gpu && strcmp(c->name, "cpu.clock") != 0))
            continue;
        double hz = mean_gauge(recording, &channels[i], s);
        if (isfinite(hz) && hz > 0) {
            sums[gpu ? NRG_COMPARE_GPU : NRG_COMPARE_CPU] += hz;
            n[gpu ? NRG_COMPARE_GPU : NRG_COMPARE_CPU]++;
        }
    }
    for (int i = 0; i < NRG_COMPARE_CLOCKS; i++)
        run->clock_hz[i] = n[i] > 0 ? sums[i] / n[i] : NAN;
}
