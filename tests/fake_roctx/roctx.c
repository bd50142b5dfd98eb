/* See fake_roctx.h. */
#include <stdatomic.h>
#include <stddef.h>

#include "fake_roctx.h"

struct table {
    uint64_t size;
    void (*mark)(const char *);
    int (*push)(const char *);
    int (*pop)(void);
    uint64_t (*start)(const char *);
    void (*stop)(uint64_t);
    int (*thread)(uint64_t *);
};

static _Thread_local int level;
static _Atomic uint64_t last_id;

static void plain_mark(const char *message)
{
    (void)message;
}

static int plain_push(const char *message)
{
    (void)message;
    return level++;
}

static int plain_pop(void)
{
    return level ? --level : -1;
}

static uint64_t plain_start(const char *message)
{
    (void)message;
    return ++last_id;
}

static void plain_stop(uint64_t id)
{
    (void)id;
}

static int plain_thread(uint64_t *id)
{
    *id = 1;
    return 0;
}

static struct table core = {sizeof core, plain_mark, plain_push,  plain_pop,
                            plain_start, plain_stop, plain_thread};

static struct table *table(void)
{
    static int known;
    if (!known++) {
        void *tables[] = {&core};
        uint64_t id;
        rocprofiler_register_library_api_table("roctx", NULL, 10000, tables, 1, &id);
    }
    return &core;
}

void roctxMarkA(const char *message)
{
    table()->mark(message);
}

int roctxRangePushA(const char *message)
{
    return table()->push(message);
}

int roctxRangePop(void)
{
    return table()->pop();
}

uint64_t roctxRangeStartA(const char *message)
{
    return table()->start(message);
}

void roctxRangeStop(uint64_t id)
{
    table()->stop(id);
}
