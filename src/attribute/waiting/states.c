/*
 * The state of each GPU at each instant (waiting.h), from two walks through the spans: one finds
 * when each GPU had its first and its last work in each run, and whether its kernels are there;
 * the other counts what is open on each GPU and in its process, and notes when the state changes.
 * Changes are kept, not spans: 16 bytes each, and states that last no time leave none.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/waiting/internal.h"
#include "base/mem.h"

/* A process as far as it is waiting for something. */
struct host {
    int32_t pid;
    uint32_t open[NRG_WAIT_KINDS];
    char rank[48];
};

struct bounds {
    int64_t first_ns, last_ns; /* of a device's work in a run; first > last: none */
};

struct finder {
    struct nrg_states *s;
    struct nrg_arena memory; /* of the arrays */
    struct nrg_span_catalog catalog;
    struct nrg_span_walk walk;
    uint32_t *device_of, *host_of; /* per track; UINT32_MAX: none */
    uint8_t *on_device, *on_host;  /* per name: enum nrg_wait_kind */
    uint8_t *is_kernel, *is_rank;  /* per name */
    double *kernel_ns;             /* per name: time of kernels that are work */
    uint8_t *work_of;              /* per name: which of the kernels with states it is */
    uint32_t *awaits;              /* per name: the one device that it waits for; UINT32_MAX: any */
    struct host *hosts;
    size_t n_hosts;
    struct nrg_span_ns *runs;
    size_t n_runs, run;
    struct bounds *bounds; /* [run * n_devices + device] */
};

static uint32_t device_of(struct nrg_states *s, const struct nrg_span_track *track)
{
    uint32_t d = 0;
    if (strcmp(track->kind, "gpu") != 0 || !track->domain[0])
        return UINT32_MAX;
    while (d < s->n_devices && strcmp(s->devices[d].domain, track->domain) != 0)
        d++;
    struct nrg_state_device *device = &s->devices[d];
    if (d == s->n_devices) {
        *device = (struct nrg_state_device){.pid = track->pid, .state = NRG_STATE_OUTSIDE};
        nrg_copy(device->domain, sizeof device->domain, track->domain);
        s->n_devices++;
    }
    if (device->pid != track->pid)
        device->pid = 0;
    return d;
}

static uint32_t host_of(struct finder *f, const struct nrg_span_track *track)
{
    uint32_t h = 0;
    if (!strcmp(track->kind, "gpu"))
        return UINT32_MAX;
    while (h < f->n_hosts && f->hosts[h].pid != track->pid)
        h++;
    if (h == f->n_hosts)
        f->hosts[f->n_hosts++] = (struct host){.pid = track->pid};
    return h;
}

static int allocate(struct finder *f)
{
    const struct nrg_span_catalog *c = &f->catalog;
    size_t tracks = c->n_tracks + 1, names = c->n_names + 1;
    f->s->devices = nrg_arena_array(&f->s->memory, tracks, sizeof *f->s->devices);
    f->s->shown = nrg_arena_array(&f->s->memory, tracks, 1);
    f->hosts = nrg_arena_array(&f->memory, tracks, sizeof *f->hosts);
    f->device_of = nrg_arena_array(&f->memory, tracks, sizeof *f->device_of);
    f->host_of = nrg_arena_array(&f->memory, tracks, sizeof *f->host_of);
    f->on_device = nrg_arena_array(&f->memory, names, 1);
    f->on_host = nrg_arena_array(&f->memory, names, 1);
    f->is_kernel = nrg_arena_array(&f->memory, names, 1);
    f->is_rank = nrg_arena_array(&f->memory, names, 1);
    f->awaits = nrg_arena_array(&f->memory, names, sizeof *f->awaits);
    f->kernel_ns = nrg_arena_array(&f->memory, names, sizeof *f->kernel_ns);
    f->work_of = nrg_arena_array(&f->memory, names, 1);
    return f->memory.failed || f->s->memory.failed ? -ENOMEM : 0;
}

/* A wait's detail is the device where that is known (inject/waits.h); one without work has no
 * state, and its waits mean nothing to others. */
