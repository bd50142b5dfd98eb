/*
 * The simulated machine as files that a user could have:
 *
 *     layer-simulator DIR [NAME=VALUE ...]
 *
 *     DIR/power.csv      time_s,package-0:energy_j (counters) or package-0:power_w (gauges)
 *     DIR/power.log      the same of a gauge as a Jetson power log (8 mA steps are up to `quantum`)
 *     DIR/layers.json    [{layer: {elapsed_time (ms), start_time (unix s)}}], an object per step
 *     DIR/truth.json     joules per layer, idle and total, as they were
 *
 * NAME is a field of struct sim_options; sensor is counter, instant, mean, average, filter or
 * window.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "simulator/sim.h"

#define MILLIVOLT 5000

static const char *const sensors[] = {"counter", "instant", "mean", "average", "filter", "window"};

static const struct field {
    const char *name;
    size_t offset;
    bool count;
} fields[] = {
#define REAL(name)                                                                                 \
    {                                                                                              \
#name, offsetof(struct sim_options, name), false                                           \
    }
#define COUNT(name)                                                                                \
    {                                                                                              \
#name, offsetof(struct sim_options, name), true                                            \
    }
    COUNT(layers),   COUNT(steps),       COUNT(seldom),  COUNT(twins),        REAL(shortest_s),
    REAL(longest_s), REAL(jitter),       REAL(low_w),    REAL(high_w),        REAL(idle_w),
    REAL(gap_s),     REAL(span_stamp_s), REAL(period_s), REAL(update_s),      REAL(memory_s),
    REAL(quantum),   REAL(noise),        REAL(stamp_s),  REAL(read_jitter_s), REAL(stamp_jitter_s),
    REAL(wrap_j),    REAL(drift),
};

static void refuse(const char *what, const char *which)
{
    fprintf(stderr, "layer-simulator: %s: %s\n", which, what);
    exit(2);
}

static void set_option(struct sim_options *o, const char *arg)
{
    const char *equals = strchr(arg, '=');
    if (!equals)
        refuse("NAME=VALUE is wanted", arg);
    size_t len = (size_t)(equals - arg);
    if (len == 4 && !strncmp(arg, "seed", len)) {
        o->seed = strtoull(equals + 1, NULL, 10);
        return;
    }
    if (len == 6 && !strncmp(arg, "sensor", len)) {
        for (int i = 0; i < 6; i++)
            if (!strcmp(equals + 1, sensors[i])) {
                o->sensor = (enum sim_sensor)i;
                return;
            }
        refuse("no such sensor", equals + 1);
    }
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (strlen(fields[i].name) != len || strncmp(arg, fields[i].name, len))
            continue;
        if (fields[i].count)
            *(size_t *)((char *)o + fields[i].offset) = strtoul(equals + 1, NULL, 10);
        else
            *(double *)((char *)o + fields[i].offset) = strtod(equals + 1, NULL);
        return;
    }
    refuse("no such option", arg);
}

static FILE *create(const char *dir, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    if (!f)
        refuse("can't be written", path);
    return f;
}

static void write_csv(const struct sim_machine *m, const char *dir)
{
    FILE *f = create(dir, "power.csv");
    bool counter = m->options.sensor == SIM_COUNTER;
    fprintf(f, "time_s,package-0:%s\n", counter ? "energy_j" : "power_w");
    for (size_t i = 0; i < m->n_readings; i++) {
        const struct sim_reading *r = &m->readings[i];
        fprintf(f, "%lld.%09lld,%.6f\n", (long long)(r->t_ns / 1000000000),
                (long long)(r->t_ns % 1000000000), (double)r->raw * m->options.quantum);
    }
    fclose(f);
}

static void write_jetson(const struct sim_machine *m, const char *dir)
{
    if (m->options.sensor == SIM_COUNTER)
        return;
    FILE *f = create(dir, "power.log");
    for (size_t i = 0; i < m->n_readings; i++) {
        const struct sim_reading *r = &m->readings[i];
        time_t s = (time_t)(r->t_ns / 1000000000);
        struct tm tm;
        char text[32];
        strftime(text, sizeof text, "%Y%m%d-%H:%M:%S", gmtime_r(&s, &tm));
        fprintf(f, "%s.%06lld,%d,%.0f\n", text, (long long)(r->t_ns % 1000000000 / 1000), MILLIVOLT,
                (double)r->raw * m->options.quantum * 1e6 / MILLIVOLT);
    }
    fclose(f);
}

/* A step's calls follow one another, and the first layer begins the next step. */
static void write_layers(const struct sim_machine *m, const char *dir)
{
    FILE *f = create(dir, "layers.json");
    fputc('[', f);
    for (size_t i = 0; i < m->n_calls; i++) {
        const struct sim_call *c = &m->calls[i];
        bool first = !i || c->layer <= m->calls[i - 1].layer;
        fprintf(f, "%s\"layer%02u\": {\"elapsed_time\": %.17g, \"start_time\": %.17g}",
                !first ? ", "
                : i    ? "},\n {"
                       : "{",
                c->layer, (double)(c->end_ns - c->begin_ns) / 1e6, (double)c->begin_ns / 1e9);
    }
    fprintf(f, "%s]\n", m->n_calls ? "}" : "");
    fclose(f);
}

static void write_truth(const struct sim_machine *m, const char *dir)
{
    FILE *f = create(dir, "truth.json");
    fprintf(f,
            "{\"total_j\": %.12g, \"idle_j\": %.12g, \"idle_w\": %.12g, \"duration_s\": %.12g,\n",
            m->total_j, m->idle_j, m->options.idle_w, m->end_s);
    fprintf(f, " \"layers\": [");
    for (size_t i = 0; i < m->options.layers; i++)
        fprintf(f,
                "%s\n  {\"name\": \"layer%02zu\", \"time_s\": %.12g, \"energy_j\": %.12g, "
                "\"energy_with_idle_j\": %.12g}",
                i ? "," : "", i, m->time_s[i], m->energy_j[i],
                m->energy_j[i] + m->options.idle_w * m->time_s[i]);
    fprintf(f, "]}\n");
    fclose(f);
}

int main(int argc, char **argv)
{
    struct sim_options options = sim_defaults();
    struct sim_machine machine;
    if (argc < 2)
        refuse("a directory is wanted", "usage");
    for (int i = 2; i < argc; i++)
        set_option(&options, argv[i]);
    sim_run(&machine, &options);
    write_csv(&machine, argv[1]);
    write_jetson(&machine, argv[1]);
    write_layers(&machine, argv[1]);
    write_truth(&machine, argv[1]);
    sim_release(&machine);
    return 0;
}
