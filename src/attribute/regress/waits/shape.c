/*
 * Where in a call its wait lies. A wait is taken to be one stretch that comes after some part of
 * the call's work: at its begin, its end, or one of the places between. As long waits are as much
 * one stretch as short ones are, how much work is done by a certain time of a call depends on how
 * long that call waited, which its length and CPU time tell. Calls that wait now here, now there
 * are a mixture of such calls, in the mean.
 */
#include "attribute/regress/rows/rows.h"

#include <math.h>

#define UNSURE 0.02 /* of a call, that may be waiting where none is expected */

/* The work of a call up to its part u, whose wait of `lacks` comes after the part `after` of it. */
static double work_by(double u, double lacks, double after)
{
    double begin = after * (1 - lacks);
    return fmin(u, begin) + fmax(u - begin - lacks, 0);
}

void nrg_wait_work(double u, double lacks, double out[NRG_WAIT_SHAPES])
{
    for (int i = 0; i < NRG_WAIT_SHAPES; i++)
        out[i] = work_by(u, lacks, (double)i / (NRG_WAIT_SHAPES - 1)) - (1 - lacks) * u;
}

static double scatter2(double u, double lacks)
{
    double work = 1 - lacks, sum = 0, square = 0;
    if (!(work > 0))
        return 0;
    /* Waits that begin before this are over by u; those that begin after the other had not begun */
    double over = fmin(fmax((u - lacks) / work, 0), 1), before = fmin(u / work, 1);
    double done[] = {u - lacks, u};
    sum = over * done[0] + work * (before * before - over * over) / 2 + (1 - before) * done[1];
    square = over * done[0] * done[0] +
             work * work * (before * before * before - over * over * over) / 3 +
             (1 - before) * done[1] * done[1];
    return fmax(square - sum * sum, 0);
}

double nrg_wait_cut2(double u, double lacks)
{
    return scatter2(u, fmin(fmax(lacks, 0), 1)) + UNSURE * UNSURE * u * (1 - u);
}
