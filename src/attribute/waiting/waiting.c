/*
 * See waiting.h. The engine finds the joules of the states as it finds those of any spans: by a
 * regression where states come often enough, else by integration. A regression that can't tell two
 * states apart gives one of them the energy of both; that would be an answer to nobody's question
 * here, so then integration bounds each of them. Work is as many states as kernels that matter, as
 * far as a regression can have so many.
 *
 * The joules of several kinds have no common interval in the rows but where a row holds them, as
 * `waiting` does; elsewhere the ends are added up, which is the worst case.
 */
#include "attribute/waiting/waiting.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/waiting/internal.h"
#include "base/mem.h"

#define MOST_OFF 0.05

/* What a regression leaves unexplained it may have given to the wrong state, because kernels differ
 * in power; far more than that is the sensor's noise, which the row's interval has already. */
static void use_of_row(struct nrg_wait_use *use, const struct nrg_attribution_row *row,
                       double residual)
{
    double off_j = isnan(residual) ? 0 : fmin(residual, MOST_OFF) * row->energy_j;
    *use = (struct nrg_wait_use){row->time_s, row->energy_j, fmax(0, row->low_j - off_j),
                                 row->high_j + off_j};
}

static double residual_of(const struct nrg_attribution *a, const char *name)
{
    for (size_t i = 0; i < a->n_domains; i++)
        if (!strcmp(a->domains[i].domain->channel->channel.name, name))
            return a->domains[i].residual;
    return NAN;
}

static struct nrg_wait_use *find_use(struct nrg_waiting_device *device, const char *name)
{
    if (!strcmp(name, NRG_WAITING_NAME))
        return &device->waiting;
    for (int kind = 0; kind < NRG_WAIT_KINDS; kind++)
        if (!strcmp(name, nrg_wait_kind_name((enum nrg_wait_kind)kind)))
            return &device->kinds[kind];
    return NULL;
}

/* Rows come in the order of a walk: what follows a device is its own. */
static void take_rows(struct nrg_waiting *w, const struct nrg_attribution *a)
{
    struct nrg_waiting_device *device = NULL;
    for (size_t i = 0; i < a->n_rows; i++) {
        const struct nrg_attribution_row *row = &a->rows[i];
        if (!row->depth) {
            device = NULL;
            for (size_t d = 0; d < w->n; d++)
                if (!strcmp(w->devices[d].name, row->name))
                    device = &w->devices[d];
        }
        struct nrg_wait_use *use = !device      ? NULL
                                   : row->depth ? find_use(device, row->name)
                                                : &device->all;
        if (!use)
            continue;
        use_of_row(use, row, row->depth ? residual_of(a, device->name) : NAN);
        device->flags |= row->flags;
        device->method = row->method;
    }
}

static void add_use(struct nrg_wait_use *to, const struct nrg_wait_use *from)
{
    to->seconds += from->seconds;
    to->energy_j += from->energy_j;
    to->low_j += from->low_j;
    to->high_j += from->high_j;
}

static struct nrg_wait_power power_of(const struct nrg_waiting_device *device, bool active)
{
    struct nrg_wait_use sum = {0};
    for (int kind = 0; kind < NRG_WAIT_KINDS; kind++)
        if (nrg_wait_kind_is_active((enum nrg_wait_kind)kind) == active &&
            device->kinds[kind].seconds > 0)
            add_use(&sum, &device->kinds[kind]);
    if (!(sum.seconds > 0) || isnan(sum.energy_j) || !device->kernels)
        return (struct nrg_wait_power){NAN, NAN, NAN};
    return (struct nrg_wait_power){sum.energy_j / sum.seconds, sum.low_j / sum.seconds,
                                   sum.high_j / sum.seconds};
}

/* Power while the program was not there, from the baseline. */
static struct nrg_wait_power baseline_of(struct nrg_frame *frame,
                                         const struct nrg_attribution_domain *domain)
{
    const struct nrg_recorded_channel *channel = domain->domain->channel;
    size_t index = (size_t)(channel - frame->channels);
    double power_w = nrg_frame_baseline_rate(frame, index);
    double off_w = nrg_frame_baseline_doubt(frame, index);
    return (struct nrg_wait_power){power_w,
                                   fmax(0, power_w - off_w) * (1 - channel->channel.error_low),
                                   (power_w + off_w) * (1 + channel->channel.error_high)};
}

/* A GPU that waits draws at least what it does without the program. What a regression gives it less
 * than that is what it gives to work. */
