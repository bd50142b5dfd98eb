/*
 * From the wall-clock stamps of NVML's sample buffer to CLOCK_MONOTONIC: see nvml/internal.h.
 *
 * A pair (monotonic, wall clock) is taken after each call into the library; their difference
 * converts. When somebody steps the wall clock, stamps from before the step must be converted
 * with the old difference and those after it with the new one, and nothing in a stamp says which.
 * But a sample that we have not seen yet lies between the newest one we have and now, and only
 * one of the two differences puts it there. So both are tried, the new one first; a stamp that
 * fits neither is dropped rather than put at a wrong time.
 *
 * Differences below the threshold are NTP's slewing: they are followed, not called a step.
 */
#include "sensors/nvml/internal.h"

#define STEP_NS  (20 * NRG_NS_PER_MS)
#define GUARD_NS NRG_NS_PER_MS       /* samples this close to the last one are the last one */
#define AHEAD_NS (5 * NRG_NS_PER_MS) /* the driver's clock may be read after ours */

bool nrg_nvml_clock_update(struct nrg_nvml_clock *clock, struct nrg_clock_pair pair)
{
    int64_t offset_ns = pair.real_ns - pair.mono_ns;
    int64_t change_ns = offset_ns - clock->offset_ns;
    bool stepped = clock->started && (change_ns > STEP_NS || change_ns < -STEP_NS);
    if (stepped)
        clock->old_offset_ns = clock->offset_ns;
    clock->has_old |= stepped;
    if (!clock->has_old)
        clock->old_offset_ns = offset_ns;
    clock->offset_ns = offset_ns;
    clock->now_ns = pair.mono_ns;
    clock->started = true;
    return stepped;
}

bool nrg_nvml_place(const struct nrg_nvml_clock *clock, unsigned long long stamp_us,
                    int64_t after_ns, int64_t *t_ns)
{
    const int64_t offsets_ns[2] = {clock->offset_ns, clock->old_offset_ns};
    if (stamp_us > INT64_MAX / 2000)
        return false;
    for (int i = 0; i < 2; i++) {
        int64_t t = (int64_t)stamp_us * 1000 - offsets_ns[i];
        if (t > after_ns + GUARD_NS && t <= clock->now_ns + AHEAD_NS) {
            *t_ns = t < clock->now_ns ? t : clock->now_ns;
            return true;
        }
    }
    return false;
}
