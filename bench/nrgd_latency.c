/*
 * What a reading costs through a descriptor that nrgd handed over, against the same counters opened
 * directly, and against readings that nrgd is asked for. Blocks of readings take turns, so that
 * whatever else the machine does meets both; medians of blocks, and their ratio.
 *
 *   nrgd-latency ROOT      with NRG_DAEMON set to the socket of a nrgd --root ROOT (bench/nrgd)
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/stats.h"
#include "sensors/registry.h"

#define BLOCKS   400
#define READINGS 500

struct side {
    const char *driver;
    struct nrg_context ctx;
    struct nrg_probe probe;
    const struct nrg_found *found;
    void *state;
    double ns[BLOCKS];
};

static void ignore_row(struct nrg_sink *sink, unsigned group, int64_t t_ns, int64_t width_ns,
                       const int64_t *raw)
{
    (void)sink, (void)group, (void)t_ns, (void)width_ns, (void)raw;
}

static int open_side(struct side *side, const char *driver, const char *root)
{
    const char *const only[] = {driver, NULL};
    const struct nrg_sensor_options options = {.only = only};
    struct nrg_error err = {0};
    *side = (struct side){.driver = driver};
    int rc = nrg_root_init(&side->ctx.root, root, &err);
    if (!rc)
        rc = nrg_probe_all(&side->probe, &side->ctx, &options, &err);
    if (!rc && !side->probe.n_found)
        rc = nrg_fail(&err, -1, driver, "finds nothing");
    if (!rc) {
        side->found = &side->probe.found[0];
        rc = side->found->driver->open(&side->ctx, side->found, &side->state, &err);
    }
    if (rc)
        fprintf(stderr, "nrgd-latency: %s: %s\n", driver, err.what);
    return rc;
}

static void measure(struct side *side, int block)
{
    struct nrg_sink sink = {.row = ignore_row};
    int64_t begin_ns = nrg_now_ns();
    for (int i = 0; i < READINGS; i++)
        side->found->driver->read(side->state, &sink);
    side->ns[block] = (double)(nrg_now_ns() - begin_ns) / READINGS;
}

int main(int argc, char **argv)
{
    struct side direct, handed;
    if (argc != 2 || open_side(&direct, "rapl-powercap", argv[1]) ||
        open_side(&handed, "nrgd", NULL))
        return 1;
    for (int block = 0; block < BLOCKS; block++) {
        measure(block % 2 ? &direct : &handed, block);
        measure(block % 2 ? &handed : &direct, block);
    }
    double direct_ns = nrg_median(direct.ns, BLOCKS), handed_ns = nrg_median(handed.ns, BLOCKS);
    printf("%zu counters: opened directly %.0f ns, %s %.0f ns per reading: ratio %.3f\n",
           direct.found->n_channels, direct_ns,
           handed.found->driver->flags & NRG_MAY_BLOCK ? "asked of nrgd" : "handed over by nrgd",
           handed_ns, handed_ns / direct_ns);
    return 0;
}
