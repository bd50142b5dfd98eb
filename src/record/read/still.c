/*
 * See still.h. One pass over a series lists the times that its counters stood still for; which of
 * them they can't have is then decided for each, by the least power of the domain, by what a power
 * gauge of the same name said meanwhile, and by the others that one sensor reads with it: what took
 * away a package's counter took its memory's, too, if that stood still for as long.
 *
 * How often a counter moves is taken from itself where that is seldomer than its driver says: such
 * a counter is slow, and not dead.
 */
#include "record/read/still.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/search.h"
#include "record/read/suspend.h"
#include "sensors/integrate.h"
#include "sensors/still.h"

#define UNLIKELY     2 /* times the highest power that was seen: an interval did not use that */
#define FEW_MOVES    3
#define FEW_MOVES_NS (2 * NRG_NS_PER_S)

struct list {
    int series;
    size_t column, n, cap;
    struct nrg_still *items;
};

struct nrg_stills {
    int *series; /* that were looked at */
    size_t n_series, cap_series;
    struct list *lists; /* of channels that have any */
    size_t n, cap;
};

/* A time that a counter stood still for. */
struct stand {
    struct nrg_standing at;
    int64_t next_ns; /* when it was seen to have moved; INT64_MAX: never */
    double step_j;   /* what it moved by; NAN: not known */
    double least_w;  /* of its domain meanwhile */
    bool set_back;   /* by a step back, and not by standing still: integrate.h has these */
    bool dead, caught_up;
};

/* A counter of the series. */
struct watch {
    const struct nrg_recorded_channel *channel;
    struct nrg_standing now;
    bool set_back;
    int64_t first_ns, apart_ns[NRG_FIRST_SPACINGS]; /* of its steps */
    size_t n_apart, n_moves;
    double moved_j, most_w;
    int64_t update_ns;
    double step_j;
    struct stand *stands;
    size_t n, cap;
};

struct search {
    struct nrg_recording *recording;
    struct watch *watches;
    size_t n;
    const struct nrg_recorded_channel *gauge; /* of the second pass, and whose it is */
    struct watch *counter;
    size_t stand;
};

static bool counts_energy(const struct nrg_channel *c)
{
    return c->kind == NRG_COUNTER && c->quantity == NRG_ENERGY && c->provenance == NRG_MEASURED;
}

/* The power gauge of a counter's name; NULL. */
static const struct nrg_recorded_channel *gauge_of(const struct nrg_recording *recording,
                                                   const struct nrg_recorded_channel *counter)
{
    size_t n;
    const struct nrg_recorded_channel *channels = nrg_recording_channels(recording, &n);
    for (size_t i = 0; i < n; i++) {
        const struct nrg_channel *c = &channels[i].channel;
        if (c->quantity == NRG_POWER && c->kind == NRG_GAUGE && c->provenance == NRG_MEASURED &&
            !strcmp(c->name, counter->channel.name))
            return &channels[i];
    }
    return NULL;
}

/* A time that it stood still for is over, or the recording is. */
static int note_stand(struct watch *w, int64_t next_ns, double step_j)
{
    struct stand stand = {.at = w->now,
                          .next_ns = next_ns,
                          .step_j = step_j,
                          .least_w = nrg_least_w(&w->channel->channel),
                          .set_back = w->set_back};
    return w->now.last_ns - w->now.since_ns > nrg_gauge_gap_ns(0)
               ? nrg_append(&w->stands, &w->n, &w->cap, &stand, sizeof stand)
               : 0;
}

static void note_move(struct watch *w, int64_t t_ns, double step_j)
{
    int64_t apart_ns = t_ns - w->now.since_ns;
    double over_s = (double)(apart_ns + w->channel->channel.update_ns) * 1e-9;
    w->n_moves++;
    if (w->n_apart < NRG_FIRST_SPACINGS)
        w->apart_ns[w->n_apart++] = apart_ns;
    if (!(step_j > 0))
        return;
    w->moved_j += step_j;
    w->most_w = fmax(w->most_w, step_j / over_s);
}

