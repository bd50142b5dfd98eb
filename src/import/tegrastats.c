/*
 * tegrastats of NVIDIA's Jetson boards, a line per interval. All generations of it:
 *
 *     RAM 613/3964MB (lfb 634x4MB) CPU [2%@102,off] GR3D_FREQ 0% POM_5V_IN 900/943 POM_5V_GPU 0/0
 *     ... GPU 0/0 CPU 311/311 SOC 932/932 CV 0/0 VDDRQ 155/155 SYS5V 1682/1682      (AGX Xavier)
 *     04-27-2026 14:59:41 RAM 775/7620MB ... VDD_IN 4761mW/4778mW VDD_SOC 1428mW/1428mW
 *     ... VDD_GPU_SOC 5139mW/5139mW/5139mW                        (now, mean, and the greatest)
 *
 * A rail is a word followed by numbers with slashes, in mW; the first is the value now, which
 * becomes a gauge. RAM and SWAP have the same form but a unit of bytes.
 *
 * Dates are whole seconds, and older versions print none. A line is placed one interval after the
 * last one, as far as its date allows: in [date, date + 1 s). The interval is the mean of the
 * file, pauses aside. Without dates the interval is the user's (--period) or tegrastats' own 1 s.
 *
 * Refuses lines without a rail and powers that no board has.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/parse.h"
#include "base/stats.h"
#include "import/internal.h"
#include "sensors/rails.h"
#include "sensors/virtual/replay_time.h"

#define STAMP          19 /* 04-27-2026 14:59:41 */
#define MAX_MW         1e6
#define PAUSE_NS       (3 * NRG_NS_PER_S) /* that 1 s intervals can't make */
#define OWN_PERIOD_NS  NRG_NS_PER_S
#define UNUSED_CHANNEL "NC"

struct tegra {
    bool dated;
    int64_t last_date_ns;
    /* first pass: from the first new second to the last one, without pauses */
    int64_t steps_ns;
    uint64_t steps, pauses;
    uint64_t in_second; /* lines since the last new second */
    bool began;         /* a new second has been seen */
    int64_t period_ns;  /* of a log with dates: known after the first pass */
    int64_t t_ns;       /* of the last line */
    uint64_t lines;     /* of the pass */
};

/* Date of the line; 0 or -EINVAL. */
static int read_date(const char *line, size_t len, int64_t *t_ns)
{
    char iso[24];
    if (len < STAMP || line[2] != '-' || line[5] != '-' || line[10] != ' ')
        return -EINVAL;
    snprintf(iso, sizeof iso, "%.4s-%.2s-%.2sT%.8s", line + 6, line, line + 3, line + 11);
    return nrg_time_from_iso(iso, strlen(iso), t_ns);
}

static bool is_tegrastats(const char *line, size_t len)
{
    int64_t t_ns;
    const char *at = line, *end = line + len;
    if (!read_date(line, len, &t_ns))
        at += STAMP;
    while (at < end && *at == ' ')
        at++;
    return end - at > 4 && !memcmp(at, "RAM ", 4) && memchr(at, '/', (size_t)(end - at));
}

/* "4761mW/4778mW", "900/943": the first number. False for anything else, such as "775/7620MB". */
static bool read_power(const char *text, size_t len, double *power_mw)
{
    const char *slash = memchr(text, '/', len), *end = text + len;
    double other;
    if (!slash)
        return false;
    for (const char *at = text; at < end; at = slash + 1) {
        slash = memchr(at, '/', (size_t)(end - at));
        slash = slash ? slash : end;
        size_t n = (size_t)(slash - at);
        if (n > 2 && !memcmp(at + n - 2, "mW", 2))
            n -= 2;
        size_t sign = n && at[0] == '-'; /* an idle rail of a chip with an offset */
        if (n <= sign || at[sign] < '0' || at[sign] > '9' ||
            nrg_parse_double(at, n, at == text ? power_mw : &other))
            return false;
    }
    return true;
}

static struct nrg_channel rail_channel(const char *label, size_t len)
{
    struct nrg_channel c = {.quantity = NRG_POWER,
                            .kind = NRG_GAUGE,
                            .scale = 1e-6,
                            .resolution = 1e-3,
                            .source = "tegrastats"};
    nrg_copy_clean(c.name, sizeof c.name, label, len);
    c.covers_cpu = nrg_rail_is_input(c.name) || strcasestr(c.name, "CPU");
    return c;
}

