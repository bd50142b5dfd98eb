/*
 * How long attribution takes, and how much memory, against the number of spans and samples.
 *
 *     span_attribution make FILE SPANS SAMPLES [TRACKS]
 *     span_attribution attribute FILE [METHOD]
 *
 * `make` writes a recording: steps of 50 layers of 20 us to 1 ms, over TRACKS threads, beside an
 * energy counter and CPU times. `attribute` prints one line: spans, wall and CPU seconds, peak
 * memory, rows and how far the rows are from the total. Two calls, so that the memory is that of
 * attribution alone.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "attribute/attribution.h"
#include "base/mem.h"
#include "record/read/recording.h"
#include "record/store/writer.h"

#define LAYERS 50
#define BATCH  16384
#define ZERO   (100 * NRG_NS_PER_S)

static const struct nrg_driver driver = {.name = "bench"};

static void die(const char *what)
{
    fprintf(stderr, "span_attribution: %s\n", what);
    exit(1);
}

static void must(int rc, const char *what)
{
    if (rc < 0)
        die(what);
}

/* xorshift: the same recording every time. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

struct sink {
    struct nrg_store *store;
    struct nrg_rows rows;
    int series;
};

static void flush(struct sink *s)
{
    must(nrg_store_rows(s->store, s->series, &s->rows), "rows");
    must(nrg_store_commit(s->store), "commit");
    s->rows.n = 0;
}

static void event(struct sink *s, int64_t t_ns, int64_t track, enum nrg_span_event what,
                  int64_t name, int64_t number)
{
    int64_t cells[] = {track, (int64_t)what, name, number, NRG_MISSING};
    must(nrg_rows_add(&s->rows, t_ns, 0, cells), "memory");
}

/* Events of one step of one track; returns when it ends. */
static int64_t step(struct sink *s, int64_t t_ns, int64_t track, int64_t number, uint64_t *state)
{
    event(s, t_ns, track, NRG_SPAN_BEGIN, 1, number);
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        int64_t ns = 20000 + layer * 20000 + (int64_t)(next_random(state) % 5000);
        event(s, t_ns + 1000, track, NRG_SPAN_BEGIN, 2 + layer, NRG_MISSING);
        event(s, t_ns + 1000 + ns, track, NRG_SPAN_END, 2 + layer, NRG_MISSING);
        t_ns += 2000 + ns;
    }
    event(s, t_ns, track, NRG_SPAN_END, 1, NRG_MISSING);
    return t_ns;
}

/* Chunks may not overlap in time: all tracks take their steps side by side. */
static int64_t write_spans(struct nrg_store *store, uint64_t spans, int64_t tracks)
{
    struct sink s = {.store = store, .series = nrg_store_series(store, NRG_SPANS)};
    uint64_t state = 88172645463325252u, done = 0;
    int64_t t_ns = ZERO;
    must(s.series, "series");
    nrg_rows_init(&s.rows, NRG_S_COLUMNS);
    for (int64_t number = 0; done < spans; number++) {
        int64_t end_ns = t_ns;
        for (int64_t track = 1; track <= tracks; track++, done += LAYERS + 1) {
            int64_t ended = step(&s, t_ns, track, number, &state);
            end_ns = ended > end_ns ? ended : end_ns;
        }
        t_ns = end_ns + 5000;
        if (s.rows.n >= BATCH)
            flush(&s);
    }
    flush(&s);
    nrg_rows_release(&s.rows);
    return t_ns;
}

static void write_names(struct nrg_store *store, int64_t tracks)
{
    struct nrg_span_name name = {.id = 1, .kind = NRG_KIND_STEP, .text = (char *)"step"};
    char text[32];
    must(nrg_store_span_name(store, &name), "name");
    for (int i = 0; i < LAYERS; i++) {
        snprintf(text, sizeof text, "layer%d", i);
        name = (struct nrg_span_name){.id = 2 + i, .kind = NRG_KIND_MODULE, .text = text};
        must(nrg_store_span_name(store, &name), "name");
    }
    for (int64_t i = 1; i <= tracks; i++) {
        struct nrg_span_track track = {.id = i, .kind = "thread", .pid = 10, .tid = (int32_t)i};
        must(nrg_store_span_track(store, &track), "track");
    }
}

