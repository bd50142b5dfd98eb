/* The states of GPUs (states.c) as spans, for the engine: see internal.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/waiting/internal.h"
#include "base/mem.h"

/* Names of the made spans: those of the kinds, some more, those of kernels, then the devices'. */
enum {
    NAME_OF_KIND = 1,
    NAME_WAITING = NAME_OF_KIND + NRG_WAIT_KINDS,
    NAME_OVER_COLLECTIVE,
    NAME_OVER_COPY,
    NAME_OF_KERNEL
};

static int add_name(struct nrg_span_catalog *c, const char *kind, const char *text)
{
    struct nrg_span_name name = {.id = (int64_t)c->n_names + 1, .text = strdup(text)};
    nrg_copy(name.kind, sizeof name.kind, kind);
    int rc =
        name.text ? nrg_append(&c->names, &c->n_names, &c->cap_names, &name, sizeof name) : -ENOMEM;
    if (rc)
        free(name.text);
    return rc;
}

int nrg_states_catalog(const struct nrg_states *s, struct nrg_span_catalog *c)
{
    int rc = 0;
    *c = (struct nrg_span_catalog){0};
    for (int kind = 0; !rc && kind < NRG_WAIT_KINDS; kind++)
        rc = add_name(c, "state", nrg_wait_kind_name((enum nrg_wait_kind)kind));
    if (!rc)
        rc = add_name(c, "state", NRG_WAITING_NAME);
    if (!rc)
        rc = add_name(c, "state", "over a collective");
    if (!rc)
        rc = add_name(c, "state", "over a copy");
    for (size_t i = 0; !rc && i < s->n_kernels; i++) {
        char text[32];
        snprintf(text, sizeof text, "kernel %zu", i + 1);
        rc = add_name(c, "state", text);
    }
    for (size_t d = 0; !rc && d < s->n_devices; d++) {
        struct nrg_span_track track = {.id = (int64_t)d + 1, .kind = "gpu"};
        nrg_copy(track.domain, sizeof track.domain, s->devices[d].domain);
        nrg_copy(track.name, sizeof track.name, s->devices[d].domain);
        rc = add_name(c, "device", s->devices[d].domain);
        if (!rc)
            rc = nrg_append(&c->tracks, &c->n_tracks, &c->cap_tracks, &track, sizeof track);
    }
    if (rc)
        nrg_span_catalog_release(c);
    return rc;
}

static void put(struct nrg_states *s, const struct nrg_state_change *c, enum nrg_span_event event,
                int64_t name)
{
    s->queue[s->queued++] = (struct nrg_span_row){.t_ns = c->t_ns,
                                                  .track = (int64_t)c->device + 1,
                                                  .name = name,
                                                  .value = NRG_MISSING,
                                                  .parent = NRG_MISSING,
                                                  .event = event};
}

/* The names of the spans that a state is, from the outside in; how many. */
static size_t spans_of(const struct nrg_states *s, uint8_t state, uint32_t device, int64_t names[3])
{
    size_t n = 0;
    if (state == NRG_STATE_OUTSIDE)
        return 0;
    names[n++] = NAME_OF_KERNEL + (int64_t)(s->n_kernels + device);
    if (state > NRG_WAIT_NOT && state < NRG_WAIT_KINDS)
        names[n++] = NAME_WAITING;
    bool over = state == NRG_STATE_OVER_COLLECTIVE || state == NRG_STATE_OVER_COPY;
    bool kernel = state >= NRG_STATE_OF_KERNEL;
    if (over || kernel)
        names[n++] = NAME_OF_KIND + NRG_WAIT_NOT;
    if (kernel)
        names[n++] = NAME_OF_KERNEL + (state - NRG_STATE_OF_KERNEL);
    if (over)
        names[n++] = NAME_OVER_COLLECTIVE + (state - NRG_STATE_OVER_COLLECTIVE);
    else if (state != NRG_STATE_UNTOLD && !kernel)
        names[n++] = NAME_OF_KIND + state;
    return n;
}

/* The ends and begins that a change is: what both states have in common stays open. */
static void expand(struct nrg_states *s, const struct nrg_state_change *c)
{
    int64_t was[3] = {0}, is[3] = {0};
    size_t n_was = spans_of(s, s->shown[c->device], c->device, was);
    size_t n_is = spans_of(s, c->state, c->device, is), same = 0;
    while (same < n_was && same < n_is && was[same] == is[same])
        same++;
    s->queued = s->taken = 0;
    while (n_was > same)
        put(s, c, NRG_SPAN_END, was[--n_was]);
    for (size_t i = same; i < n_is; i++)
        put(s, c, NRG_SPAN_BEGIN, is[i]);
    s->shown[c->device] = c->state;
}

static int next_row(void *arg, struct nrg_span_row *row)
{
    struct nrg_states *s = arg;
    while (s->taken == s->queued) {
        if (s->at == s->n)
            return 0;
        expand(s, &s->changes[s->at++]);
    }
    *row = s->queue[s->taken++];
    return 1;
}

static void rewind_rows(void *arg)
{
    struct nrg_states *s = arg;
    s->at = s->queued = s->taken = 0;
    for (size_t d = 0; d < s->n_devices; d++)
        s->shown[d] = NRG_STATE_OUTSIDE;
}

struct nrg_span_source nrg_states_source(struct nrg_states *s)
{
    return (struct nrg_span_source){next_row, rewind_rows, s};
}
