/* Tracks and names of a chrome trace's events (internal.h). */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "import/layers/internal.h"
#include "sensors/channel.h"

#define PROCESS "process"
#define THREAD  "thread"
#define LEGACY_GPU                                                                                 \
    "CUDA functions" /* the process of all GPUs in traces of the autograd profiler                 \
                      */

int32_t nrg_chrome_small_number(const char *text)
{
    int64_t number;
    return !nrg_parse_i64(text, strlen(text), &number) && number > 0 && number <= INT32_MAX
               ? (int32_t)number
               : 0;
}

static int make_key(char *key, size_t size, const char *kind, const char *pid, const char *tid)
{
    return snprintf(key, size, "%s%c%s%c%s", kind, 0, pid, 0, tid);
}

/* The track of (pid, tid), created when it first occurs. An index, or -errno. */
static int64_t track_of(struct nrg_chrome_tracks *t, struct nrg_span_sink *sink, const char *pid,
                        const char *tid, const struct nrg_span_track *first)
{
    char key[160];
    int len = make_key(key, sizeof key, first->kind, pid, tid);
    int64_t number = nrg_map_intern(&t->keys, key, (size_t)len);
    if (number < 0 || (size_t)number <= t->n)
        return number < 0 ? number : number - 1;
    if (nrg_reserve(&t->items, &t->cap, t->n + 1, sizeof *t->items))
        return -ENOMEM;
    struct nrg_chrome_track *track = &t->items[t->n];
    *track = (struct nrg_chrome_track){.track = *first};
    int64_t label = nrg_map_known(&t->label_keys, key, (size_t)len);
    if (label)
        nrg_copy(track->track.name, sizeof track->track.name, t->labels[label - 1]);
    track->id = nrg_span_sink_track(sink, &track->track);
    if (track->id < 0)
        return track->id;
    return (int64_t)t->n++;
}

/* The name of a process (tid "") or thread; "": none so far. */
static const char *label_of(const struct nrg_chrome_tracks *t, const char *kind, const char *pid,
                            const char *tid)
{
    char key[160];
    size_t len = (size_t)make_key(key, sizeof key, kind, pid, tid);
    int64_t label = nrg_map_known(&t->label_keys, key, len);
    return label > 0 ? t->labels[label - 1] : "";
}

/* A process without a name may be called by what stands for its number. */
static const char *process_label(const struct nrg_chrome_tracks *t, const char *pid)
{
    const char *label = label_of(t, PROCESS, pid, "");
    return label[0] ? label : pid;
}

int nrg_chrome_place(struct nrg_chrome_tracks *t, const struct nrg_chrome_event *e,
                     struct nrg_chrome_place *place)
{
    const char *process = process_label(t, e->pid);
    *place = (struct nrg_chrome_place){.line = NRG_LINE_WORK};
    if (nrg_map_intern(&t->by_name, e->pid, strlen(e->pid)) < 0)
        return -ENOMEM;
    if (!strcmp(e->pid, LEGACY_GPU)) { /* the thread is the number of the device */
        nrg_copy(place->device.family, sizeof place->device.family, "gpu");
        place->device.number = nrg_chrome_small_number(e->tid);
    } else if (nrg_trace_device(process, &place->device)) {
        place->line = nrg_trace_line(process, label_of(t, THREAD, e->pid, e->tid));
    }
    return 0;
}

/* Numbers of processes that XLA calls by a path are its own, not the system's. */
int64_t nrg_chrome_thread(struct nrg_chrome_tracks *t, struct nrg_span_sink *sink,
                          const struct nrg_chrome_event *e)
{
    const char *process = process_label(t, e->pid);
    bool invented = process[0] == '/';
    struct nrg_span_track track = {.kind = THREAD,
                                   .pid = invented ? 0 : nrg_chrome_small_number(e->pid),
                                   .tid = invented ? 0 : nrg_chrome_small_number(e->tid)};
    snprintf(track.name, sizeof track.name, "%.60s thread %.40s", invented ? process : e->pid,
             e->tid);
    return track_of(t, sink, e->pid, e->tid, &track);
}

static void name_stream(const struct nrg_chrome_tracks *t, const struct nrg_chrome_event *e,
                        enum nrg_trace_line line, char *stream, size_t size)
{
    const char *thread = label_of(t, THREAD, e->pid, e->tid);
    if (e->stream != NRG_MISSING)
        snprintf(stream, size, "stream %lld", (long long)e->stream);
    else if (line == NRG_LINE_DERIVED || line == NRG_LINE_WORK)
        snprintf(stream, size, "%s", thread[0] ? thread : e->tid);
    else
        snprintf(stream, size, "operators"); /* and what is around them, on one track */
}

