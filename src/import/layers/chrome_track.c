/* Tracks and names of a chrome trace's events (internal.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "import/layers/internal.h"
#include "sensors/channel.h"

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

int64_t nrg_chrome_thread(struct nrg_chrome_tracks *t, struct nrg_span_sink *sink,
                          const struct nrg_chrome_event *e)
{
    struct nrg_span_track track = {.kind = "thread",
                                   .pid = nrg_chrome_small_number(e->pid),
                                   .tid = nrg_chrome_small_number(e->tid)};
    snprintf(track.name, sizeof track.name, "%.60s thread %.40s", e->pid, e->tid);
    return track_of(t, sink, e->pid, e->tid, &track);
}

/* Legacy traces have the number of the device where others have the thread. */
int64_t nrg_chrome_gpu(struct nrg_chrome_tracks *t, struct nrg_span_sink *sink,
                       const struct nrg_chrome_event *e)
{
    struct nrg_span_track track = {.kind = "gpu"};
    char device[32], stream[48];
    bool legacy = !strcmp(e->pid, "CUDA functions");
    if (e->device != NRG_MISSING && e->device >= 0)
        snprintf(device, sizeof device, "%lld", (long long)e->device);
    else
        snprintf(device, sizeof device, "%d", nrg_chrome_small_number(legacy ? e->tid : e->pid));
    if (e->stream != NRG_MISSING)
        snprintf(stream, sizeof stream, "stream %lld", (long long)e->stream);
    else
        snprintf(stream, sizeof stream, "%s", e->tid);
    snprintf(track.domain, sizeof track.domain, "gpu-%s", device);
    snprintf(track.name, sizeof track.name, "GPU %.20s %.48s", device, stream);
    return track_of(t, sink, device, stream, &track);
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

/* The name of a thread may come before or after its events. */
int nrg_chrome_label(struct nrg_chrome_tracks *t, struct nrg_span_sink *sink,
                     const struct nrg_chrome_event *e)
{
    char key[160];
    if (strcmp(e->name, "thread_name") != 0 || !e->label[0])
        return 0;
    size_t len = (size_t)make_key(key, sizeof key, "thread", e->pid, e->tid);
    int64_t label = nrg_map_intern(&t->label_keys, key, len), number;
    if (label < 0 || nrg_reserve(&t->labels, &t->cap_labels, t->label_keys.n, sizeof *t->labels))
        return -ENOMEM;
    nrg_copy_clean(t->labels[label - 1], sizeof *t->labels, e->label, strlen(e->label));
    if ((number = nrg_map_known(&t->keys, key, len))) {
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

void nrg_chrome_tracks_release(struct nrg_chrome_tracks *t)
{
    nrg_map_release(&t->keys);
    nrg_map_release(&t->label_keys);
    free(t->items);
    free(t->labels);
    *t = (struct nrg_chrome_tracks){0};
}
