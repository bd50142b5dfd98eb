/*
 * LD_PRELOAD for tests: the wall clock jumps by NRG_TEST_STEP_S seconds, NRG_TEST_STEP_AFTER_S
 * after the program began, as if somebody had set it. All other clocks stay what they are.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static double number(const char *name)
{
    const char *text = getenv(name);
    return text ? atof(text) : 0;
}

static double now_s(int (*real)(clockid_t, struct timespec *))
{
    struct timespec ts;
    real(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
    static double begin_s;
    static int (*real)(clockid_t, struct timespec *);
    if (!real) {
        void *found = dlsym(RTLD_NEXT, "clock_gettime");
        *(void **)&real = found;
        begin_s = now_s(real);
    }
    int rc = real(id, ts);
    if (!rc && id == CLOCK_REALTIME && now_s(real) - begin_s > number("NRG_TEST_STEP_AFTER_S"))
        ts->tv_sec += (time_t)number("NRG_TEST_STEP_S");
    return rc;
}
