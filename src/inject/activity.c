/* See inject/activity.h. */
#include "inject/activity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject/cupti_api.h"
#include "inject/inject.h"
#include "inject/waits.h"
#include "nrg/nrg.h"

#define FIRST_WORK 4096
#define MOST_WORK  (1u << 22) /* 128 MB: more waits only where nothing can be marked */

int nrg_activity_init(struct nrg_gpu_activity *a, int (*gpu_of)(uint32_t device))
{
    *a = (struct nrg_gpu_activity){.gpu_of = gpu_of};
    a->launches = calloc(NRG_LAUNCHES, sizeof *a->launches);
    a->syncs = calloc(NRG_SYNCS, sizeof *a->syncs);
    if (a->launches && a->syncs)
        return 0;
    nrg_activity_release(a);
    return -ENOMEM;
}

void nrg_activity_release(struct nrg_gpu_activity *a)
{
    free(a->work);
    free(a->later);
    free(a->launches);
    free(a->syncs);
    *a = (struct nrg_gpu_activity){0};
}

/* "GPU 0 stream 7"; other contexts than a device's first one are named. */
static uint32_t new_track_number(const struct nrg_gpu_activity *a,
                                 const struct nrg_activity_place *at)
{
    char name[80], domain[24];
    if (at->device == NRG_ACTIVITY_WAITS) {
        snprintf(name, sizeof name, "waits of thread %u", at->stream);
        return nrg_track_intern(name, "waits"); /* no sensor measures that */
    }
    int gpu = a->gpu_of(at->device);
    snprintf(domain, sizeof domain, "gpu-%d", gpu);
    int n = snprintf(name, sizeof name, "GPU %d stream %u", gpu, at->stream);
    for (size_t i = 0; i < a->n_tracks; i++)
        if (a->tracks[i].at.device == at->device) {
            if (a->tracks[i].at.context != at->context)
                snprintf(name + n, sizeof name - (size_t)n, " of context %u", at->context);
            break;
        }
    return nrg_track_intern(name, domain);
}

/* NRG_ACTIVITY_TRACKS: there is no room for another one. */
static size_t track_of(struct nrg_gpu_activity *a, const struct nrg_activity_place *at)
{
    for (size_t i = 0; i < a->n_tracks; i++)
        if (a->tracks[i].at.stream == at->stream && a->tracks[i].at.context == at->context &&
            a->tracks[i].at.device == at->device)
            return i;
    if (a->n_tracks == NRG_ACTIVITY_TRACKS)
        return NRG_ACTIVITY_TRACKS;
    a->tracks[a->n_tracks] = (struct nrg_activity_track){*at, new_track_number(a, at), 0};
    return a->n_tracks++;
}

static struct nrg_activity_work *room_for_work(struct nrg_gpu_activity *a)
{
    if (a->n < a->cap)
        return &a->work[a->n++];
    size_t cap = a->cap ? a->cap * 2 : FIRST_WORK;
    struct nrg_activity_work *grown =
        cap <= MOST_WORK ? realloc(a->work, cap * sizeof *grown) : NULL;
    if (!grown)
        return NULL;
    a->work = grown;
    a->cap = cap;
    return &a->work[a->n++];
}

static void add_work(struct nrg_gpu_activity *a, uint64_t start, uint64_t end, size_t track,
                     uint32_t correlation, uint32_t name)
{
    if (!start || end < start || end > INT64_MAX / 2) { /* CUPTI could not time it */
        a->n_timeless++;
        return;
    }
    struct nrg_activity_work *w = track != NRG_ACTIVITY_TRACKS ? room_for_work(a) : NULL;
    if (!w) {
        a->n_lost++;
        return;
    }
    *w = (struct nrg_activity_work){.begin_ns = (int64_t)start + a->offset_ns,
                                    .end_ns = (int64_t)end + a->offset_ns,
                                    .correlation = correlation,
                                    .name = name,
                                    .track = (uint16_t)track};
}

void nrg_activity_add(struct nrg_gpu_activity *a, const struct nrg_activity_place *place,
                      uint64_t start, uint64_t end, uint32_t correlation, uint32_t name)
{
    add_work(a, start, end, track_of(a, place), correlation, name);
}

static size_t waits_of(struct nrg_gpu_activity *a, uint32_t thread)
{
    return track_of(a, &(struct nrg_activity_place){NRG_ACTIVITY_WAITS, 0, thread});
}

void nrg_activity_call(struct nrg_gpu_activity *a, uint32_t thread, uint64_t start, uint64_t end,
                       uint32_t correlation, unsigned meaning)
{
    if (!correlation || end < start || end > INT64_MAX / 2 || meaning == NRG_CALL_ASKS)
        return;
    /* Its middle: spans begin and end outside of calls. */
    int64_t middle_ns = (int64_t)(start + (end - start) / 2) + a->offset_ns;
    nrg_launch_keep(
        a->launches,
        (struct nrg_launch){.correlation = correlation, .tid = (int32_t)thread, .t_ns = middle_ns});
    if (meaning >= NRG_CALL_WAITS)
        add_work(a, start, end, waits_of(a, thread), correlation, meaning);
}

static void take_call(struct nrg_gpu_activity *a, const struct nrg_cupti_call *call)
{
    nrg_activity_call(a, call->thread, call->start, call->end, call->correlation,
                      nrg_inject_call_meaning(call->kind, call->cbid));
}

static void take_sync(struct nrg_gpu_activity *a, const struct nrg_cupti_sync *sync)
{
    unsigned meaning = nrg_inject_sync_meaning(sync->type);
    if (meaning < NRG_CALL_WAITS || !sync->correlation)
        return;
    *nrg_sync_at(a->syncs, sync->correlation) = (struct nrg_sync){sync->correlation, sync->context};
    add_work(a, sync->start, sync->end, NRG_ACTIVITY_SYNC, sync->correlation, meaning);
}