int64_t nrg_chrome_stream(struct nrg_chrome_tracks *t, struct nrg_span_sink *sink,
                          const struct nrg_chrome_event *e, const struct nrg_chrome_place *place)
{
    struct nrg_span_track track = {.kind = "gpu"};
    char device[40], family[16], stream[48];
    long long number =
        e->device != NRG_MISSING && e->device >= 0 ? e->device : place->device.number;
    nrg_copy(family, sizeof family, place->device.family);
    name_stream(t, e, place->line, stream, sizeof stream);
    snprintf(device, sizeof device, "%s-%lld", family, number);
    nrg_copy(track.domain, sizeof track.domain, device);
    for (char *c = family; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    snprintf(track.name, sizeof track.name, "%s %lld %s", family, number, stream);
    int64_t index = track_of(t, sink, device, stream, &track);
    if (index >= 0)
        t->items[index].line = (uint8_t)place->line;
    return index;
}

bool *nrg_chrome_repeated(const struct nrg_chrome_tracks *t, const struct nrg_span_sink *sink)
{
    bool *repeated = nrg_calloc(sink->n_descriptions + 1, sizeof *repeated);
    for (size_t i = 0; repeated && i < t->n; i++) {
        const struct nrg_chrome_track *track = &t->items[i];
        for (size_t k = 0; track->line && k < t->n; k++)
            if (!strcmp(t->items[k].track.domain, track->track.domain) &&
                (t->items[k].line == NRG_LINE_WORK ||
                 (track->line == NRG_LINE_DERIVED && t->items[k].line != NRG_LINE_DERIVED)))
                repeated[track->id] = true;
    }
    return repeated;
}

static int64_t module_name(struct nrg_span_sink *sink, const char *text)
{
    const char *bar = strchr(text, '|'), *name = bar && bar[1] ? bar + 1 : text;
    char class[128];
    size_t len = bar ? (size_t)(bar - text) : strlen(text);
    /* "Conv2d_3": the number distinguishes objects of one class. */
    while (!bar && len && text[len - 1] >= '0' && text[len - 1] <= '9')
        len--;
    len -= !bar && len && text[len - 1] == '_' && text[len];
    nrg_copy_clean(class, sizeof class, text, len);
    size_t name_len = name == text && bar ? len : strlen(name);
    return nrg_span_sink_name(sink, NRG_KIND_MODULE, name, name_len, class);
}

int64_t nrg_chrome_host_name(struct nrg_span_sink *sink, const struct nrg_chrome_event *e,
                             const char *kind, const char *detail, const char *rank,
                             int64_t *number)
{
    *number = NRG_MISSING;
    if (!strncmp(e->name, "ProfilerStep", 12)) {
        const char *hash = strchr(e->name, '#');
        if (hash && !nrg_parse_i64(hash + 1, strlen(hash + 1), number))
            return nrg_span_sink_name(sink, NRG_KIND_STEP, "ProfilerStep", 12, rank);
    }
    if (!strncmp(e->name, NRG_CHROME_MODULE, strlen(NRG_CHROME_MODULE)))
        return module_name(sink, e->name + strlen(NRG_CHROME_MODULE));
    return nrg_span_sink_name(sink, kind, e->name, e->name_len, detail);
}

/* Whether a name that was not known says where events belong that were read already. */
static bool is_late(const struct nrg_chrome_tracks *t, const struct nrg_chrome_event *e,
                    bool process)
{
    struct nrg_trace_device device;
    if (!nrg_map_known(&t->by_name, e->pid, strlen(e->pid)))
        return false;
    if (process)
        return nrg_trace_device(e->label, &device) || e->label[0] == '/';
    return nrg_trace_device(process_label(t, e->pid), &device);
}

/* The name of a process or thread may come before or after its events. */
int nrg_chrome_label(struct nrg_chrome_tracks *t, struct nrg_span_sink *sink,
                     const struct nrg_chrome_event *e)
{
    char key[160];
    bool process = !strcmp(e->name, "process_name");
    if ((!process && strcmp(e->name, "thread_name") != 0) || !e->label[0])
        return 0;
    size_t len = (size_t)make_key(key, sizeof key, process ? PROCESS : THREAD, e->pid,
                                  process ? "" : e->tid);
    bool known = nrg_map_known(&t->label_keys, key, len);
    t->late |= !known && is_late(t, e, process);
    int64_t label = nrg_map_intern(&t->label_keys, key, len), number;
    if (label < 0 || nrg_reserve(&t->labels, &t->cap_labels, t->label_keys.n, sizeof *t->labels))
        return -ENOMEM;
    nrg_copy_clean(t->labels[label - 1], sizeof *t->labels, e->label, strlen(e->label));
    if (!process && (number = nrg_map_known(&t->keys, key, len))) {
        struct nrg_chrome_track *track = &t->items[number - 1];
        nrg_copy(track->track.name, sizeof track->track.name, t->labels[label - 1]);
        nrg_span_sink_set_track(sink, track->id, &track->track);
    }
    return 0;
}

void nrg_chrome_set_process(struct nrg_chrome_tracks *t, struct nrg_span_sink *sink)
{
    int32_t pid = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct nrg_span_track *track = &t->items[i].track;
        if (track->pid && pid && track->pid != pid)
            return;
        pid = track->pid ? track->pid : pid;
    }
    for (size_t i = 0; i < t->n; i++) {
        struct nrg_chrome_track *gpu = &t->items[i];
        if (strcmp(gpu->track.kind, "gpu") != 0)
            continue;
        gpu->track.pid = pid;
        nrg_span_sink_set_track(sink, gpu->id, &gpu->track);
    }
}

void nrg_chrome_tracks_restart(struct nrg_chrome_tracks *t)
{
    nrg_map_release(&t->keys);
    nrg_map_release(&t->by_name);
    t->keys = t->by_name = (struct nrg_map){0};
    t->n = 0;
    t->late = false;
}

void nrg_chrome_tracks_release(struct nrg_chrome_tracks *t)
{
    nrg_chrome_tracks_restart(t);
    nrg_map_release(&t->label_keys);
    free(t->items);
    free(t->labels);
    *t = (struct nrg_chrome_tracks){0};
}
