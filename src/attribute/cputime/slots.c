/*
 * Makes the slots of cpu-time (cputime.h): one walk through the spans, in which each strand
 * collects how long each place was open, and hands it over where its interval ends.
 *
 * Of a thread with spans, intervals end where its CPU time was read, of the threads without spans
 * where that of their process was. At an instant they follow the tracks that have a span open, in
 * proportion to the CPU time of each (a thread that waits has nobody working for it); that share of
 * time is kept by a potential, as in flow.h.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "attribute/cputime/cputime.h"
#include "base/mem.h"
#include "energy/timeline.h"

#define MAX_ENTRIES ((size_t)1 << 22)
#define FEW         256 /* entries of an interval, before those of one place are added up */

/* What a strand has seen of its interval. */
struct pending {
    struct nrg_cpu_entry *entries;
    size_t n, cap, packed; /* packed: so many were left when they were added up last */
    struct nrg_cpu_steps steps;
};

/* A part of a stretch, in the entry of a slot that is over. */
struct piece {
    size_t entry;
    double part_s;
};

struct track {
    struct pending pending;
    uint32_t place; /* 0: none is open */
    uint32_t step;  /* that it is part of; 0: none */
    int64_t since_ns;
    int64_t began_ns;             /* the stretch of `place` */
    double part_s[NRG_CPU_KINDS]; /* of that stretch, in the slots in hand */
    struct piece *pieces;         /* and in those that are over */
    size_t n_pieces, cap_pieces;
    size_t next; /* reading that ends the interval */
    double weight, work_done;
};

struct group {
    struct pending pending;
    double weight, work; /* of its open tracks; potential: integral of 1 / weight */
    size_t open;
    int64_t done_ns;
    size_t next;   /* interval of its followers */
    double late_s; /* CPU time of open spans that was read too late, at its begin */
};

struct walker {
    struct nrg_engine *e;
    const struct nrg_cpu_readings *readings;
    struct nrg_cpu_time *out;
    struct nrg_arena memory; /* of the arrays */
    struct track *tracks;
    struct group *groups;
    float *price;       /* [(cell * n_groups + group) * n_parts + part]: joules per CPU second */
    float *slot_price;  /* per part */
    double *cell_price; /* per cell */
    double *beyond_s;   /* per cell: see nrg_cpu_beyond */
    double *active_j;   /* per cell, of the last modelled part: for the ticks */
    uint32_t *stamp, *slot_of; /* per place: see pack */
    uint32_t stamps;
    size_t cell;
    int64_t next_ns; /* when the first interval of followers ends */
    int rc;
};

/* Adds up the entries of each place. */
static void pack(struct walker *w, struct pending *p)
{
    size_t n = 0;
    w->stamps++;
    for (size_t i = 0; i < p->n; i++) {
        uint32_t place = p->entries[i].place;
        if (w->stamp[place] == w->stamps) {
            p->entries[w->slot_of[place]].open_s += p->entries[i].open_s;
            p->entries[w->slot_of[place]].calls += p->entries[i].calls;
            continue;
        }
        w->stamp[place] = w->stamps;
        w->slot_of[place] = (uint32_t)n;
        p->entries[n++] = p->entries[i];
    }
    p->n = p->packed = n;
}

static void add_entry(struct walker *w, struct pending *p, struct nrg_cpu_entry entry)
{
    if (w->rc || !(entry.open_s > 0 || entry.calls > 0))
        return;
    if (p->n && p->entries[p->n - 1].place == entry.place) {
        p->entries[p->n - 1].open_s += entry.open_s;
        p->entries[p->n - 1].calls += entry.calls;
        return;
    }
    if (p->n >= FEW + 2 * p->packed)
        pack(w, p);
    w->rc = nrg_append(&p->entries, &p->n, &p->cap, &entry, sizeof entry);
}

/* The track's place was open for so long in the slot in hand. */
static void add_open(struct walker *w, struct track *track, struct pending *p, size_t kind,
                     double open_s)
{
    add_entry(w, p, (struct nrg_cpu_entry){.place = track->place, .open_s = (float)open_s});
    track->part_s[kind] += open_s;
    if (!w->rc)
        w->rc = nrg_cpu_steps_add(&p->steps, track->step, open_s);
}

/* The slot that was just ended has a part of the stretch that is open, which counts as that part of
 * a call; its length is known later. */
