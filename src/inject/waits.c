/* See inject/waits.h. */
#include "inject/waits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "inject/cupti_api.h"
#include "nrg/nrg.h"

#define NUMBERS 512 /* calls that mean something have smaller ones */
#define GPUS    16  /* whose names are kept */

/* Calls of HIP have other numbers in each version: they are known by their names. */
#define HIP 0
#define HIP_WAITS                                                                                  \
    {HIP, 0, "hipDeviceSynchronize"}, {HIP, 0, "hipStreamSynchronize"},                            \
        {HIP, 0, "hipEventSynchronize"},

struct meant {
    uint32_t kind, number;
    const char *text; /* NULL: it only asks */
};

static const struct meant known[] = {
#define WAIT(record, number, text, constant)  {NRG_CUPTI_##record, number, text},
#define QUERY(record, number, text, constant) {NRG_CUPTI_##record, number, NULL},
#define SYNC(number, text, constant)          {NRG_CUPTI_SYNC, number, text},
    NRG_CUPTI_WAITS(WAIT) NRG_CUPTI_QUERIES(QUERY) NRG_CUPTI_SYNCS(SYNC) HIP_WAITS
#undef WAIT
#undef QUERY
#undef SYNC
};
#define KNOWN (sizeof known / sizeof *known)

/* By kind (driver, runtime, synchronisation) and number: every call is looked up. */
static uint8_t meanings[3][NUMBERS];

static size_t row_of(uint32_t kind)
{
    return kind == NRG_CUPTI_DRIVER ? 0 : kind == NRG_CUPTI_RUNTIME ? 1 : 2;
}

static void fill_meanings(void)
{
    for (size_t i = 0; i < KNOWN; i++)
        if (known[i].kind != HIP)
            meanings[row_of(known[i].kind)][known[i].number] =
                (uint8_t)(known[i].text ? NRG_CALL_WAITS + i : NRG_CALL_ASKS);
}

static unsigned meaning_of(uint32_t kind, uint32_t number)
{
    static bool filled;
    if (!filled)
        fill_meanings();
    filled = true;
    return number < NUMBERS ? meanings[row_of(kind)][number] : NRG_CALL_OTHER;
}

unsigned nrg_inject_call_meaning(uint32_t kind, uint32_t cbid)
{
    return meaning_of(kind, cbid);
}

unsigned nrg_inject_sync_meaning(uint32_t type)
{
    return meaning_of(NRG_CUPTI_SYNC, type);
}

unsigned nrg_inject_hip_meaning(const char *name)
{
    for (size_t i = 0; i < KNOWN; i++)
        if (known[i].kind == HIP && !strcmp(known[i].text, name))
            return (unsigned)(NRG_CALL_WAITS + i);
    return NRG_CALL_OTHER;
}

uint32_t nrg_inject_wait_name(unsigned meaning, int gpu)
{
    static uint32_t names[KNOWN][GPUS + 1]; /* the first one: not known */
    char detail[24] = "";
    size_t i = meaning - NRG_CALL_WAITS;
    bool kept = gpu < GPUS;
    if (kept && names[i][gpu + 1])
        return names[i][gpu + 1];
    if (gpu >= 0)
        snprintf(detail, sizeof detail, "gpu-%d", gpu);
    uint32_t name = nrg_name_intern(known[i].text, "runtime", gpu >= 0 ? detail : NULL);
    if (kept)
        names[i][gpu + 1] = name;
    return name;
}