static uint32_t awaited_device(const struct nrg_states *s, const struct nrg_span_name *name)
{
    uint32_t d = 0;
    if (strncmp(name->detail, "gpu-", 4) != 0)
        return UINT32_MAX;
    while (d < s->n_devices && strcmp(s->devices[d].domain, name->detail) != 0)
        d++;
    return d;
}

static void classify(struct finder *f)
{
    const struct nrg_span_catalog *c = &f->catalog;
    for (size_t i = 0; i < c->n_tracks; i++) {
        f->device_of[i] = device_of(f->s, &c->tracks[i]);
        f->host_of[i] = host_of(f, &c->tracks[i]);
    }
    for (size_t i = 0; i < c->n_names; i++) {
        f->on_device[i] = (uint8_t)nrg_wait_on_device(&c->names[i]);
        f->on_host[i] = (uint8_t)nrg_wait_on_host(&c->names[i]);
        f->is_kernel[i] = !strcmp(c->names[i].kind, NRG_KIND_KERNEL);
        f->is_rank[i] = nrg_detail_is_rank(c->names[i].detail);
        f->awaits[i] = awaited_device(f->s, &c->names[i]);
    }
}

/* The runs that are looked at, as nrg_attribution_make takes them. */
static int find_runs(struct finder *f, struct nrg_recording *recording, int64_t run)
{
    size_t n;
    const struct nrg_run *runs = nrg_recording_runs(recording, &n);
    f->runs = nrg_arena_array(&f->memory, n + 1, sizeof *f->runs);
    f->bounds = nrg_arena_array(&f->memory, (n + 1) * (f->s->n_devices + 1), sizeof *f->bounds);
    if (f->memory.failed)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (run ? runs[i].id == run : strcmp(runs[i].kind, "baseline") != 0)
            f->runs[f->n_runs++] = (struct nrg_span_ns){
                runs[i].begin_ns, runs[i].end_ns > runs[i].begin_ns ? runs[i].end_ns : INT64_MAX};
    for (size_t i = 0; i < f->n_runs * f->s->n_devices; i++)
        f->bounds[i] = (struct bounds){INT64_MAX, INT64_MIN};
    return 0;
}

/* The place of a name in the catalog; n_names: it is not known, and means nothing. */
static size_t name_of(const struct finder *f, int64_t id)
{
    const struct nrg_span_name *name = nrg_span_catalog_name(&f->catalog, id);
    return name ? (size_t)(name - f->catalog.names) : f->catalog.n_names;
}

/* Into the run that holds t_ns; false: between runs. */
static bool is_in_run(struct finder *f, int64_t t_ns)
{
    while (f->run + 1 < f->n_runs && t_ns >= f->runs[f->run + 1].begin_ns)
        f->run++;
    return f->run < f->n_runs && t_ns >= f->runs[f->run].begin_ns && t_ns <= f->runs[f->run].end_ns;
}

static int on_first_walk(void *arg, const struct nrg_span_walk_event *ev)
{
    struct finder *f = arg;
    uint32_t d = f->device_of[ev->track], h = f->host_of[ev->track];
    if (ev->what == NRG_WALK_COUNT)
        return 0;
    size_t name = name_of(f, ev->span->name);
    if (h != UINT32_MAX && f->is_rank[name])
        nrg_copy(f->hosts[h].rank, sizeof f->hosts[h].rank, f->catalog.names[name].detail);
    if (d == UINT32_MAX || !is_in_run(f, ev->t_ns))
        return 0;
    struct bounds *b = &f->bounds[f->run * f->s->n_devices + d];
    f->s->devices[d].kernels |= f->is_kernel[name] != 0;
    if (f->is_kernel[name] && f->on_device[name] == NRG_WAIT_NOT)
        f->kernel_ns[name] +=
            (ev->what == NRG_WALK_OPEN ? -1 : 1) * (double)(ev->t_ns - f->runs[0].begin_ns);
    b->first_ns = ev->t_ns < b->first_ns ? ev->t_ns : b->first_ns;
    b->last_ns = ev->t_ns > b->last_ns ? ev->t_ns : b->last_ns;
    return 0;
}

