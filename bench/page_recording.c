/*
 * A long recording for bench/page: page_recording FILE SECONDS RATE_HZ SPANS LATE_NS. Eight
 * channels (two packages with their cores, two memories, a GPU, psys) of random power, each reading
 * up to LATE_NS late, and steps of 10 modules over all of the time, by the recording's own writer.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "record/store/writer.h"

#define MODULES  10
#define CHANNELS 8
#define BATCH    16384
#define ZERO     (100 * NRG_NS_PER_S)

static const struct nrg_driver driver = {.name = "bench"};

static void must(int rc, const char *what)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "page_recording: %s\n", what);
    exit(1);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void put(struct nrg_store *store, int series, struct nrg_rows *rows)
{
    must(nrg_store_rows(store, series, rows), "rows");
    must(nrg_store_commit(store), "commit");
    rows->n = 0;
}

static void write_samples(struct nrg_store *store, int64_t end_ns, int64_t period_ns,
                          int64_t late_ns)
{
    static const char *const names[CHANNELS][2] = {
        {"package-0", ""}, {"package-1", ""}, {"core-0", "package-0"}, {"core-1", "package-1"},
        {"dram-0", ""},    {"dram-1", ""},    {"gpu-0", ""},           {"psys", ""}};
    struct nrg_channel channels[CHANNELS];
    bool wanted[CHANNELS];
    int series[CHANNELS];
    int64_t raw[CHANNELS] = {0};
    uint64_t state = 1234567, lateness = 7654321;
    struct nrg_rows rows;
    for (size_t i = 0; i < CHANNELS; i++) {
        channels[i] = (struct nrg_channel){.quantity = NRG_ENERGY,
                                           .kind = NRG_COUNTER,
                                           .scale = 1e-6,
                                           .resolution = 61e-6,
                                           .update_ns = NRG_NS_PER_MS,
                                           .covers_cpu = i < 2,
                                           .wide = i == 7};
        snprintf(channels[i].name, sizeof channels[i].name, "%s", names[i][0]);
        snprintf(channels[i].parent, sizeof channels[i].parent, "%s", names[i][1]);
        wanted[i] = true;
    }
    struct nrg_found found = {
        .driver = &driver, .channels = channels, .n_channels = CHANNELS, .wanted = wanted};
    must(nrg_store_sensor(store, &found, period_ns, series, CHANNELS), "sensor");
    nrg_rows_init(&rows, CHANNELS);
    for (int64_t t_ns = ZERO; t_ns <= end_ns; t_ns += period_ns) {
        int64_t off_ns = (int64_t)(next_random(&lateness) % (uint64_t)(late_ns + 1));
        must(nrg_rows_add(&rows, t_ns + off_ns, 0, raw), "memory");
        for (size_t i = 0; i < CHANNELS; i++)
            raw[i] +=
                (int64_t)((double)period_ns * 1e-3 * (10 + (double)(next_random(&state) % 40)));
        if (rows.n >= BATCH)
            put(store, series[0], &rows);
    }
    put(store, series[0], &rows);
    nrg_rows_release(&rows);
}

static void event(struct nrg_rows *rows, int64_t t_ns, enum nrg_span_event what, int64_t name)
{
    int64_t cells[] = {1, (int64_t)what, name, NRG_MISSING, NRG_MISSING};
    must(nrg_rows_add(rows, t_ns, 0, cells), "memory");
}

static void write_spans(struct nrg_store *store, int64_t end_ns, int64_t spans)
{
    int series = nrg_store_series(store, NRG_SPANS);
    int64_t steps = spans / (MODULES + 1) + 1, step_ns = (end_ns - ZERO) / steps;
    uint64_t state = 88172645463325252u;
    struct nrg_rows rows;
    nrg_rows_init(&rows, NRG_S_COLUMNS);
    for (int64_t i = 0; i < steps; i++) {
        int64_t t_ns = ZERO + i * step_ns, part_ns = step_ns / (MODULES + 1);
        event(&rows, t_ns, NRG_SPAN_BEGIN, 1);
        for (int64_t m = 0; m < MODULES; m++) {
            int64_t ns = part_ns / 2 + (int64_t)(next_random(&state) % (uint64_t)(part_ns / 2 + 1));
            event(&rows, t_ns + m * part_ns, NRG_SPAN_BEGIN, 2 + m);
            event(&rows, t_ns + m * part_ns + ns, NRG_SPAN_END, 2 + m);
        }
        event(&rows, t_ns + MODULES * part_ns + part_ns / 2, NRG_SPAN_END, 1);
        if (rows.n >= BATCH)
            put(store, series, &rows);
    }
    put(store, series, &rows);
    nrg_rows_release(&rows);
}

static void write_names(struct nrg_store *store)
{
    struct nrg_span_name name = {.id = 1, .kind = NRG_KIND_STEP, .text = (char *)"step"};
    struct nrg_span_track track = {.id = 1, .kind = "thread", .pid = 10, .tid = 10};
    char text[32];
    must(nrg_store_span_name(store, &name), "name");
    for (int i = 0; i < MODULES; i++) {
        snprintf(text, sizeof text, "block%d", i);
        name = (struct nrg_span_name){.id = 2 + i, .kind = NRG_KIND_MODULE, .text = text};
        must(nrg_store_span_name(store, &name), "name");
    }
    must(nrg_store_span_track(store, &track), "track");
}

int main(int argc, char **argv)
{
    struct nrg_store *store;
    struct nrg_error err;
    if (argc != 6 || atoll(argv[5]) < 0)
        must(-1, "wants FILE SECONDS RATE_HZ SPANS LATE_NS");
    int64_t end_ns = ZERO + (int64_t)(atof(argv[2]) * 1e9);
    must(nrg_store_create(argv[1], true, &store, &err), "create");
    write_names(store);
    write_samples(store, end_ns, (int64_t)(1e9 / atof(argv[3])), atoll(argv[5]));
    if (atoll(argv[4]) > 0)
        write_spans(store, end_ns, atoll(argv[4]));
    struct nrg_run run = {.id = 1, .kind = "run", .begin_ns = ZERO, .end_ns = end_ns};
    must(nrg_store_run(store, &run), "run");
    must(nrg_store_close(store, &err), "close");
    return 0;
}
