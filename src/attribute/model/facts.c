/* See facts.h. */
#include "attribute/model/facts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

/* A counter that updates faster than this is read as its sum over so many updates: single updates
 * jitter, and more rows than that tell nothing more of spans. (ATTRIBUTION.md, "Rows".) */
#define QUICK_UPDATE_S 0.02
#define MERGED_UPDATES 10

static double seconds(const struct nrg_facts *f, int64_t t_ns)
{
    return (double)(t_ns - f->origin_ns) * 1e-9;
}

/* Every so many readings are one. */
static size_t stride_of(const struct nrg_facts *f)
{
    if (f->is_gauge || !(f->update_s > 0) || f->update_s >= QUICK_UPDATE_S || !(f->period_s > 0))
        return 1;
    double k = round(MERGED_UPDATES * f->update_s / f->period_s);
    return k > 1 ? (size_t)k : 1;
}

static int take_stretch(struct nrg_facts *f, const struct nrg_timeline *tl,
                        const struct nrg_span_ns *time)
{
    size_t from = nrg_timeline_below(tl, time->begin_ns), to = nrg_timeline_up_to(tl, time->end_ns);
    size_t n = to > from ? to - from : 0, stride = stride_of(f), first = f->n;
    bool gap = false;
    for (size_t i = 1; i < n; i++) { /* the first one may be older than that time */
        struct nrg_reading_point point = nrg_point_at(tl, from + i);
        bool at_gap = point.gap || gap;
        gap = point.gap;
        if (i % stride != 1 % stride && i + 1 < n && !at_gap)
            continue;
        f->t_s[f->n] = seconds(f, point.t_ns);
        f->value[f->n] = f->is_gauge ? point.gauge : point.sum_j;
        f->gap[f->n++] = point.gap;
    }
    if (f->n > first)
        f->gap[f->n - 1] = true;
    return f->n > first + 2 ? 0 : -ENODATA;
}

static int make_room(struct nrg_facts *f, size_t n)
{
    f->t_s = nrg_arena_array(&f->memory, n + 1, sizeof *f->t_s);
    f->value = nrg_arena_array(&f->memory, n + 1, sizeof *f->value);
    f->gap = nrg_arena_array(&f->memory, n + 1, sizeof *f->gap);
    return f->memory.failed ? -ENOMEM : 0;
}

static double mean_power(const struct nrg_facts *f, size_t first)
{
    double sum = 0;
    if (!f->is_gauge)
        return (f->value[f->n - 1] - f->value[first]) / (f->t_s[f->n - 1] - f->t_s[first]);
    for (size_t i = first; i < f->n; i++)
        sum += f->value[i];
    return sum / (double)(f->n - first);
}

static int take_readings(struct nrg_facts *f, const struct nrg_regress_options *o,
                         const struct nrg_span_ns *baselines, size_t n)
{
    struct nrg_span_ns run = {o->begin_ns, o->end_ns}; /* but for cells that are not whole */
    run.begin_ns = o->first_whole_ns > run.begin_ns ? o->first_whole_ns : run.begin_ns;
    if (o->last_whole_ns && o->last_whole_ns < run.end_ns)
        run.end_ns = o->last_whole_ns;
    size_t i = 0;
    int rc = make_room(f, o->timeline->n);
    for (; !rc && i < n && baselines[i].end_ns <= run.begin_ns; i++)
        take_stretch(f, o->timeline, &baselines[i]);
    size_t first = f->n;
    if (!rc)
        rc = take_stretch(f, o->timeline, &run);
    if (rc)
        return rc;
    f->run_begin_s = f->t_s[first];
    f->run_end_s = f->t_s[f->n - 1];
    f->mean_w = mean_power(f, first);
    for (; i < n; i++)
        if (baselines[i].begin_ns >= run.end_ns)
            take_stretch(f, o->timeline, &baselines[i]);
    f->begin_s = f->t_s[0];
    f->end_s = f->t_s[f->n - 1];
    return f->mean_w > 0 ? 0 : -ENODATA;
}

int nrg_facts_init(struct nrg_facts *f, const struct nrg_regress_options *o,
                   const struct nrg_span_ns *baselines, size_t n_baselines)
{
    const struct nrg_timeline *tl = o->timeline;
    *f = (struct nrg_facts){.is_gauge = tl->is_gauge,
                            .step = o->channel->resolution,
                            .idle_w = o->idle_w,
                            .idle_error_w = o->idle_error_w,
                            .n_classes = o->n_classes,
                            .others_class = o->others_class,
                            .spans = o->spans,
                            .origin_ns = o->begin_ns};
    f->update_s = (double)(tl->update_ns ? tl->update_ns : tl->period_ns) * 1e-9;
    f->period_s = (double)tl->period_ns * 1e-9;
    f->classes = nrg_arena_array(&f->memory, o->n_classes + 1, sizeof *f->classes);
    return f->memory.failed ? -ENOMEM : take_readings(f, o, baselines, n_baselines);
}

int nrg_facts_add(struct nrg_facts *f, const struct nrg_class_activity *a)
{
    struct nrg_fact_slice slice = {.begin_s = seconds(f, a->begin_ns),
                                   .end_s = seconds(f, a->end_ns),
                                   .class_ = (uint32_t)a->class_,
                                   .rate = (float)a->rate,
                                   .calls = (float)a->calls,
                                   .unsure2 = (float)a->unsure2};
    if (a->class_ >= f->n_classes || !(slice.end_s > slice.begin_s))
        return 0;
    return nrg_append(&f->slices, &f->n_slices, &f->cap_slices, &slice, sizeof slice);
}

void nrg_facts_finish(struct nrg_facts *f)
{
    for (size_t i = 0; i < f->n_slices; i++) {
        const struct nrg_fact_slice *s = &f->slices[i];
        struct nrg_fact_class *c = &f->classes[s->class_];
        double work_s = (s->end_s - s->begin_s) * (double)s->rate;
        c->work_s += work_s;
        c->calls += (double)s->calls;
        c->middle_s += work_s * (s->begin_s + s->end_s) / 2;
    }
    for (size_t i = 0; i < f->n_classes; i++) {
        struct nrg_fact_class *c = &f->classes[i];
        c->middle_s = c->work_s > 0 ? c->middle_s / c->work_s : 0;
        c->call_s = c->calls > 0 ? c->work_s / c->calls : 0;
    }
}

void nrg_facts_release(struct nrg_facts *f)
{
    free(f->slices);
    nrg_arena_release(&f->memory);
    *f = (struct nrg_facts){0};
}
