/*
 * LD_PRELOAD for tests: the wall clock jumps by NRG_TEST_STEP_S seconds as soon as there is a file
 * NRG_TEST_STEP_FILE, as if it had been set. All other clocks stay what they are, but with
 * NRG_TEST_SUSPEND the time since boot jumps as well, as if the machine had slept.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int stepped(void)
{
    const char *file = getenv("NRG_TEST_STEP_FILE");
    int kept = errno, found = file && !access(file, F_OK);
    errno = kept;
    return found;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real) {
        void *found = dlsym(RTLD_NEXT, "clock_gettime");
        *(void **)&real = found;
    }
    int rc = real(id, ts);
    int jumps = id == CLOCK_REALTIME || (id == CLOCK_BOOTTIME && getenv("NRG_TEST_SUSPEND"));
    if (!rc && jumps && stepped())
        ts->tv_sec += (time_t)atoll(getenv("NRG_TEST_STEP_S"));
    return rc;
}
