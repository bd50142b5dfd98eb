/* See privilege.h. */
#include "cli/privilege.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/auxv.h>
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
