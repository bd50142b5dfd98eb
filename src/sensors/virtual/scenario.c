/*
 * Parser of scenarios; the format stands at the head of scenario.h.
 *
 * One pass over the lines. The first word of a line picks a handler from a table; handlers take
 * the remaining words one by one and report the first error with its line number.
 * What needs the whole file is checked at the end, by scenario_check.c.
 *
 * Every number is checked against a range that keeps later arithmetic inside int64 ns and exact
 * in double; counts are limited before memory is reserved. Text is bytes: control characters and
 * bad UTF-8 are simply unknown words and are shown as '?'.
 */
#include "sensors/virtual/scenario.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/root.h"
#include "base/words.h"
#include "sensors/virtual/internal.h"

#define MAX_TIME_NS  (INT64_C(10) * 366 * 86400 * NRG_NS_PER_S) /* ten years */
#define MAX_POWER_W  1e9
#define MAX_ENERGY_J 1e15

/* Reads the next word; false at the end of the line. One that does not fit becomes "?": no valid
 * word is that long, so it is refused like any unknown one. */
static bool next_word(struct nrg_parser *s)
{
    size_t len;
    const char *field = nrg_next_field(&s->p, s->end, &len);
    s->word[0] = '\0';
    if (!field)
        return false;
    bool fits = len < sizeof s->word && !memchr(field, '\0', len);
    nrg_copy_clean(s->shown, sizeof s->shown, field, len);
    snprintf(s->word, sizeof s->word, "%.*s", fits ? (int)len : 1, fits ? field : "?");
    return true;
}

static int want_word(struct nrg_parser *s, const char *what)
{
    return next_word(s) ? 0 : REFUSE(s, "%s is missing at the end of the line", what);
}

static int parse_time(struct nrg_parser *s, const char *text, const char *what, int64_t *out_ns)
{
    int rc = nrg_parse_duration_ns(text, out_ns);
    if (rc || *out_ns > MAX_TIME_NS)
        return REFUSE(s, "%s wants a time such as 250ms or 5s (at most ten years), not '%s'", what,
                      s->shown);
    return 0;
}

static int parse_number(struct nrg_parser *s, const char *text, const struct nrg_word_unit *units,
                        double min, double max, const char *what, double *out)
{
    if (nrg_word_number(text, units, out) || !(*out >= min && *out <= max))
        return REFUSE(s, "%s: '%s' is not a number from %g to %g with unit %s", what, s->shown, min,
                      max, units->name);
    return 0;
}

static int word_time(struct nrg_parser *s, const char *what, int64_t *out_ns)
{
    int rc = want_word(s, what);
    return rc ? rc : parse_time(s, s->word, what, out_ns);
}

static int word_number(struct nrg_parser *s, const struct nrg_word_unit *units, double min,
                       double max, const char *what, double *out)
{
    int rc = want_word(s, what);
    return rc ? rc : parse_number(s, s->word, units, min, max, what, out);
}

static int parse_seed(struct nrg_parser *s)
{
    int rc = want_word(s, "seed");
    if (!rc && s->scenario->n_domains)
        return REFUSE(s, "seed belongs before the first domain");
    if (!rc && nrg_parse_u64(s->word, strlen(s->word), &s->scenario->seed))
        return REFUSE(s, "seed wants a whole number, not '%s'", s->shown);
    return rc;
}

static bool good_name(const char *name)
{
    for (const char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("-_.:+", *p))
            return false;
    return strlen(name) < sizeof((struct nrg_scenario_domain *)0)->name;
}

static int parse_domain(struct nrg_parser *s)
{
    struct nrg_scenario *scenario = s->scenario;
    int rc = want_word(s, "the domain's name");
    if (rc)
        return rc;
    if (!good_name(s->word))
        return REFUSE(s, "'%s' is not a domain name (letters, digits and -_.:+, at most 47)",
                      s->shown);
    if (scenario->n_domains == NRG_SCENARIO_DOMAINS)
        return REFUSE(s, "more than %d domains", NRG_SCENARIO_DOMAINS);
    struct nrg_scenario_domain domain = {.line = s->line, .update_ns = NRG_NS_PER_MS};
    nrg_copy(domain.name, sizeof domain.name, s->word);
    if (nrg_append(&scenario->domains, &scenario->n_domains, &scenario->cap_domains, &domain,
                   sizeof domain))
        return nrg_fail(s->err, -ENOMEM, s->where, "out of memory");
    s->domain = &scenario->domains[scenario->n_domains - 1];
    return 0;
}