/* The kernels that take most time, in their order. */
static void choose_kernels(struct finder *f)
{
    size_t *n = &f->s->n_kernels;
    memset(f->work_of, NRG_STATE_KERNELS, f->catalog.n_names + 1);
    for (*n = 0; *n < NRG_STATE_KERNELS; ++*n) {
        size_t most = f->catalog.n_names; /* of no kernel */
        for (size_t i = 0; i < f->catalog.n_names; i++)
            if (f->work_of[i] == NRG_STATE_KERNELS && f->kernel_ns[i] > f->kernel_ns[most])
                most = i;
        if (most == f->catalog.n_names)
            return;
        f->work_of[most] = (uint8_t)*n;
    }
}

/* Kernels that run at the same time are not told apart. */
static uint8_t work_state(const struct finder *f, const struct nrg_state_device *device)
{
    if (device->open[NRG_WAIT_NOT] != 1)
        return NRG_WAIT_NOT;
    for (size_t i = 0; i < f->s->n_kernels; i++)
        if (device->works[i])
            return (uint8_t)(NRG_STATE_OF_KERNEL + i);
    return NRG_WAIT_NOT;
}

static bool may_use(const struct nrg_state_device *device, const struct host *host)
{
    return !device->pid || !host->pid || device->pid == host->pid;
}

/* What the processes of a device wait for, while nothing is on it. */
static enum nrg_wait_kind host_waits(const struct finder *f, const struct nrg_state_device *device)
{
    static const enum nrg_wait_kind order[] = {NRG_WAIT_COLLECTIVE, NRG_WAIT_LOADER, NRG_WAIT_SYNC};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        for (size_t h = 0; h < f->n_hosts; h++)
            if (f->hosts[h].open[order[i]] && may_use(device, &f->hosts[h]))
                return order[i];
    return device->awaited ? NRG_WAIT_SYNC : NRG_WAIT_GAP;
}

static uint8_t state_of(struct finder *f, size_t d, int64_t t_ns)
{
    const struct nrg_state_device *device = &f->s->devices[d];
    if (!is_in_run(f, t_ns))
        return NRG_STATE_OUTSIDE;
    const struct bounds *b = &f->bounds[f->run * f->s->n_devices + d];
    if (t_ns < b->first_ns || t_ns >= b->last_ns)
        return NRG_STATE_OUTSIDE;
    if (device->open[NRG_WAIT_NOT])
        return device->open[NRG_WAIT_COLLECTIVE] ? NRG_STATE_OVER_COLLECTIVE
               : device->open[NRG_WAIT_COPY_IN] + device->open[NRG_WAIT_COPY_OUT]
                   ? NRG_STATE_OVER_COPY
                   : work_state(f, device);
    for (int kind = NRG_WAIT_COLLECTIVE; kind <= NRG_WAIT_COPY_OUT; kind++)
        if (device->open[kind])
            return (uint8_t)kind;
    enum nrg_wait_kind waits = host_waits(f, device);
    return (uint8_t)(device->kernels || waits == NRG_WAIT_LOADER ? (int)waits : NRG_STATE_UNTOLD);
}

static int update(struct finder *f, size_t d, int64_t t_ns)
{
    struct nrg_states *s = f->s;
    struct nrg_state_device *device = &s->devices[d];
    uint8_t state = state_of(f, d, t_ns);
    if (state == device->state)
        return 0;
    device->state = state;
    if (device->change && s->changes[device->change - 1].t_ns == t_ns) {
        s->changes[device->change - 1].state = state; /* the one before lasted no time */
        return 0;
    }
    struct nrg_state_change change = {t_ns, (uint32_t)d, state};
    int rc = nrg_append(&s->changes, &s->n, &s->cap, &change, sizeof change);
    device->change = s->n;
    return rc;
}

static void count_open(uint32_t *open, bool opens)
{
    if (opens)
        ++*open;
    else if (*open)
        --*open;
}

