/*
 * See others.h. The sum of the differences may only grow: it waits while it is below what it was,
 * and what it then gains within one tick may be rounding, so it counts only from the next tick on.
 */
#include "energy/others.h"

#include <math.h>

#define PAIRED_S 0.5e-3 /* the two times are read so far apart at most */

void nrg_others_spread(const double *busy_s, const double *mine_s, size_t n, double tick_s,
                       double *others_s)
{
    double sum_s = 0, known_s = 0, slack_s = tick_s + PAIRED_S;
    for (size_t k = 0; k < n; k++) {
        sum_s += busy_s[k] - mine_s[k];
        double grown_s = sum_s - known_s - slack_s;
        others_s[k] = grown_s > 0 ? grown_s : 0;
        known_s += others_s[k];
        known_s = fmax(known_s, 0);
    }
}