static int add_point(struct nrg_parser *s, int64_t t_ns, double power_w)
{
    struct nrg_scenario_domain *d = s->domain;
    if (d->n_points == NRG_SCENARIO_POINTS)
        return REFUSE(s, "more than %d points", NRG_SCENARIO_POINTS);
    int64_t last_ns = d->n_points ? d->points[d->n_points - 1].t_ns : -1;
    if (t_ns < last_ns || (t_ns == last_ns && d->shape == NRG_SHAPE_STEPS))
        return REFUSE(s, "'%s' is not later than the point before it", s->shown);
    if (nrg_append(&d->points, &d->n_points, &d->cap_points,
                   &(struct nrg_scenario_point){t_ns, power_w}, sizeof *d->points))
        return nrg_fail(s->err, -ENOMEM, s->where, "out of memory");
    return 0;
}

static int parse_points(struct nrg_parser *s)
{
    int rc = want_word(s, "TIME:WATTS");
    do {
        double power_w = 0;
        int64_t t_ns = 0;
        char *colon = rc ? NULL : strchr(s->word, ':');
        if (!rc && !colon)
            return REFUSE(s, "'%s' is not TIME:WATTS, such as 5s:80", s->shown);
        if (!rc) {
            *colon = '\0';
            rc = parse_time(s, s->word, "a point", &t_ns);
        }
        if (!rc)
            rc = parse_number(s, colon + 1, nrg_units_w, 0, MAX_POWER_W, "power", &power_w);
        if (!rc)
            rc = add_point(s, t_ns, power_w);
    } while (!rc && next_word(s));
    return rc;
}

static int set_shape(struct nrg_parser *s, enum nrg_scenario_shape shape)
{
    if (s->domain->shape)
        return REFUSE(s, "%s has a power, ramp or burst already", s->domain->name);
    s->domain->shape = shape;
    return 0;
}

static int parse_power(struct nrg_parser *s)
{
    const char *line = s->p;
    double power_w;
    int rc = set_shape(s, NRG_SHAPE_STEPS);
    if (!rc)
        rc = want_word(s, "power");
    if (rc)
        return rc;
    if (strchr(s->word, ':')) {
        s->p = line;
        return parse_points(s);
    }
    rc = parse_number(s, s->word, nrg_units_w, 0, MAX_POWER_W, "power", &power_w);
    return rc ? rc : add_point(s, 0, power_w);
}

static int parse_ramp(struct nrg_parser *s)
{
    int rc = set_shape(s, NRG_SHAPE_RAMP);
    return rc ? rc : parse_points(s);
}

static int parse_burst_value(struct nrg_parser *s, const char *key, const char *text, double *duty)
{
    struct nrg_scenario_domain *d = s->domain;
    if (!strcmp(key, "period"))
        return parse_time(s, text, "period", &d->burst_period_ns);
    if (!strcmp(key, "duty"))
        return parse_number(s, text, nrg_units_ratio, 0, 1, "duty", duty);
    if (!strcmp(key, "low"))
        return parse_number(s, text, nrg_units_w, 0, MAX_POWER_W, "low", &d->burst_low_w);
    if (!strcmp(key, "high"))
        return parse_number(s, text, nrg_units_w, 0, MAX_POWER_W, "high", &d->burst_high_w);
    return REFUSE(s, "burst knows period=, duty=, low= and high=, not '%s'", s->shown);
}

static int parse_burst(struct nrg_parser *s)
{
    struct nrg_scenario_domain *d = s->domain;
    double duty = -1;
    int rc = set_shape(s, NRG_SHAPE_BURST);
    d->burst_high_w = -1;
    while (!rc && next_word(s)) {
        char *equals = strchr(s->word, '=');
        if (!equals)
            return REFUSE(s, "burst wants period=100ms duty=0.3 low=10 high=90, not '%s'",
                          s->shown);
        *equals = '\0';
        rc = parse_burst_value(s, s->word, equals + 1, &duty);
    }
    if (!rc && (d->burst_period_ns < 1000 || duty < 0 || d->burst_high_w < 0))
        return REFUSE(s, "burst needs period= (1us or more), duty= and high=");
    if (!rc)
        d->burst_on_ns = (int64_t)llround(duty * (double)d->burst_period_ns);
    return rc;
}

static int parse_kind(struct nrg_parser *s)
{
    int rc = want_word(s, "counter or gauge");
    if (rc)
        return rc;
    s->domain->gauge = !strcmp(s->word, "gauge");
    if (!s->domain->gauge && strcmp(s->word, "counter"))
        return REFUSE(s, "kind is counter or gauge, not '%s'", s->shown);
    return 0;
}

static int parse_update(struct nrg_parser *s)
{
    int rc = word_time(s, "update", &s->domain->update_ns);
    if (!rc && s->domain->update_ns < 1000)
        return REFUSE(s, "update is 1us or more");
    return rc;
}

