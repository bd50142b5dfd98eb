/*
 * Fuzz target: the scenario parser, and the simulated sensors on whatever it accepts, read at a
 * few times up to years apart. Anything that parses must be readable without overflow, NaN or a
 * loop that does not end; truth must not be negative.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "sensors/virtual/scenario_truth.h"
#include "sensors/virtual/sim_meter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void play(const struct nrg_scenario *scenario, size_t domain)
{
    static const int64_t times_ns[] = {0,         1,           999999,         1000000,
                                       123456789, 10000000000, 86400000000000, 300000000000000000};
    struct nrg_sim_meter meter;
    int64_t last_ns = 0;
    nrg_sim_meter_init(&meter, scenario, domain, 0);
    for (size_t i = 0; i < sizeof times_ns / sizeof *times_ns; i++) {
        int64_t raw = 0;
        int rc = nrg_sim_meter_read(&meter, times_ns[i], (double)i, &raw);
        double true_j = nrg_scenario_true_j(meter.domain, last_ns, times_ns[i]);
        if ((rc == 0 && raw < 0) || !isfinite(meter.shown) || !(true_j >= 0))
            abort();
        last_ns = times_ns[i];
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nrg_scenario scenario;
    struct nrg_error err;
    if (nrg_scenario_parse(&scenario, "fuzz", (const char *)data, size, &err))
        return 0;
    for (size_t i = 0; i < scenario.n_domains; i++)
        play(&scenario, i);
    nrg_scenario_release(&scenario);
    return 0;
}