void nrg_activity_take(struct nrg_gpu_activity *a, const void *record)
{
    const struct nrg_cupti_kernel *kernel = record;
    const struct nrg_cupti_copy *copy = record;
    const struct nrg_cupti_fill *fill = record;
    a->n_records++;
    switch (kernel->kind) {
    case NRG_CUPTI_KERNEL:
        nrg_activity_add(
            a, &(struct nrg_activity_place){kernel->device, kernel->context, kernel->stream},
            kernel->start, kernel->end, kernel->correlation, nrg_inject_kernel_name(kernel->name));
        break;
    case NRG_CUPTI_MEMCPY:
    case NRG_CUPTI_MEMCPY2:
        nrg_activity_add(
            a, &(struct nrg_activity_place){copy->device, copy->context, copy->stream}, copy->start,
            copy->end, copy->kind == NRG_CUPTI_MEMCPY ? copy->correlation : copy->peer_correlation,
            nrg_inject_copy_name(copy->copy_kind, copy->from, copy->to));
        break;
    case NRG_CUPTI_MEMSET:
        nrg_activity_add(a, &(struct nrg_activity_place){fill->device, fill->context, fill->stream},
                         fill->start, fill->end, fill->correlation, nrg_inject_fill_name());
        break;
    case NRG_CUPTI_DRIVER:
    case NRG_CUPTI_RUNTIME:
        take_call(a, record);
        break;
    case NRG_CUPTI_SYNC:
        take_sync(a, record);
        break;
    default:
        break;
    }
}

static int by_begin(const void *x, const void *y)
{
    const struct nrg_activity_work *a = x, *b = y;
    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns ? -1 : 1;
    return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

static bool is_in_order(const struct nrg_activity_work *work, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (by_begin(&work[i - 1], &work[i]) > 0)
            return false;
    return true;
}

/* The GPU that a call waited for, by the context of its record of synchronisation; -1: not known.
 */
static int awaited_gpu(const struct nrg_gpu_activity *a, uint32_t correlation)
{
    const struct nrg_sync *sync = nrg_sync_at(a->syncs, correlation);
    if (sync->correlation != correlation)
        return -1;
    for (size_t i = 0; i < a->n_tracks; i++)
        if (a->tracks[i].at.device != NRG_ACTIVITY_WAITS &&
            a->tracks[i].at.context == sync->context)
            return a->gpu_of(a->tracks[i].at.device);
    return -1;
}

/* A record of synchronisation inside of a call that waits says the same again, and so does the
 * driver's call inside of the runtime's. */
static void mark_wait(struct nrg_gpu_activity *a, const struct nrg_activity_work *w)
{
    const struct nrg_launch *launch = nrg_launch_find(a->launches, w->correlation);
    size_t at = w->track;
    if (at == NRG_ACTIVITY_SYNC)
        at = launch ? waits_of(a, (uint32_t)launch->tid) : NRG_ACTIVITY_TRACKS;
    if (at == NRG_ACTIVITY_TRACKS || w->begin_ns < a->tracks[at].end_ns)
        return;
    a->tracks[at].end_ns = w->end_ns;
    nrg_span_past_launched(nrg_inject_wait_name(w->name, awaited_gpu(a, w->correlation)),
                           a->tracks[at].number, w->begin_ns, w->end_ns, launch ? launch->tid : 0,
                           launch ? launch->t_ns : w->begin_ns);
}

static void mark_work(struct nrg_gpu_activity *a, const struct nrg_activity_work *w)
{
    if (w->track == NRG_ACTIVITY_SYNC || a->tracks[w->track].at.device == NRG_ACTIVITY_WAITS) {
        mark_wait(a, w);
        return;
    }
    const struct nrg_launch *launch = nrg_launch_find(a->launches, w->correlation);
    a->n_untied += !launch;
    a->n_marked++;
    nrg_span_past_launched(w->name, a->tracks[w->track].number, w->begin_ns, w->end_ns,
                           launch ? launch->tid : 0, launch ? launch->t_ns : w->begin_ns);
}

/* Moves what ended before a time to the front; how much it is. The order stays, so that there is
 * nothing to sort where records came in order; without memory for it, it does not. */
static size_t part_ended(struct nrg_gpu_activity *a, int64_t before_ns)
{
    size_t ended = 0, later = 0;
    if (a->cap_later < a->n) {
        struct nrg_activity_work *grown = realloc(a->later, a->cap * sizeof *grown);
        a->later = grown ? grown : a->later;
        a->cap_later = grown ? a->cap : a->cap_later;
    }
    bool stable = a->cap_later >= a->n;
    for (size_t i = 0; i < a->n; i++) {
        struct nrg_activity_work w = a->work[i];
        if (w.end_ns < before_ns) {
            if (!stable)
                a->work[i] = a->work[ended];
            a->work[ended++] = w;
        } else if (stable) {
            a->later[later++] = w;
        }
    }
    if (stable && later)
        memcpy(a->work + ended, a->later, later * sizeof *a->later);
    return ended;
}

size_t nrg_activity_mark(struct nrg_gpu_activity *a, int64_t before_ns, size_t most)
{
    size_t ended = part_ended(a, before_ns);
    if (!ended)
        return 0;
    if (!is_in_order(a->work, ended)) /* mostly it is */
        qsort(a->work, ended, sizeof *a->work, by_begin);
    ended = ended < most ? ended : most;
    for (size_t i = 0; i < ended; i++)
        mark_work(a, &a->work[i]);
    a->n -= ended;
    memmove(a->work, a->work + ended, a->n * sizeof *a->work);
    return ended;
}
