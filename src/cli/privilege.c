/* See privilege.h. */
#include "cli/privilege.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

bool nrg_privilege_drop(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};
    bool any = false;
    if (!getauxval(AT_SECURE) || !geteuid() || syscall(SYS_capget, &head, sets))
        return false;
    for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
        any |= sets[i].permitted != 0;
        sets[i].permitted = sets[i].effective = 0;
    }
    return any && !syscall(SYS_capset, &head, sets);
}

void nrg_privilege_hide_memory(void)
{
    struct rlimit cores;
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (!getrlimit(RLIMIT_CORE, &cores)) {
        cores.rlim_cur = 0;
        setrlimit(RLIMIT_CORE, &cores);
    }
}
