/*
 * See workers.h: CPU seconds of workers = a * time that spans are open + b * time waited, by least
 * squares. Beside a thread that works there are a workers; b is how many more while it waits: one
 * or more where it sleeps until they are done, none where they work all along, and -a where they
 * wait, too.
 */
#include "attribute/cells/workers.h"

#include <math.h>

#define LEAST_CELLS 40   /* fewer tell nothing */
#define SURE        3.0  /* standard errors */
#define LEAST_APART 1e-6 /* of what waits vary by in cells */

void nrg_workers_add(struct nrg_workers *w, double open_s, double waited_s, double extra_s)
{
    if (!(open_s > 0))
        return;
    w->open2 += open_s * open_s;
    w->both += open_s * waited_s;
    w->waited2 += waited_s * waited_s;
    w->open += open_s * extra_s;
    w->waited += waited_s * extra_s;
    w->square += extra_s * extra_s;
    w->n++;
}

/* Nearer to -a than to 0. */
bool nrg_workers_wait_too(const struct nrg_workers *w)
{
    double det = w->open2 * w->waited2 - w->both * w->both;
    if (w->n < LEAST_CELLS || !(det > LEAST_APART * w->open2 * w->waited2))
        return false;
    double a = (w->open * w->waited2 - w->waited * w->both) / det;
    double b = (w->waited * w->open2 - w->open * w->both) / det;
    double left = fmax(w->square - a * w->open - b * w->waited, 0) / (w->n - 2);
    double error = sqrt(left * (w->open2 - w->both + w->waited2 / 4) / det);
    return a > 0 && -b - a / 2 > SURE * error;
}