static void keep_piece(struct walker *w, struct track *track, size_t kind, size_t n_entries)
{
    bool has = track->place && w->stamp[track->place] == w->stamps && track->part_s[kind] > 0;
    struct piece piece = {n_entries + w->slot_of[track->place], track->part_s[kind]};
    track->part_s[kind] = 0;
    if (has && !w->rc && w->out->n_entries > n_entries)
        w->rc =
            nrg_append(&track->pieces, &track->n_pieces, &track->cap_pieces, &piece, sizeof piece);
}

/* The stretch is over. */
static void count_call(struct walker *w, struct track *track, struct pending *group, int64_t t_ns)
{
    double length_s = (double)(t_ns - track->began_ns) * 1e-9;
    struct pending *in_hand[NRG_CPU_KINDS] = {&track->pending, group};
    for (size_t kind = 0; kind < NRG_CPU_KINDS; kind++) {
        float part = length_s > 0 ? (float)(track->part_s[kind] / length_s) : 0;
        add_entry(w, in_hand[kind], (struct nrg_cpu_entry){.place = track->place, .calls = part});
        track->part_s[kind] = 0;
    }
    for (size_t i = 0; length_s > 0 && i < track->n_pieces; i++)
        w->out->entries[track->pieces[i].entry].calls +=
            (float)(track->pieces[i].part_s / length_s);
    track->n_pieces = 0;
}

/* The interval is over: its slot, unless nothing was open in it. */
static void end_slot(struct walker *w, struct pending *p, struct nrg_cpu_slot slot,
                     const float *price)
{
    struct nrg_cpu_time *out = w->out;
    size_t n_parts = w->e->n_parts;
    pack(w, p);
    size_t n = p->n;
    p->n = p->packed = 0;
    if (w->rc || !n || !(slot.width_s > 0)) {
        p->steps.n = 0;
        return;
    }
    slot.first = out->n_entries;
    for (size_t i = 0; i < n; i++)
        slot.open_s += p->entries[i].open_s;
    if (out->n_entries + n > MAX_ENTRIES || out->n_slots > MAX_ENTRIES)
        w->rc = -E2BIG;
    if (!w->rc)
        w->rc =
            nrg_reserve(&out->entries, &out->cap_entries, out->n_entries + n, sizeof *out->entries);
    if (!w->rc)
        w->rc = nrg_reserve(&out->price, &out->cap_price, (out->n_slots + 1) * n_parts,
                            sizeof *out->price);
    if (!w->rc)
        w->rc = nrg_append(&out->slots, &out->n_slots, &out->cap_slots, &slot, sizeof slot);
    if (!w->rc)
        w->rc = nrg_cpu_steps_end(&p->steps, out);
    if (w->rc)
        return;
    for (size_t p_i = 0; p_i < n_parts; p_i++)
        out->price[(out->n_slots - 1) * n_parts + p_i] = price[p_i];
    for (size_t i = 0; i < n; i++)
        out->entries[out->n_entries++] = p->entries[i];
}

/* Mean over time of a group's joules per CPU second. */
static float mean_price(const struct walker *w, size_t group, size_t part, int64_t from_ns,
                        int64_t to_ns)
{
    const struct nrg_cells *c = &w->e->cells;
    double sum = 0;
    for (size_t k = nrg_cells_find(c, from_ns); k < c->n && c->begin_ns[k] < to_ns; k++) {
        int64_t begin = c->begin_ns[k] > from_ns ? c->begin_ns[k] : from_ns;
        int64_t end = c->begin_ns[k + 1] < to_ns ? c->begin_ns[k + 1] : to_ns;
        if (end > begin)
            sum += (double)(end - begin) *
                   (double)w->price[(k * c->n_groups + group) * w->e->n_parts + part];
    }
    return (float)(sum / (double)(to_ns - from_ns));
}

/* Which cells the slot lies in. */
static void place_slot(const struct walker *w, int64_t begin_ns, struct nrg_cpu_slot *slot)
{
    const struct nrg_cells *c = &w->e->cells;
    size_t k = nrg_cells_find(c, begin_ns);
    double here_s = (double)(c->begin_ns[k + 1] - begin_ns) * 1e-9;
    slot->cell = (uint32_t)k;
    slot->here = slot->width_s > 0 ? fminf(1, (float)here_s / slot->width_s) : 1;
}

static uint16_t block_of(const struct walker *w, int64_t t_ns)
{
    const struct nrg_cells *c = &w->e->cells;
    double at = (double)(t_ns - c->begin_ns[0]) / (double)(c->begin_ns[c->n] - c->begin_ns[0]);
    return (uint16_t)fmin(fmax(at, 0) * NRG_CPU_BLOCKS, NRG_CPU_BLOCKS - 1);
}