/* A span on a host's thread in which it waits begins or ends. */
static int on_host_wait(struct finder *f, struct host *host, size_t name, int64_t t_ns, bool opens)
{
    uint32_t only = f->awaits[name];
    int rc = 0;
    if (only < f->s->n_devices) {
        count_open(&f->s->devices[only].awaited, opens);
        return update(f, only, t_ns);
    }
    if (only != UINT32_MAX)
        return 0;
    count_open(&host->open[f->on_host[name]], opens);
    for (size_t i = 0; !rc && i < f->s->n_devices; i++)
        if (may_use(&f->s->devices[i], host))
            rc = update(f, i, t_ns);
    return rc;
}

static int on_second_walk(void *arg, const struct nrg_span_walk_event *ev)
{
    struct finder *f = arg;
    uint32_t d = f->device_of[ev->track], h = f->host_of[ev->track];
    bool opens = ev->what == NRG_WALK_OPEN;
    if (ev->what == NRG_WALK_COUNT)
        return 0;
    size_t name = name_of(f, ev->span->name);
    if (d != UINT32_MAX) {
        if (f->is_kernel[name] || !f->s->devices[d].kernels)
            count_open(&f->s->devices[d].open[f->on_device[name]], opens);
        if (f->is_kernel[name])
            count_open(&f->s->devices[d].works[f->work_of[name]], opens);
        return update(f, d, ev->t_ns);
    }
    if (h == UINT32_MAX || f->on_host[name] == NRG_WAIT_NOT)
        return 0;
    return on_host_wait(f, &f->hosts[h], name, ev->t_ns, opens);
}

/* A device is its process's rank's; one whose process is not known that of the only one there is.
 */
static void set_ranks(struct finder *f)
{
    for (size_t d = 0; d < f->s->n_devices; d++) {
        struct nrg_state_device *device = &f->s->devices[d];
        const char *rank = NULL;
        for (size_t h = 0; h < f->n_hosts; h++) {
            if (!f->hosts[h].rank[0] || !may_use(device, &f->hosts[h]))
                continue;
            bool other = rank && strcmp(rank, f->hosts[h].rank) != 0;
            rank = other ? "" : f->hosts[h].rank;
        }
        nrg_copy(device->rank, sizeof device->rank, rank ? rank : "");
    }
}

static int walk_twice(struct finder *f, struct nrg_recording *recording)
{
    int rc = nrg_span_walk_init(&f->walk, recording, NULL, &f->catalog, NRG_BY_PATH);
    if (rc)
        return rc;
    int64_t end_ns = f->n_runs ? f->runs[f->n_runs - 1].end_ns : INT64_MIN;
    end_ns = end_ns == INT64_MAX ? 0 : end_ns;
    rc = nrg_span_walk_run(&f->walk, end_ns, on_first_walk, f);
    f->run = 0;
    choose_kernels(f);
    if (!rc)
        rc = nrg_span_walk_run(&f->walk, end_ns, on_second_walk, f);
    nrg_span_walk_release(&f->walk);
    return rc;
}

int nrg_states_find(struct nrg_states *s, struct nrg_recording *recording, int64_t run,
                    struct nrg_error *err)
{
    struct finder f = {.s = s};
    *s = (struct nrg_states){0};
    int rc = nrg_span_catalog_load(&f.catalog, recording, err);
    if (rc)
        return rc;
    rc = allocate(&f);
    if (!rc) {
        classify(&f);
        rc = s->n_devices ? find_runs(&f, recording, run) : 0;
    }
    if (!rc && s->n_devices)
        rc = walk_twice(&f, recording);
    if (!rc)
        set_ranks(&f);
    nrg_arena_release(&f.memory);
    nrg_span_catalog_release(&f.catalog);
    if (rc) {
        nrg_states_release(s);
        nrg_fail(err, rc, nrg_recording_path(recording), "cannot find what GPUs waited for: %s",
                 strerror(-rc));
    }
    return rc;
}

void nrg_states_join_work(struct nrg_states *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->changes[i].state >= NRG_STATE_OF_KERNEL)
            s->changes[i].state = NRG_WAIT_NOT;
    s->n_kernels = 0;
}

void nrg_states_release(struct nrg_states *s)
{
    nrg_arena_release(&s->memory);
    free(s->changes);
    *s = (struct nrg_states){0};
}