static void bound_static(struct nrg_waiting_device *device, double least_w)
{
    struct nrg_wait_use *work = &device->kinds[NRG_WAIT_NOT], *waiting = &device->waiting;
    double low_j = 0;
    for (int kind = 0; kind < NRG_WAIT_KINDS; kind++) {
        struct nrg_wait_use *use = &device->kinds[kind];
        if (nrg_wait_kind_is_active((enum nrg_wait_kind)kind) || !(use->seconds > 0))
            continue;
        double least_j = least_w * use->seconds, more_j = fmax(0, least_j - use->energy_j);
        use->energy_j += more_j;
        use->low_j = fmax(use->low_j, least_j);
        use->high_j = fmax(use->high_j, use->energy_j);
        waiting->energy_j += more_j;
        work->energy_j -= more_j;
        low_j += use->low_j;
    }
    waiting->low_j = fmin(fmax(waiting->low_j, low_j), waiting->energy_j);
    waiting->high_j = fmax(waiting->high_j, waiting->energy_j);
    work->low_j = fmin(work->low_j, work->energy_j);
}

static int set_powers(struct nrg_waiting *w, const struct nrg_attribution *whole,
                      struct nrg_recording *recording)
{
    struct nrg_frame frame;
    int rc = nrg_frame_init(&frame, recording);
    if (rc)
        return rc;
    for (size_t d = 0; d < w->n; d++) {
        struct nrg_waiting_device *device = &w->devices[d];
        device->idle = (struct nrg_wait_power){NAN, NAN, NAN};
        for (size_t i = 0; i < whole->n_domains; i++) {
            if (strcmp(whole->domains[i].domain->channel->channel.name, device->name) != 0)
                continue;
            device->idle = baseline_of(&frame, &whole->domains[i]);
            /* of a baseline in which others ran, it says another source */
            if (!strcmp(whole->domains[i].idle_source, "baseline") && device->kernels)
                bound_static(device, device->idle.low_w);
        }
        device->active = power_of(device, true);
        device->static_ = power_of(device, false);
    }
    nrg_frame_release(&frame);
    return 0;
}

/* Sums over the devices; where the energy of some is known, over these. */
static void add_devices(struct nrg_waiting *w)
{
    bool known = false;
    for (size_t d = 0; d < w->n; d++)
        known |= !isnan(w->devices[d].all.energy_j);
    for (size_t d = 0; d < w->n; d++)
        if (!known || !isnan(w->devices[d].all.energy_j)) {
            add_use(&w->all, &w->devices[d].all);
            add_use(&w->waiting, &w->devices[d].waiting);
        }
    w->share = w->low = w->high = NAN;
    w->time_share = w->all.seconds > 0 ? w->waiting.seconds / w->all.seconds : NAN;
    if (known && w->all.energy_j > 0) {
        w->share = w->waiting.energy_j / w->all.energy_j;
        w->low = fmin(w->share, fmax(0, w->waiting.low_j / w->all.energy_j));
        w->high = fmax(w->share, fmin(1, w->waiting.high_j / w->all.energy_j));
    }
}

/* Nothing can be told of a device whose kernels were not traced and that never waited for data. */
static void drop_untold(struct nrg_waiting *w)
{
    size_t n = 0;
    for (size_t d = 0; d < w->n; d++)
        if (w->devices[d].all.seconds > 0 &&
            (w->devices[d].kernels || w->devices[d].waiting.seconds > 0))
            w->devices[n++] = w->devices[d];
    w->n = n;
}

/* A state that did not occur took no time and no energy; one whose energy is not known says so. */
static void init_device(struct nrg_waiting_device *device, const struct nrg_state_device *from)
{
    *device = (struct nrg_waiting_device){.kernels = from->kernels};
    nrg_copy(device->name, sizeof device->name, from->domain);
    nrg_copy(device->rank, sizeof device->rank, from->rank);
}

static int attribute_states(struct nrg_attribution *a, struct nrg_states *states,
                            struct nrg_recording *recording,
                            const struct nrg_attribution_options *options, struct nrg_error *err)
{
    struct nrg_span_catalog catalog;
    int rc = nrg_states_catalog(states, &catalog);
    if (rc)
        return nrg_fail(err, rc, NULL, "out of memory");
    const struct nrg_span_source source = nrg_states_source(states);
    const struct nrg_given_spans given = {&catalog, &source};
    rc = nrg_attribution_of(a, recording, options, &given, err);
    nrg_span_catalog_release(&catalog);
    return rc;
}