/* A thread up to t_ns: its intervals that end by then. */
static void move_track(struct walker *w, size_t at, int64_t t_ns)
{
    const struct nrg_cpu_track *known = &w->readings->tracks[at];
    const struct nrg_cells *c = &w->e->cells;
    struct track *track = &w->tracks[at];
    float *price = w->slot_price;
    for (; track->next < known->n && known->rows[track->next].t_ns <= t_ns; track->next++) {
        const struct nrg_cpu_reading *end = &known->rows[track->next], *begin = end - 1;
        if (track->place && track->next)
            add_open(w, track, &track->pending, NRG_CPU_THREAD,
                     (double)(end->t_ns - track->since_ns) * 1e-9);
        track->since_ns = end->t_ns;
        if (!track->next)
            continue;
        for (size_t p = 0; p < w->e->n_parts; p++)
            price[p] = mean_price(w, c->track_group[at], p, begin->t_ns, end->t_ns);
        double width_s = (double)(end->t_ns - begin->t_ns) * 1e-9;
        struct nrg_cpu_slot slot = {.begin_ns = begin->t_ns,
                                    .width_s = (float)width_s,
                                    .cpu_s = (float)((double)(end->cpu_ns - begin->cpu_ns) * 1e-9),
                                    .threads = 1,
                                    .kind = NRG_CPU_THREAD,
                                    .block = block_of(w, begin->t_ns)};
        place_slot(w, begin->t_ns, &slot);
        size_t n_entries = w->out->n_entries;
        end_slot(w, &track->pending, slot, price);
        keep_piece(w, track, NRG_CPU_THREAD, n_entries);
    }
    if (track->place && track->next && track->next < known->n)
        add_open(w, track, &track->pending, NRG_CPU_THREAD,
                 (double)(t_ns - track->since_ns) * 1e-9);
    track->since_ns = t_ns;
}

static void settle_group(struct walker *w, size_t g, int64_t t_ns)
{
    struct group *group = &w->groups[g];
    int64_t end_ns = w->e->cells.begin_ns[w->e->cells.n];
    t_ns = t_ns < end_ns ? t_ns : end_ns;
    if (group->open && !w->e->cells.outside[w->cell])
        group->work += (double)(t_ns - group->done_ns) * 1e-9 / group->weight;
    group->done_ns = t_ns;
}

/* The track's group is settled. */
static void credit_followers(struct walker *w, size_t at)
{
    struct track *track = &w->tracks[at];
    struct group *group = &w->groups[w->e->cells.track_group[at]];
    if (track->place)
        add_open(w, track, &group->pending, NRG_CPU_FOLLOWERS,
                 track->weight * (group->work - track->work_done));
    track->work_done = group->work;
}

/* What the threads without spans of a group did in its interval. */
static void end_group_slot(struct walker *w, size_t g)
{
    const struct nrg_cpu_followers *known = &w->readings->followers[g];
    const struct nrg_cpu_interval *at = &known->rows[w->groups[g].next];
    struct group *group = &w->groups[g];
    /* Threads are read a little later than their process; those in a span run meanwhile. */
    double late_s = at->read > 0 ? (double)(at->late_s / at->read) * (double)group->open : 0;
    int64_t begin_ns = w->groups[g].next ? (at - 1)->end_ns : known->begin_ns;
    double width_s = (double)(at->end_ns - begin_ns) * 1e-9;
    float all = w->readings->threads[g], threads = all > 0 ? all - at->beside : NRG_CPU_MANY;
    struct nrg_cpu_slot slot = {.begin_ns = begin_ns,
                                .width_s = (float)width_s,
                                .cpu_s = at->cpu_s + (float)(late_s - group->late_s),
                                .threads = fmaxf(threads, 1),
                                .kind = NRG_CPU_FOLLOWERS,
                                .block = block_of(w, begin_ns),
                                .beside_s = at->beside_s,
                                .beside = at->beside};
    place_slot(w, begin_ns, &slot);
    for (size_t p = 0; p < w->e->n_parts; p++)
        w->slot_price[p] = mean_price(w, g, p, begin_ns, at->end_ns);
    group->late_s = late_s;
    end_slot(w, &group->pending, slot, w->slot_price);
}

static void enter_cell(struct walker *w)
{
    const struct nrg_cells *c = &w->e->cells;
    for (size_t g = 0; g < c->n_groups; g++)
        w->groups[g].weight = 0;
    for (size_t i = 0; i < c->n_tracks; i++) {
        w->tracks[i].weight = (double)c->weight[w->cell * c->n_tracks + i];
        if (w->tracks[i].place)
            w->groups[c->track_group[i]].weight += w->tracks[i].weight;
    }
}

