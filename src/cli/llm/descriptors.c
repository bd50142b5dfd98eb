/* How many clients the limit of descriptors allows, after raising it as far as it may be. */
#include <sys/resource.h>

#include "cli/llm/actions.h"

#define OF_A_CLIENT 2   /* its connection, and the one to the server */
#define OTHERS      128 /* the recording, sensors, the listening socket */

int nrg_llm_most_connections(int wanted)
{
    struct rlimit limit;
    const rlim_t needed = (rlim_t)wanted * OF_A_CLIENT + OTHERS;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= needed)
        return wanted;
    const struct rlimit raised = {limit.rlim_max < needed ? limit.rlim_max : needed,
                                  limit.rlim_max};
    if (!setrlimit(RLIMIT_NOFILE, &raised))
        limit = raised;
    if (limit.rlim_cur >= needed)
        return wanted;
    return limit.rlim_cur > OTHERS + OF_A_CLIENT ? (int)((limit.rlim_cur - OTHERS) / OF_A_CLIENT)
                                                 : 1;
}
