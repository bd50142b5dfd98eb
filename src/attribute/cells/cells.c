/* See cells.h: how time is cut, and which track belongs to which group and pool. */
#include "attribute/cells/cells.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/search.h"
#include "base/stats.h"

#define CELL_NS     (100 * NRG_NS_PER_MS)
#define MIN_CELL_NS (20 * NRG_NS_PER_MS)
#define MAX_CELL_NS NRG_NS_PER_S
#define MAX_NUMBERS ((size_t)1 << 22) /* of a table per cell: 16 MB */
#define MAX_PERIODS 512

/* Rows of one process or thread, and how long after the one before each came. */
struct ticks {
    int64_t period_ns[MAX_PERIODS], t_ns[MAX_PERIODS];
    size_t n;
};

static int on_rows(void *arg, const struct nrg_rows *rows)
{
    struct ticks *ticks = arg;
    const int64_t *ids = nrg_rows_column(rows, 0);
    for (size_t i = 1; i < rows->n && ticks->n < MAX_PERIODS; i++)
        if (ids[i] == ids[i - 1] && rows->t_ns[i] > rows->t_ns[i - 1]) {
            ticks->period_ns[ticks->n] = rows->t_ns[i] - rows->t_ns[i - 1];
            ticks->t_ns[ticks->n++] = rows->t_ns[i];
        }
    return ticks->n >= MAX_PERIODS; /* positive: enough seen */
}

/* A line through the ticks, about `median` apart: a single one may be late, and the edges of runs
 * are none. */
static int64_t fit_ticks(const struct ticks *ticks, int64_t median, int64_t *at_ns)
{
    double n = 0, sum_k = 0, sum_t = 0, sum_kk = 0, sum_kt = 0;
    int64_t first = 0;
    for (size_t i = 0; i < ticks->n; i++) {
        int64_t off = ticks->period_ns[i] - median;
        if (off > median / 20 || off < -median / 20)
            continue;
        first = n > 0 ? first : ticks->t_ns[i];
        double t = (double)(ticks->t_ns[i] - first), k = round(t / (double)median);
        n++, sum_k += k, sum_t += t, sum_kk += k * k, sum_kt += k * t;
    }
    double det = n * sum_kk - sum_k * sum_k;
    if (n < 3 || !(det > 0))
        return median;
    double slope = (n * sum_kt - sum_k * sum_t) / det;
    if (!(fabs(slope - (double)median) < (double)median / 20))
        return median;
    *at_ns = first + (int64_t)((sum_t - slope * sum_k) / n);
    return (int64_t)round(slope);
}

/*
 * The recorder reads CPU times on ticks: cells that begin with them need no interpolation. *at_ns
 * is one of the ticks. Rows of processes tell them; threads have more, at the edges of spans.
 */
static int64_t tick_of(struct nrg_recording *recording, int64_t *at_ns)
{
    static const enum nrg_series_kind kinds[] = {NRG_PROCESSES, NRG_THREADS};
    struct ticks ticks = {0};
    for (size_t k = 0; k < 2 && ticks.n < 3; k++) {
        int series[1];
        if (nrg_recording_series_of(recording, kinds[k], series, 1))
            nrg_recording_read_series(recording, series[0], on_rows, &ticks, NULL);
    }
    if (ticks.n < 3)
        return CELL_NS;
    int64_t periods[MAX_PERIODS];
    memcpy(periods, ticks.period_ns, ticks.n * sizeof *periods);
    *at_ns = ticks.t_ns[ticks.n / 2];
    int64_t tick = fit_ticks(&ticks, nrg_median_i64(periods, ticks.n), at_ns);
    if (tick < MIN_CELL_NS)
        tick *= (MIN_CELL_NS + tick - 1) / tick;
    return tick < MAX_CELL_NS ? tick : MAX_CELL_NS;
}

static int add_cell(struct nrg_cells *c, size_t *cap, int64_t begin_ns, bool outside)
{
    size_t cap_outside = *cap;
    if (nrg_reserve(&c->outside, &cap_outside, c->n + 2, sizeof *c->outside) ||
        nrg_reserve(&c->begin_ns, cap, c->n + 2, sizeof *c->begin_ns))
        return -ENOMEM;
    *cap = *cap < cap_outside ? *cap : cap_outside;
    c->begin_ns[c->n] = begin_ns;
    c->outside[c->n++] = outside;
    return 0;
}

/* Cells of one run: from its begin, then at whole ticks. */
static int cut_window(struct nrg_cells *c, size_t *cap, const struct nrg_span_ns *window,
                      int64_t tick, int64_t at_ns)
{
    int64_t first = window->begin_ns - (window->begin_ns - at_ns) % tick;
    int rc = add_cell(c, cap, window->begin_ns, false);
    for (int64_t t = first; !rc && t < window->end_ns; t += tick)
        if (t > window->begin_ns)
            rc = add_cell(c, cap, t, false);
    return rc;
}

static int cut_windows(struct nrg_cells *c, struct nrg_frame *frame,
                       const struct nrg_span_ns *windows, size_t n)
{
    int64_t at_ns = n ? windows[0].begin_ns : 0, tick = tick_of(frame->recording, &at_ns), all = 0;
    size_t cap = 0;
    int rc = 0;
    for (size_t i = 0; i < n; i++)
        all += windows[i].end_ns - windows[i].begin_ns;
    while ((size_t)(all / tick) > MAX_NUMBERS / (c->n_tracks + c->n_groups + 1))
        tick *= 2;
    for (size_t i = 0; !rc && i < n; i++) {
        rc = cut_window(c, &cap, &windows[i], tick, at_ns);
        if (!rc && i + 1 < n && windows[i + 1].begin_ns > windows[i].end_ns)
            rc = add_cell(c, &cap, windows[i].end_ns, true);
    }
    if (!rc && n)
        c->begin_ns[c->n] = windows[n - 1].end_ns;
    return rc;
}