static void leave_cell(struct walker *w)
{
    const struct nrg_cells *c = &w->e->cells;
    for (size_t g = 0; g < c->n_groups; g++)
        settle_group(w, g, c->begin_ns[w->cell + 1]);
    for (size_t i = 0; i < c->n_tracks; i++)
        credit_followers(w, i);
}

static int64_t interval_end(const struct walker *w, size_t g)
{
    const struct nrg_cpu_followers *known = &w->readings->followers[g];
    return w->groups[g].next < known->n ? known->rows[w->groups[g].next].end_ns : INT64_MAX;
}

/* Ends the interval of each group that ends at w->next_ns. */
static void end_intervals(struct walker *w)
{
    const struct nrg_cells *c = &w->e->cells;
    int64_t next_ns = INT64_MAX;
    for (size_t g = 0; g < c->n_groups; g++) {
        size_t n_entries = w->out->n_entries;
        bool ends = interval_end(w, g) == w->next_ns;
        if (ends)
            settle_group(w, g, w->next_ns);
        for (size_t i = 0; ends && i < c->n_tracks; i++)
            if (c->track_group[i] == g)
                credit_followers(w, i);
        if (ends)
            end_group_slot(w, g);
        for (size_t i = 0; ends && i < c->n_tracks; i++)
            if (c->track_group[i] == g)
                keep_piece(w, &w->tracks[i], NRG_CPU_FOLLOWERS, n_entries);
        w->groups[g].next += ends;
        next_ns = interval_end(w, g) < next_ns ? interval_end(w, g) : next_ns;
    }
    w->next_ns = next_ns;
}

/* Cells and intervals in order, up to t_ns. */
static void move_on(struct walker *w, int64_t t_ns)
{
    const struct nrg_cells *c = &w->e->cells;
    bool more = true;
    while (more) {
        bool last = w->cell + 1 >= c->n;
        int64_t cell_ns = last ? INT64_MAX : c->begin_ns[w->cell + 1];
        more = cell_ns < t_ns || w->next_ns <= t_ns;
        if (more && w->next_ns <= cell_ns) {
            end_intervals(w);
        } else if (more) {
            leave_cell(w);
            w->cell++;
            enter_cell(w);
        }
    }
}

/* The innermost span of a track is another one. */
static void change_place(struct walker *w, size_t at, uint32_t place, int64_t t_ns)
{
    struct track *track = &w->tracks[at];
    struct group *group = &w->groups[w->e->cells.track_group[at]];
    if (track->place)
        count_call(w, track, &group->pending, t_ns);
    track->began_ns = t_ns;
    if (place && !track->place) {
        group->weight += track->weight;
        group->open++;
    } else if (!place && track->place) {
        group->weight -= track->weight;
        if (!--group->open)
            group->weight = 0;
    }
    track->place = place;
}

static int on_event(void *arg, const struct nrg_span_walk_event *ev)
{
    struct walker *w = arg;
    const struct nrg_cells *c = &w->e->cells;
    bool opens = ev->what == NRG_WALK_OPEN;
    if (ev->what == NRG_WALK_COUNT || c->track_pool[ev->track])
        return 0;
    int64_t t_ns = ev->t_ns < c->begin_ns[0] ? c->begin_ns[0] : ev->t_ns;
    t_ns = t_ns > c->begin_ns[c->n] ? c->begin_ns[c->n] : t_ns;
    move_on(w, t_ns);
    move_track(w, ev->track, ev->t_ns);
    settle_group(w, c->track_group[ev->track], t_ns);
    credit_followers(w, ev->track);
    const struct nrg_open_span *now = opens ? ev->span : ev->around;
    change_place(w, ev->track, now ? now->row : 0, t_ns);
    w->tracks[ev->track].step = now ? now->step : 0;
    return w->rc;
}

/*
 * Joules per CPU second of each group in each cell. Where its threads seem to have used more than
 * their process, they have no more than its energy.
 */
static int set_prices(struct walker *w, size_t p)
{
    const struct nrg_part *part = &w->e->parts[p];
    const struct nrg_cpu_readings *r = w->readings;
    const struct nrg_cells *c = &w->e->cells;
    if (part->method != NRG_METHOD_CPU_TIME)
        return 0;
    int rc = nrg_cpu_prices(w->out, w->e, part, r->workload_s, w->active_j, w->cell_price);
    for (size_t g = 0; !rc && g < c->n_groups; g++) {
        rc = nrg_cpu_beyond(w->e, w->readings, w->out->cpus, g, w->beyond_s);
        for (size_t k = 0; !rc && k < c->n; k++) {
            size_t at = k * c->n_groups + g;
            double own_s = (double)r->group_s[at], most_s = own_s + w->beyond_s[k];
            if (c->outside[k] || !(most_s > 0))
                continue;
            w->price[at * w->e->n_parts + p] = (float)(w->cell_price[k] * own_s / most_s);
            w->out->there_j[p] += w->cell_price[k] * own_s;
        }
    }
    return rc;
}