static void write_samples(struct nrg_store *store, int64_t end_ns, uint64_t samples)
{
    struct nrg_channel c = {.name = "package-0",
                            .quantity = NRG_ENERGY,
                            .kind = NRG_COUNTER,
                            .scale = 1e-6,
                            .resolution = 61e-6,
                            .update_ns = NRG_NS_PER_MS,
                            .covers_cpu = true};
    bool wanted[] = {true};
    struct nrg_found found = {.driver = &driver, .channels = &c, .n_channels = 1, .wanted = wanted};
    struct sink s = {.store = store};
    int64_t period = (end_ns - ZERO) / (int64_t)(samples - 1) + 1, raw = 0;
    uint64_t state = 1234567;
    must(nrg_store_sensor(store, &found, period, &s.series, 1), "sensor");
    nrg_rows_init(&s.rows, 1);
    for (uint64_t i = 0; i < samples; i++) {
        must(nrg_rows_add(&s.rows, ZERO + (int64_t)i * period, 0, &raw), "memory");
        raw += (int64_t)((double)period * 1e-3 * (40 + (double)(next_random(&state) % 20)));
        if (s.rows.n >= BATCH)
            flush(&s);
    }
    flush(&s);
    nrg_rows_release(&s.rows);
}

static void write_threads(struct nrg_store *store, int64_t end_ns, int64_t tracks)
{
    struct sink s = {.store = store, .series = nrg_store_series(store, NRG_THREADS)};
    nrg_rows_init(&s.rows, NRG_T_COLUMNS);
    for (int64_t t_ns = ZERO; t_ns < end_ns; t_ns += 100 * NRG_NS_PER_MS) {
        for (int64_t track = 1; track <= tracks; track++) {
            int64_t cells[] = {track, (t_ns - ZERO) / track};
            must(nrg_rows_add(&s.rows, t_ns, 0, cells), "memory");
        }
        if (s.rows.n >= BATCH)
            flush(&s);
    }
    flush(&s);
    nrg_rows_release(&s.rows);
}

static int make(const char *path, uint64_t spans, uint64_t samples, int64_t tracks)
{
    struct nrg_store *store;
    struct nrg_error err;
    must(nrg_store_create(path, true, &store, &err), "create");
    write_names(store, tracks);
    int64_t end_ns = write_spans(store, spans, tracks);
    write_samples(store, end_ns, samples);
    write_threads(store, end_ns, tracks);
    struct nrg_run run = {.id = 1, .kind = "run", .begin_ns = ZERO, .end_ns = end_ns};
    must(nrg_store_run(store, &run), "run");
    must(nrg_store_close(store, &err), "close");
    return 0;
}

static int attribute(const char *path, const char *method)
{
    struct nrg_recording *recording;
    struct nrg_attribution a;
    struct nrg_error err = {0};
    struct nrg_attribution_options options = {.idle = NRG_IDLE_APART, .idle_w = NAN};
    while (options.method < NRG_METHOD_MIXED && strcmp(nrg_method_name(options.method), method))
        options.method++;
    must(options.method < NRG_METHOD_MIXED ? 0 : -1, "no such method");
    must(nrg_recording_open(path, &recording, &err), err.what);
    int64_t begin_ns = nrg_now_ns();
    must(nrg_attribution_make(&a, recording, &options, &err), err.what);
    double seconds = (double)(nrg_now_ns() - begin_ns) * 1e-9;
    double cpu_s = (double)clock() / CLOCKS_PER_SEC;
    double self = a.unattributed_j + a.idle_j + a.other_processes_j;
    for (size_t i = 0; i < a.n_rows; i++)
        self += isnan(a.rows[i].energy_self_j) ? 0 : a.rows[i].energy_self_j;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"spans\": %llu, \"method\": \"%s\", \"seconds\": %.3f, \"cpu_seconds\": %.3f, "
           "\"peak_rss_mb\": %.1f, "
           "\"rows\": %zu, \"total_j\": %.3f, \"off_j\": %.3g}\n",
           (unsigned long long)a.spans, nrg_method_name(a.method), seconds, cpu_s,
           (double)usage.ru_maxrss / 1024, a.n_rows, a.total_j, self - a.total_j);
    nrg_attribution_release(&a);
    nrg_recording_close(recording);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc >= 5 && !strcmp(argv[1], "make"))
        return make(argv[2], strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10),
                    argc > 5 ? strtoll(argv[5], NULL, 10) : 1);
    if (argc >= 3 && !strcmp(argv[1], "attribute"))
        return attribute(argv[2], argc > 3 ? argv[3] : "integrate");
    die("make FILE SPANS SAMPLES [TRACKS] | attribute FILE [METHOD]");
}