uint32_t nrg_cells_pool(const struct nrg_cells *c, const char *domain)
{
    for (size_t i = 1; i < c->n_pools; i++)
        if (!strcmp(c->pool_domain[i], domain))
            return (uint32_t)i;
    return 0;
}

static uint32_t pool_of(struct nrg_cells *c, const char *domain)
{
    uint32_t pool = nrg_cells_pool(c, domain);
    if (pool || !domain[0])
        return pool;
    nrg_copy(c->pool_domain[c->n_pools], sizeof *c->pool_domain, domain);
    return (uint32_t)c->n_pools++;
}

static int64_t process_of(struct nrg_recording *recording, const struct nrg_span_track *track)
{
    size_t n;
    const struct nrg_process_info *infos = nrg_recording_processes(recording, &n);
    for (size_t i = 0; track->pid > 0 && i < n; i++)
        if (infos[i].pid == track->pid &&
            (!track->start_ticks || infos[i].start_ticks == track->start_ticks))
            return infos[i].id;
    return 0;
}

static uint32_t group_of(struct nrg_cells *c, uint32_t pool, int64_t process)
{
    for (size_t i = 0; i < c->n_groups; i++)
        if (c->group_pool[i] == pool && c->group_process[i] == process)
            return (uint32_t)i;
    c->group_pool[c->n_groups] = pool;
    c->group_process[c->n_groups] = process;
    return (uint32_t)c->n_groups++;
}

static int make_groups(struct nrg_cells *c, struct nrg_frame *frame,
                       const struct nrg_span_catalog *catalog)
{
    size_t n = catalog->n_tracks + 1;
    c->n_tracks = catalog->n_tracks;
    c->track_group = nrg_arena_array(&c->memory, n, sizeof *c->track_group);
    c->track_pool = nrg_arena_array(&c->memory, n, sizeof *c->track_pool);
    c->group_pool = nrg_arena_array(&c->memory, n, sizeof *c->group_pool);
    c->group_process = nrg_arena_array(&c->memory, n, sizeof *c->group_process);
    c->pool_domain = nrg_arena_array(&c->memory, n, sizeof *c->pool_domain);
    if (c->memory.failed)
        return -ENOMEM;
    c->n_pools = 1;
    for (size_t i = 0; i < catalog->n_tracks; i++) {
        const struct nrg_span_track *track = &catalog->tracks[i];
        c->track_pool[i] = pool_of(c, track->domain);
        /* The use of a GPU is reported per device, if at all: one group. */
        int64_t process = c->track_pool[i] ? 0 : process_of(frame->recording, track);
        c->track_group[i] = group_of(c, c->track_pool[i], process);
    }
    return 0;
}

int nrg_cells_init(struct nrg_cells *c, struct nrg_frame *frame,
                   const struct nrg_span_catalog *catalog, const struct nrg_span_ns *windows,
                   size_t n_windows)
{
    *c = (struct nrg_cells){0};
    int rc = make_groups(c, frame, catalog);
    if (!rc)
        rc = cut_windows(c, frame, windows, n_windows);
    if (!rc) {
        c->open_s = nrg_arena_array(&c->memory, c->n * c->n_tracks + 1, sizeof *c->open_s);
        c->weight = nrg_arena_array(&c->memory, c->n * c->n_tracks + 1, sizeof *c->weight);
        c->share = nrg_arena_array(&c->memory, c->n * c->n_groups + 1, sizeof *c->share);
        c->other = nrg_arena_array(&c->memory, c->n + 1, sizeof *c->other);
        c->open_rate = nrg_arena_array(&c->memory, c->n * c->n_tracks + 1, sizeof *c->open_rate);
        c->gap_rate = nrg_arena_array(&c->memory, c->n * c->n_tracks + 1, sizeof *c->gap_rate);
        c->first_ns = nrg_arena_array(&c->memory, c->n_tracks + 1, sizeof *c->first_ns);
        c->last_ns = nrg_arena_array(&c->memory, c->n_tracks + 1, sizeof *c->last_ns);
        c->before_rate = nrg_arena_array(&c->memory, c->n_tracks + 1, sizeof *c->before_rate);
        c->after_rate = nrg_arena_array(&c->memory, c->n_tracks + 1, sizeof *c->after_rate);
        c->untracked_s = nrg_arena_array(&c->memory, c->n + 1, sizeof *c->untracked_s);
        rc = c->memory.failed ? -ENOMEM : 0;
    }
    if (rc)
        nrg_cells_release(c);
    return rc;
}

void nrg_cells_release(struct nrg_cells *c)
{
    nrg_thread_times_release(c->thread_times, c->n_tracks);
    free(c->begin_ns);
    free(c->outside);
    nrg_arena_release(&c->memory);
    *c = (struct nrg_cells){0};
}

size_t nrg_cells_find(const struct nrg_cells *c, int64_t t_ns)
{
    size_t begun = nrg_count_up_to(c->begin_ns, c->n, sizeof *c->begin_ns, t_ns);
    return begun ? begun - 1 : 0;
}