static int add_reading(struct watch *w, int64_t t_ns, int64_t raw)
{
    const struct nrg_channel *c = &w->channel->channel;
    int64_t step;
    int rc = 0;
    if (raw == NRG_MISSING || (w->now.seen && t_ns <= w->now.last_ns))
        return 0;
    if (!w->now.seen)
        w->first_ns = t_ns;
    else if (raw != w->now.raw) {
        bool back = nrg_counter_difference(c, w->now.raw, raw, &step) || step < 0;
        double step_j = back ? NAN : (double)step * c->scale;
        rc = note_stand(w, t_ns, step_j);
        note_move(w, t_ns, step_j);
        w->set_back = back;
    }
    nrg_standing_add(&w->now, t_ns, raw);
    return rc;
}

static int on_rows(void *arg, const struct nrg_rows *rows)
{
    struct search *s = arg;
    int rc = 0;
    for (size_t k = 0; k < s->n; k++) {
        const int64_t *raw = nrg_rows_column(rows, s->watches[k].channel->column);
        for (size_t i = 0; !rc && i < rows->n; i++)
            rc = add_reading(&s->watches[k], rows->t_ns[i], raw[i]);
    }
    return rc;
}

/* How often it is updated and in which steps: as its driver says, unless it does not say that or
 * the counter moves so seldom that it can't be. */
static void learn_steps(struct watch *w)
{
    const struct nrg_channel *c = &w->channel->channel;
    double lasted_ns = (double)(w->now.last_ns - w->first_ns);
    double step_ns = w->moved_j > 0 ? c->resolution / w->moved_j * lasted_ns : 0;
    int64_t usual_ns = nrg_gauge_update_ns(w->apart_ns, w->n_apart, w->channel->period_ns);
    bool slow = (double)usual_ns > 2 * ((double)c->update_ns + step_ns);
    bool said = c->resolution > 0 && !slow;
    double mean_j = w->n_moves ? w->moved_j / (double)w->n_moves : 0;
    w->update_ns = slow ? usual_ns : c->update_ns;
    w->step_j = said ? c->resolution : fmax(c->resolution, mean_j);
}

static int on_gauge_rows(void *arg, const struct nrg_rows *rows)
{
    struct search *s = arg;
    const int64_t *raw = nrg_rows_column(rows, s->gauge->column);
    for (size_t i = 0; i < rows->n && s->stand < s->counter->n; i++) {
        while (s->stand < s->counter->n && s->counter->stands[s->stand].at.last_ns < rows->t_ns[i])
            s->stand++;
        struct stand *at = s->stand < s->counter->n ? &s->counter->stands[s->stand] : NULL;
        if (at && at->at.since_ns <= rows->t_ns[i] && raw[i] != NRG_MISSING) {
            double power_w = (double)raw[i] * s->gauge->channel.scale;
            at->least_w = isnan(at->least_w) ? power_w : fmin(at->least_w, power_w);
        }
    }
    return 0;
}

/* The least that a gauge of the same name said while the counter stood still. */
static int ask_gauge(struct search *s, struct watch *w)
{
    double known_w = nrg_least_w(&w->channel->channel);
    s->gauge = w->n ? gauge_of(s->recording, w->channel) : NULL;
    if (!s->gauge)
        return 0;
    s->counter = w;
    s->stand = 0;
    for (size_t i = 0; i < w->n; i++)
        w->stands[i].least_w = NAN;
    int rc = nrg_recording_read_series(s->recording, s->gauge->series, on_gauge_rows, s, NULL);
    for (size_t i = 0; i < w->n; i++)
        w->stands[i].least_w = fmax(known_w, w->stands[i].least_w); /* NAN: known_w */
    return rc;
}

/* The step after it can't be that of its own interval, and can be that of all the time. */
static bool has_caught_up(const struct watch *w, const struct stand *stand)
{
    const struct nrg_channel *c = &w->channel->channel;
    if (isnan(stand->step_j)) /* also: it never moved again */
        return false;
    double own_s = (double)(stand->next_ns - stand->at.last_ns + w->update_ns) * 1e-9;
    double all_s = (double)(stand->next_ns - stand->at.since_ns + w->update_ns) * 1e-9;
    double most_j = UNLIKELY * (w->most_w * own_s + w->step_j);
    return stand->step_j > most_j && stand->step_j >= stand->least_w * all_s &&
           (!(c->limit_w > 0) || stand->step_j <= c->limit_w * all_s);
}

