/* See privilege.h. */
#include "cli/privilege.h"

#include <endian.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
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

/* What setcap wrote: both words of the permitted set, if they take effect at once. */
static bool read_file(uint32_t permitted[VFS_CAP_U32])
{
    struct vfs_ns_cap_data data = {0};
    struct statvfs disk;
    ssize_t n = getxattr("/proc/self/exe", "security.capability", &data, sizeof data);
    if (n < (ssize_t)XATTR_CAPS_SZ_2 || !(le32toh(data.magic_etc) & VFS_CAP_FLAGS_EFFECTIVE) ||
        statvfs("/proc/self/exe", &disk) || disk.f_flag & ST_NOSUID)
        return false;
    for (size_t i = 0; i < VFS_CAP_U32; i++)
        permitted[i] = le32toh(data.data[i].permitted);
    return true;
}

void nrg_privilege_of_file(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};
    uint32_t given[VFS_CAP_U32];
    if (!read_file(given) || syscall(SYS_capget, &head, sets))
        return;
    for (size_t i = 0; i < VFS_CAP_U32; i++)
        sets[i].effective = sets[i].permitted & given[i];
    syscall(SYS_capset, &head, sets); /* refused: the user's view is then without them */
}
