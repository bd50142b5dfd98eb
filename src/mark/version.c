/* The version, as the build says it. */
#include <nrg/nrg.h>

const char *nrg_version(void)
{
    return NRG_VERSION;
}