/* Kernels that can't be told from each other are work all the same. */
static bool has_merged(const struct nrg_attribution *a)
{
    struct nrg_waiting_device none;
    for (size_t i = 0; i < a->n_rows; i++)
        if (a->rows[i].flags & NRG_ROW_MERGED && find_use(&none, a->rows[i].name))
            return true;
    return false;
}

static bool is_regressed(const struct nrg_attribution *a)
{
    for (size_t i = 0; i < a->n_domains; i++)
        if (a->domains[i].method != NRG_METHOD_REGRESS)
            return false;
    return true;
}

/* Whether anything can be told of a device: else nobody sees what its states used. */
static bool is_told(const struct nrg_states *states, size_t device)
{
    bool told = states->devices[device].kernels;
    for (size_t i = 0; i < states->n && !told; i++)
        told = states->changes[i].device == device && states->changes[i].state > NRG_WAIT_NOT &&
               states->changes[i].state < NRG_WAIT_KINDS;
    return told;
}

static bool is_any_told(const struct nrg_states *states)
{
    for (size_t d = 0; d < states->n_devices; d++)
        if (is_told(states, d))
            return true;
    return false;
}

/* The domains of devices that were attributed. */
static const char **wanted_domains(struct nrg_arena *memory, const struct nrg_states *states,
                                   const struct nrg_attribution *whole)
{
    const char **names = nrg_arena_array(memory, states->n_devices + 1, sizeof *names);
    size_t n = 0;
    for (size_t d = 0; names && d < states->n_devices; d++)
        for (size_t i = 0; i < whole->n_domains; i++)
            if (!strcmp(whole->domains[i].domain->channel->channel.name, states->devices[d].domain))
                names[n++] = states->devices[d].domain;
    return names;
}

static int make_from_states(struct nrg_waiting *w, struct nrg_states *states,
                            struct nrg_recording *recording,
                            const struct nrg_attribution_options *options,
                            const struct nrg_attribution *whole, struct nrg_error *err)
{
    struct nrg_attribution a;
    struct nrg_arena memory = {0};
    struct nrg_attribution_options how = *options;
    how.idle = NRG_IDLE_NONE;
    how.by = NRG_BY_PATH;
    how.idle_w = NAN;
    how.buckets = 0;
    how.before = whole;
    how.per = NULL;
    if (nrg_method_reads(how.method) || how.method == NRG_METHOD_CPU_TIME)
        how.method = NRG_METHOD_AUTO;
    how.domains = wanted_domains(&memory, states, whole);
    w->devices = nrg_calloc(states->n_devices, sizeof *w->devices);
    int rc = memory.failed || !w->devices ? nrg_fail(err, -ENOMEM, NULL, "out of memory")
                                          : attribute_states(&a, states, recording, &how, err);
    if (!rc && states->n_kernels && !is_regressed(&a)) { /* too many kinds for it, maybe */
        nrg_attribution_release(&a);
        nrg_states_join_work(states);
        rc = attribute_states(&a, states, recording, &how, err);
    }
    if (!rc && has_merged(&a)) {
        nrg_attribution_release(&a);
        how.method = NRG_METHOD_INTEGRATE;
        rc = attribute_states(&a, states, recording, &how, err);
    }
    if (!rc) {
        for (; w->n < states->n_devices; w->n++)
            init_device(&w->devices[w->n], &states->devices[w->n]);
        take_rows(w, &a);
        rc = set_powers(w, whole, recording);
        if (rc)
            nrg_fail(err, rc, NULL, "out of memory");
        drop_untold(w);
        add_devices(w);
        nrg_attribution_release(&a);
    }
    nrg_arena_release(&memory);
    return rc;
}

int nrg_waiting_make(struct nrg_waiting *w, struct nrg_recording *recording,
                     const struct nrg_attribution_options *options,
                     const struct nrg_attribution *whole, struct nrg_error *err)
{
    struct nrg_states states;
    *w = (struct nrg_waiting){.share = NAN, .low = NAN, .high = NAN, .time_share = NAN};
    int rc = nrg_states_find(&states, recording, options->run, err);
    if (rc)
        return rc;
    if (states.n && is_any_told(&states))
        rc = make_from_states(w, &states, recording, options, whole, err);
    nrg_states_release(&states);
    if (rc)
        nrg_waiting_release(w);
    return rc;
}

void nrg_waiting_release(struct nrg_waiting *w)
{
    free(w->devices);
    *w = (struct nrg_waiting){0};
}