/* One that was hardly seen to move gives no idea of how it does. */
static void judge(struct watch *w)
{
    int64_t anyway_ns = w->n_moves < FEW_MOVES ? FEW_MOVES_NS : 0;
    for (size_t i = 0; i < w->n; i++) {
        struct stand *stand = &w->stands[i];
        int64_t longest_ns = nrg_longest_still_ns(w->update_ns, w->step_j, stand->least_w);
        longest_ns = longest_ns > anyway_ns ? longest_ns : anyway_ns;
        stand->dead = !stand->set_back && stand->at.last_ns - stand->at.since_ns > longest_ns;
        stand->caught_up = stand->dead && has_caught_up(w, stand);
    }
}

static struct nrg_stills *stills_of(const struct nrg_recording *recording)
{
    return *nrg_recording_stills(recording);
}

static struct list *list_of(const struct nrg_stills *all, const struct nrg_recorded_channel *c)
{
    for (size_t i = 0; all && i < all->n; i++)
        if (all->lists[i].series == c->series && all->lists[i].column == c->column)
            return &all->lists[i];
    return NULL;
}

/* In order of time; one that overlaps the last one goes on after it. */
static int keep(struct search *s, const struct nrg_recorded_channel *c, struct nrg_still still)
{
    struct nrg_stills *all = stills_of(s->recording);
    struct list *list = list_of(all, c), fresh = {.series = c->series, .column = c->column};
    if (!list && nrg_append(&all->lists, &all->n, &all->cap, &fresh, sizeof fresh))
        return -ENOMEM;
    list = list ? list : &all->lists[all->n - 1];
    if (list->n && still.from_ns < list->items[list->n - 1].to_ns)
        still.from_ns = list->items[list->n - 1].to_ns;
    return still.from_ns < still.to_ns
               ? nrg_append(&list->items, &list->n, &list->cap, &still, sizeof still)
               : 0;
}

static struct nrg_still still_of(const struct stand *stand)
{
    return (struct nrg_still){stand->caught_up ? stand->at.since_ns : stand->at.before_ns,
                              stand->next_ns, !stand->caught_up};
}

/* Whether another counter of the sensor stood still for all of a time that this one is dead in. */
static const struct stand *beside(const struct watch *other, const struct stand *stand)
{
    size_t begun = other->n ? nrg_count_up_to(&other->stands->at.since_ns, other->n,
                                              sizeof *other->stands, stand->at.since_ns)
                            : 0;
    const struct stand *own = begun ? &other->stands[begun - 1] : NULL;
    return own && own->at.last_ns >= stand->at.last_ns ? own : NULL;
}

/* What a counter of unknown least power lost with one whose is known. */
static int keep_beside(struct search *s, const struct watch *w)
{
    int rc = 0;
    for (size_t k = 0; k < s->n; k++) {
        const struct watch *dead = &s->watches[k];
        for (size_t i = 0; !rc && dead != w && i < dead->n; i++) {
            const struct stand *own = dead->stands[i].dead && !dead->stands[i].caught_up
                                          ? beside(w, &dead->stands[i])
                                          : NULL;
            if (own && !own->dead && !own->set_back)
                rc = keep(s, w->channel, still_of(&dead->stands[i]));
        }
    }
    return rc;
}

static int keep_found(struct search *s)
{
    int rc = 0;
    for (size_t k = 0; !rc && k < s->n; k++) {
        struct watch *w = &s->watches[k];
        bool any = false;
        for (size_t i = 0; !rc && i < w->n; i++) {
            any |= w->stands[i].dead;
            if (w->stands[i].dead)
                rc = keep(s, w->channel, still_of(&w->stands[i]));
        }
        if (!rc && !any)
            rc = keep_beside(s, w);
    }
    return rc;
}

