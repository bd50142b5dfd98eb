/*
 * Who sees what. Members of a group (nrg), and root, get the full view: descriptors, and readings
 * at the rate that they ask for. Everybody else gets the coarse view, or nothing.
 *
 * The coarse view is for PLATYPUS (Lipp et al., IEEE S&P 2021; CVE-2020-8694): energy counters that
 * are read a thousand times a second in steps of 61 uJ tell which instructions, and with which
 * operands, others execute. One reading a second is a thousandth of the samples, and steps of 1 J
 * hide all differences below a watt in each of them. All users get the same reading, taken once in
 * each of nrgd's seconds, so that neither asking often nor many connections give more. What is left
 * (averages over hours, of work that an attacker can repeat at will) is why an administrator can
 * say --others none.
 *
 * The kernel says who the peer was when it connected (SO_PEERCRED, SO_PEERGROUPS), so nothing that
 * a client sends is asked about it. No state after init; any thread.
 */
#ifndef NRG_DAEMON_POLICY_H
#define NRG_DAEMON_POLICY_H

#include <sys/types.h>

#include "base/error.h"
#include "sensors/nrgd/wire.h"

#define NRG_COARSE_PERIOD_NS INT64_C(1000000000)
#define NRG_COARSE_STEP      1.0              /* J, or W of a gauge */
#define NRG_FULL_PERIOD_NS   INT64_C(1000000) /* of readings that are asked for */

struct nrg_policy {
    gid_t group;
    bool has_group;
    bool refuses_others;
};

/* Looks up the group. It may be missing: then only root has the full view. */
void nrg_policy_init(struct nrg_policy *policy, const char *group, bool refuses_others);

/* The view of the peer of a connected socket, and who it is. -EACCES: none. */
int nrg_policy_view(const struct nrg_policy *policy, int fd, uid_t *uid, enum nrg_wire_view *view);

/* The period below which readings of a view are not renewed. */
int64_t nrg_policy_period_ns(enum nrg_wire_view view);

#endif