/* The kind may stand below: the unit decides here, and scenario_check.c compares the two. */
static int parse_quantum(struct nrg_parser *s)
{
    struct nrg_scenario_domain *d = s->domain;
    int rc = want_word(s, "quantum");
    if (rc)
        return rc;
    size_t len = strlen(s->word);
    bool watts = len && s->word[len - 1] == 'W';
    rc = parse_number(s, s->word, watts ? nrg_units_w : nrg_units_j, 1e-9, 1e6, "quantum",
                      &d->quantum);
    if (!rc && watts)
        d->quantum = -d->quantum;
    return rc;
}

static int parse_parent(struct nrg_parser *s)
{
    int rc = want_word(s, "the parent's name");
    if (!rc && !good_name(s->word))
        return REFUSE(s, "'%s' is not a domain name", s->shown);
    if (!rc)
        nrg_copy(s->domain->parent, sizeof s->domain->parent, s->word);
    s->domain->parent_line = s->line;
    return rc;
}

static int parse_joules_from(struct nrg_parser *s)
{
    int rc = want_word(s, "the file's name");
    if (!rc && !good_name(s->word))
        return REFUSE(s, "'%s' is not the name of a file beside the scenario", s->shown);
    if (!rc)
        nrg_copy(s->domain->follows, sizeof s->domain->follows, s->word);
    return rc;
}

static int parse_fault_kind(struct nrg_parser *s, struct nrg_scenario_fault *fault)
{
    static const struct {
        const char *word;
        enum nrg_scenario_fault_kind kind;
    } kinds[] = {{"stuck", NRG_FAULT_STUCK},
                 {"freeze", NRG_FAULT_FREEZE},
                 {"backwards", NRG_FAULT_BACKWARDS},
                 {"gone", NRG_FAULT_GONE}};
    fault->kind = NRG_FAULT_ERROR;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(s->word, kinds[i].word))
            fault->kind = kinds[i].kind;
    fault->error = fault->kind == NRG_FAULT_ERROR ? nrg_word_errno(s->word) : 0;
    if (fault->kind == NRG_FAULT_ERROR && !fault->error)
        return REFUSE(s,
                      "'%s' is not a fault: an errno name such as EIO, or stuck, freeze, "
                      "backwards, gone",
                      s->shown);
    return 0;
}

static int parse_fault(struct nrg_parser *s)
{
    struct nrg_scenario_domain *d = s->domain;
    struct nrg_scenario_fault fault = {.end_ns = INT64_MAX};
    int64_t for_ns;
    int rc = word_time(s, "fault", &fault.start_ns);
    if (!rc)
        rc = want_word(s, "what goes wrong");
    if (!rc)
        rc = parse_fault_kind(s, &fault);
    if (!rc && fault.kind == NRG_FAULT_BACKWARDS)
        rc = word_number(s, nrg_units_j, 0, MAX_ENERGY_J, "backwards", &fault.energy_j);
    else if (!rc && fault.kind != NRG_FAULT_GONE && next_word(s)) {
        rc = parse_time(s, s->word, "fault", &for_ns);
        fault.end_ns = rc ? 0 : fault.start_ns + for_ns;
    }
    if (!rc && d->n_faults == NRG_SCENARIO_FAULTS)
        return REFUSE(s, "more than %d faults", NRG_SCENARIO_FAULTS);
    if (!rc && nrg_append(&d->faults, &d->n_faults, &d->cap_faults, &fault, sizeof fault))
        return nrg_fail(s->err, -ENOMEM, s->where, "out of memory");
    return rc;
}

#define FIELD(name) .offset = offsetof(struct nrg_scenario_domain, name)

/* A line is parsed by a function, or sets a field of the domain. */
static const struct handler {
    const char *word;
    int (*parse)(struct nrg_parser *);
    bool outside; /* needs no domain */
    enum { FUNCTION, NUMBER, TIME, FLAG } is;
    const struct nrg_word_unit *units; /* of a number, as are the next two */
    double least, most;
    size_t offset;
} handlers[] = {
    {"seed", .parse = parse_seed, .outside = true},
    {"domain", .parse = parse_domain, .outside = true},
    {"power", .parse = parse_power},
    {"ramp", .parse = parse_ramp},
    {"burst", .parse = parse_burst},
    {"per-busy-cpu", .is = NUMBER, .units = nrg_units_w, .most = MAX_POWER_W,
     FIELD(per_busy_cpu_w)},
    {"joules-from", .parse = parse_joules_from},
    {"kind", .parse = parse_kind},
    {"update", .parse = parse_update},
    {"lag", .is = TIME, FIELD(lag_ns)},
    {"quantum", .parse = parse_quantum},
    {"noise", .is = NUMBER, .units = nrg_units_ratio, .most = 1, FIELD(noise)},
    {"wrap", .is = NUMBER, .units = nrg_units_j, .least = 1e-6, .most = MAX_ENERGY_J,
     FIELD(wrap_j)},
    {"start", .is = NUMBER, .units = nrg_units_j, .most = MAX_ENERGY_J, FIELD(start_j)},
    {"limit", .is = NUMBER, .units = nrg_units_w, .most = MAX_POWER_W, FIELD(limit_w)},
    {"parent", .parse = parse_parent},
    {"wide", .is = FLAG, FIELD(wide)},
    {"covers-cpu", .is = FLAG, FIELD(covers_cpu)},
    {"fault", .parse = parse_fault},
};