static int find_watches(struct search *s, int series)
{
    size_t n, own = 0;
    bool any = false;
    const struct nrg_recorded_channel *channels = nrg_recording_channels(s->recording, &n);
    for (size_t i = 0; i < n; i++)
        own += channels[i].series == series;
    s->watches = nrg_calloc(own + 1, sizeof *s->watches);
    if (!s->watches)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        if (channels[i].series != series || !counts_energy(&channels[i].channel))
            continue;
        s->watches[s->n++].channel = &channels[i];
        any |= nrg_least_w(&channels[i].channel) > 0 || gauge_of(s->recording, &channels[i]);
    }
    s->n = any ? s->n : 0;
    return 0;
}

static int search_series(struct search *s, int series)
{
    int rc = find_watches(s, series);
    if (!rc && s->n)
        rc = nrg_recording_read_series(s->recording, series, on_rows, s, NULL);
    for (size_t k = 0; !rc && k < s->n; k++) {
        struct watch *w = &s->watches[k];
        rc = w->now.seen ? note_stand(w, INT64_MAX, NAN) : 0;
        learn_steps(w);
        if (!rc)
            rc = ask_gauge(s, w);
        judge(w);
    }
    return rc ? rc : keep_found(s);
}

static bool was_looked_at(const struct nrg_stills *all, int series)
{
    for (size_t i = 0; i < all->n_series; i++)
        if (all->series[i] == series)
            return true;
    return false;
}

int nrg_stills_find(struct nrg_recording *recording, int series)
{
    struct nrg_stills **all = nrg_recording_stills(recording);
    struct search search = {.recording = recording};
    if (!*all && !(*all = nrg_calloc(1, sizeof **all)))
        return -ENOMEM;
    if (was_looked_at(*all, series))
        return 0;
    int rc =
        nrg_append(&(*all)->series, &(*all)->n_series, &(*all)->cap_series, &series, sizeof series);
    rc = rc ? rc : search_series(&search, series);
    for (size_t k = 0; search.watches && k < search.n; k++)
        free(search.watches[k].stands);
    free(search.watches);
    return rc;
}

void nrg_stills_free(struct nrg_stills *all)
{
    for (size_t i = 0; all && i < all->n; i++)
        free(all->lists[i].items);
    if (all) {
        free(all->lists);
        free(all->series);
    }
    free(all);
}

const struct nrg_still *nrg_stills_of(const struct nrg_recording *recording,
                                      const struct nrg_recorded_channel *c, size_t *n)
{
    const struct list *list = list_of(stills_of(recording), c);
    *n = list ? list->n : 0;
    return list ? list->items : NULL;
}

/* The last one that begins before t_ns; NULL. */
static const struct nrg_still *begun_before(const struct nrg_recording *recording,
                                            const struct nrg_recorded_channel *c, int64_t t_ns)
{
    size_t n;
    const struct nrg_still *stills = nrg_stills_of(recording, c, &n);
    size_t begun = n ? nrg_count_below(&stills->from_ns, n, sizeof *stills, t_ns) : 0;
    return begun ? &stills[begun - 1] : NULL;
}

bool nrg_is_still(const struct nrg_recording *recording, const struct nrg_recorded_channel *c,
                  int64_t t_ns)
{
    const struct nrg_still *still = begun_before(recording, c, t_ns);
    return still && t_ns < still->to_ns;
}

double nrg_counted_step(const struct nrg_recording *recording, const struct nrg_recorded_channel *c,
                        int64_t last_raw, int64_t raw, int64_t last_ns, int64_t t_ns, bool *wrapped)
{
    const struct nrg_still *still = begun_before(recording, c, t_ns);
    double step = nrg_recorded_step(recording, &c->channel, last_raw, raw, last_ns, t_ns, wrapped);
    if (!still || !still->gap || last_ns >= still->to_ns)
        return step;
    if (wrapped)
        *wrapped = false;
    /* It may be a register that can't be read, and stands still from there on (integrate.h). */
    return step == NRG_STEP_BACKWARDS ? step : NRG_STEP_STILL;
}