static int add_rails(struct nrg_import *im, const char *line, size_t len, struct nrg_error *err)
{
    const char *at = line, *end = line + len, *label = NULL, *field;
    size_t n, label_len = 0, rails = 0;
    double power_mw;
    int rc = 0;
    for (; !rc && (field = nrg_next_field(&at, end, &n)); label = field, label_len = n) {
        bool unused = !label || (label_len == 2 && !memcmp(label, UNUSED_CHANNEL, 2));
        if (unused || !read_power(field, n, &power_mw))
            continue;
        const struct nrg_channel c = rail_channel(label, label_len);
        rc = fabs(power_mw) <= MAX_MW ? nrg_import_value(im, &c, power_mw * 1e-3, err)
                                      : nrg_fail(err, -ERANGE, NULL, "%s is out of range", c.name);
        rails++;
    }
    if (rc || rails)
        return rc;
    return nrg_fail(err, -EINVAL, NULL,
                    "has no power rail: this board has no power sensor, or the line is cut off");
}

/* The time of a line: see the head of this file. */
static int64_t place_line(struct tegra *t, int64_t date_ns)
{
    int64_t next_ns = t->t_ns + t->period_ns, latest_ns = date_ns + NRG_NS_PER_S - 1;
    if (!t->lines++ || next_ns < date_ns)
        return date_ns;
    return next_ns > latest_ns ? latest_ns : next_ns;
}

static void note_step(struct tegra *t, int64_t dt_ns)
{
    bool pause = dt_ns > PAUSE_NS, counts = t->began && !pause;
    t->in_second++;
    if (!dt_ns)
        return;
    t->pauses += pause;
    t->steps += counts ? t->in_second : 0;
    t->steps_ns += counts ? dt_ns : 0;
    t->began = true;
    t->in_second = 0;
}

/* In the first pass lines are where their dates are. */
static int64_t line_time(struct nrg_import *im, int64_t date_ns)
{
    struct tegra *t = im->state;
    if (!t->dated)
        return (int64_t)t->lines++ * t->period_ns;
    if (!im->writing) {
        if (t->lines++)
            note_step(t, date_ns - t->last_date_ns);
        t->last_date_ns = date_ns;
        return date_ns;
    }
    return place_line(t, date_ns);
}

static int read_line(struct nrg_import *im, char *line, size_t len, struct nrg_error *err)
{
    struct tegra *t = im->state;
    int64_t date_ns = 0;
    bool dated = !read_date(line, len, &date_ns);
    if (!t->lines && !im->writing) {
        t->dated = dated;
        im->undated = !dated;
        t->period_ns = im->options->period_ns ? im->options->period_ns : OWN_PERIOD_NS;
    }
    if (dated != t->dated)
        return nrg_fail(err, -EINVAL, NULL,
                        dated ? "has a date, the lines before have none"
                              : "has no date, unlike the lines before");
    if (!is_tegrastats(line, len))
        return nrg_fail(err, -EINVAL, NULL, "is not a line of tegrastats");
    t->t_ns = line_time(im, date_ns - (dated ? im->options->zone_offset_ns : 0));
    int rc = nrg_import_begin(im, t->t_ns, 0, err);
    size_t skipped = dated ? STAMP : 0;
    if (!rc)
        rc = add_rails(im, line + skipped, len - skipped, err);
    return rc ? rc : nrg_import_end(im, err);
}

static bool is_there(const char *label, const void *arg)
{
    const struct nrg_import *im = arg;
    for (size_t i = 0; i < im->n_channels; i++)
        if (!strcmp(im->channels[i].name, label))
            return true;
    return false;
}

/* Mean time between lines. Where most lines are seconds apart, longer steps are no pauses. */
static void find_period(struct nrg_import *im)
{
    struct tegra *t = im->state;
    if (t->pauses > t->steps && im->spacing.n)
        t->period_ns = nrg_median_i64(im->spacing.items, im->spacing.n);
    else if (t->steps)
        t->period_ns = t->steps_ns / (int64_t)t->steps;
    else if (!t->pauses && t->lines) /* all within two seconds */
        t->period_ns = (im->last_ns - im->result.begin_ns + NRG_NS_PER_S) / (int64_t)t->lines;
}

static int finish(struct nrg_import *im, struct nrg_error *err)
{
    struct tegra *t = im->state;
    (void)err;
    if (!im->writing && t->dated && !im->options->period_ns)
        find_period(im);
    im->known_period_ns = t->period_ns;
    if (!t->dated && !im->options->period_ns)
        nrg_import_note(im, "its lines have no date: they are taken as 1 s apart, tegrastats' own "
                            "interval (--period says another)");
    for (size_t i = 0; i < im->n_channels; i++)
        nrg_copy(im->channels[i].parent, sizeof im->channels[i].parent,
                 nrg_rail_parent(im->channels[i].name, is_there, im));
    t->lines = 0;
    t->t_ns = 0;
    return 0;
}

const struct nrg_import_format nrg_import_tegrastats = {
    .name = "tegrastats",
    .match = is_tegrastats,
    .record = read_line,
    .finish = finish,
    .state_size = sizeof(struct tegra),
};
