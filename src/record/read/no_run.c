/*
 * A recording without a run, or whose run has no readings: why, and what to do. One that a killed
 * recorder left says so by what it lacks: the recorder writes `end_ns` when it ends.
 */
#include <errno.h>

#include "record/read/recording.h"

int nrg_recording_no_run(const struct nrg_recording *recording, const char *what,
                         struct nrg_error *err)
{
    int64_t end_ns = 0;
    nrg_recording_integer(recording, "end_ns", &end_ns);
    return nrg_fail(err, -ENODATA, nrg_recording_path(recording), "holds no %s%s", what,
                    end_ns ? ""
                           : ": its recorder was cut off before the command had run for "
                             "some milliseconds; record again");
}
