/* What both halves of the injection use: notes for the recording, and the clock (inject.h). */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "inject/inject.h"
#include "nrg/nrg.h"

void nrg_inject_say(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    nrg_mark_name(nrg_name_intern(text, "mark", "nrg"));
}

uint64_t nrg_inject_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