static int init_walker(struct walker *w)
{
    struct nrg_engine *e = w->e;
    const struct nrg_cells *c = &e->cells;
    size_t n_places = e->walk.rows->n + 1, n_prices = c->n * c->n_groups * e->n_parts + 1;
    int64_t cpus = 0;
    w->tracks = nrg_arena_array(&w->memory, c->n_tracks + 1, sizeof *w->tracks);
    w->groups = nrg_arena_array(&w->memory, c->n_groups + 1, sizeof *w->groups);
    w->price = nrg_arena_array(&w->memory, n_prices, sizeof *w->price);
    w->active_j = nrg_arena_array(&w->memory, c->n + 1, sizeof *w->active_j);
    w->cell_price = nrg_arena_array(&w->memory, c->n + 1, sizeof *w->cell_price);
    w->beyond_s = nrg_arena_array(&w->memory, c->n + 1, sizeof *w->beyond_s);
    w->slot_price = nrg_arena_array(&w->memory, e->n_parts + 1, sizeof *w->slot_price);
    w->stamp = nrg_arena_array(&w->memory, n_places, sizeof *w->stamp);
    w->slot_of = nrg_arena_array(&w->memory, n_places, sizeof *w->slot_of);
    w->out->there_j = nrg_arena_array(&w->out->memory, e->n_parts + 1, sizeof *w->out->there_j);
    w->out->mean_price =
        nrg_arena_array(&w->out->memory, e->n_parts + 1, sizeof *w->out->mean_price);
    if (w->memory.failed || w->out->memory.failed)
        return -ENOMEM;
    nrg_recording_integer(e->recording, "cpus", &cpus);
    w->out->cpus = cpus > 0 ? (double)cpus : (double)NRG_CPU_MANY;
    w->next_ns = INT64_MAX;
    for (size_t g = 0; g < c->n_groups; g++) {
        w->groups[g].done_ns = c->begin_ns[0];
        w->next_ns = interval_end(w, g) < w->next_ns ? interval_end(w, g) : w->next_ns;
    }
    for (size_t p = 0; p < e->n_parts; p++)
        if (e->parts[p].method == NRG_METHOD_CPU_TIME)
            nrg_cpu_active(e, &e->parts[p], w->active_j);
    int rc = nrg_cpu_ticks_init(w->out, e, w->readings->workload_s, w->active_j);
    for (size_t p = 0; !rc && p < e->n_parts; p++)
        rc = set_prices(w, p);
    enter_cell(w);
    return rc;
}

static void finish_walk(struct walker *w)
{
    const struct nrg_cells *c = &w->e->cells;
    move_on(w, c->begin_ns[c->n]);
    leave_cell(w);
    while (w->next_ns < INT64_MAX) /* the last readings come after the run */
        end_intervals(w);
    for (size_t i = 0; i < c->n_tracks; i++)
        move_track(w, i, INT64_MAX);
    for (size_t i = 0; i < c->n_tracks; i++)
        if (w->tracks[i].place)
            count_call(w, &w->tracks[i], &w->groups[c->track_group[i]].pending, c->begin_ns[c->n]);
}

int nrg_cpu_slots_make(struct nrg_engine *e, const struct nrg_cpu_readings *readings)
{
    struct walker w = {.e = e, .readings = readings, .out = e->cpu_time};
    int rc = init_walker(&w);
    if (!rc)
        rc = nrg_span_walk_run(&e->walk, e->cells.begin_ns[e->cells.n], on_event, &w);
    if (!rc)
        finish_walk(&w);
    for (size_t i = 0; w.tracks && i < e->cells.n_tracks; i++) {
        free(w.tracks[i].pending.entries);
        free(w.tracks[i].pending.steps.items);
        free(w.tracks[i].pieces);
    }
    for (size_t g = 0; w.groups && g < e->cells.n_groups; g++) {
        free(w.groups[g].pending.entries);
        free(w.groups[g].pending.steps.items);
    }
    nrg_arena_release(&w.memory);
    return rc ? rc : w.rc;
}
