/* See fake_roctx.h. */
#include <stdatomic.h>
#include <stddef.h>

#include "fake_roctx.h"

enum { MARK, PUSH, POP, START, STOP, ROCTX_DOMAIN = 6 };

struct data {
    const char *message;
    uint64_t id;
};

static int (*_Atomic told)(uint32_t domain, uint32_t call, void *data);
static _Thread_local int level;
static _Atomic uint64_t next_id = 1;

static void tell(uint32_t call, const char *message, uint64_t id)
{
    struct data data = {message, id};
    if (told)
        told(ROCTX_DOMAIN, call, &data);
}

void roctxRegisterTracerCallback(int (*function)(uint32_t, uint32_t, void *));
void roctxRegisterTracerCallback(int (*function)(uint32_t, uint32_t, void *))
{
    told = function;
}

void roctxMarkA(const char *message)
{
    tell(MARK, message, 0);
}

int roctxRangePushA(const char *message)
{
    tell(PUSH, message, 0);
    return level++;
}

int roctxRangePop(void)
{
    tell(POP, NULL, 0);
    return level ? --level : -1;
}

uint64_t roctxRangeStartA(const char *message)
{
    uint64_t id = next_id++;
    tell(START, message, id);
    return id;
}

void roctxRangeStop(uint64_t id)
{
    tell(STOP, NULL, id);
}