static int handle_line(struct nrg_parser *s, const struct handler *h)
{
    if (h->is == FUNCTION)
        return h->parse(s);
    void *field = (char *)s->domain + h->offset;
    if (h->is == NUMBER)
        return word_number(s, h->units, h->least, h->most, h->word, field);
    if (h->is == TIME)
        return word_time(s, h->word, field);
    *(bool *)field = true;
    return 0;
}

static int unknown_word(struct nrg_parser *s)
{
    struct nrg_guess guess = {.typed = s->word};
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++)
        nrg_guess_offer(&guess, handlers[i].word);
    if (guess.best)
        return REFUSE(s, "unknown word '%s': did you mean '%s'?", s->shown, guess.best);
    return REFUSE(s,
                  "unknown word '%s': a line starts with seed, domain, power, ramp, burst, "
                  "per-busy-cpu, joules-from, kind, update, lag, quantum, noise, wrap, start, "
                  "limit, parent, wide, covers-cpu or fault",
                  s->shown);
}

static int parse_line(struct nrg_parser *s)
{
    if (!next_word(s))
        return 0;
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++) {
        if (strcmp(s->word, handlers[i].word))
            continue;
        if (!s->domain && !handlers[i].outside)
            return REFUSE(s, "'%s' before the first domain line", s->word);
        int rc = handle_line(s, &handlers[i]);
        if (!rc && next_word(s))
            return REFUSE(s, "'%s' is more than '%s' takes", s->shown, handlers[i].word);
        return rc;
    }
    return unknown_word(s);
}

static int parse_text(struct nrg_parser *s, const char *text, size_t len)
{
    const char *end = text + len;
    int rc = 0;
    while (!rc && text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        const char *next = stop ? stop + 1 : end;
        stop = stop ? stop : end;
        const char *hash = memchr(text, '#', (size_t)(stop - text));
        s->line++;
        s->p = text;
        s->end = hash ? hash : stop;
        rc = parse_line(s);
        text = next;
    }
    return rc;
}

int nrg_scenario_parse(struct nrg_scenario *scenario, const char *where, const char *text,
                       size_t len, struct nrg_error *err)
{
    struct nrg_parser s = {.scenario = scenario, .where = where, .err = err};
    *scenario = (struct nrg_scenario){.seed = 1};
    if (len > NRG_SCENARIO_BYTES)
        return nrg_fail(err, -EFBIG, where, "larger than %d bytes", NRG_SCENARIO_BYTES);
    int rc = parse_text(&s, text, len);
    if (!rc)
        rc = nrg_scenario_check(&s);
    if (rc)
        nrg_scenario_release(scenario);
    return rc;
}

int nrg_scenario_load(struct nrg_scenario *scenario, const char *path, struct nrg_error *err)
{
    const struct nrg_root here = {.fd = -1};
    char *text;
    *scenario = (struct nrg_scenario){0};
    ssize_t len = nrg_root_read_all(&here, path, NRG_SCENARIO_BYTES, &text);
    if (len < 0)
        return nrg_fail(err, (int)len, path, "cannot read the scenario: %s", strerror((int)-len));
    int rc = nrg_scenario_parse(scenario, path, text, (size_t)len, err);
    free(text);
    return rc;
}

void nrg_scenario_release(struct nrg_scenario *scenario)
{
    for (size_t i = 0; i < scenario->n_domains; i++) {
        free(scenario->domains[i].points);
        free(scenario->domains[i].faults);
    }
    free(scenario->domains);
    *scenario = (struct nrg_scenario){0};
}

bool nrg_scenario_needs_busy_cpu(const struct nrg_scenario *scenario)
{
    for (size_t i = 0; i < scenario->n_domains; i++)
        if (scenario->domains[i].per_busy_cpu_w > 0)
            return true;
    return false;
}
