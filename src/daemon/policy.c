/* See policy.h. */
#include "daemon/policy.h"

#include <errno.h>
#include <grp.h>
#include <sys/socket.h>

#define MAX_GROUPS 1024

void nrg_policy_init(struct nrg_policy *policy, const char *group, bool refuses_others)
{
    const struct group *entry = getgrnam(group);
    *policy = (struct nrg_policy){.has_group = entry != NULL,
                                  .group = entry ? entry->gr_gid : 0,
                                  .refuses_others = refuses_others};
}

/* Who is in more groups than fit is no member: better too little than too much. */
static bool is_member(const struct nrg_policy *policy, int fd, gid_t own)
{
    gid_t groups[MAX_GROUPS];
    socklen_t size = sizeof groups;
    if (!policy->has_group)
        return false;
    if (own == policy->group)
        return true;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size))
        return false;
    for (size_t i = 0; i < size / sizeof *groups; i++)
        if (groups[i] == policy->group)
            return true;
    return false;
}

int nrg_policy_view(const struct nrg_policy *policy, int fd, uid_t *uid, enum nrg_wire_view *view)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
        return -errno;
    *uid = peer.uid;
    *view = NRG_VIEW_COARSE;
    if (!peer.uid || is_member(policy, fd, peer.gid))
        *view = NRG_VIEW_FULL;
    return *view == NRG_VIEW_COARSE && policy->refuses_others ? -EACCES : 0;
}

int64_t nrg_policy_period_ns(enum nrg_wire_view view)
{
    return view == NRG_VIEW_FULL ? NRG_FULL_PERIOD_NS : NRG_COARSE_PERIOD_NS;
}
