/*
 * The names by which a machine and its people are known: host, domains, users, homes. From this
 * process, and from the small files of the tree that nrg looks at: /etc/hostname, hosts,
 * resolv.conf, passwd. No server is asked: what it would answer stands in none of the files that
 * are archived unless behind the host's name, and there it is recognised by its place.
 *
 * The caller's (nrg_identity_release). -ENOMEM.
 */
#ifndef NRG_CLI_DOCTOR_IDENTITY_H
#define NRG_CLI_DOCTOR_IDENTITY_H

#include "base/root.h"

enum nrg_name_kind { NRG_NAME_HOST, NRG_NAME_DOMAIN, NRG_NAME_USER, NRG_NAME_HOME };

struct nrg_name {
    char text[256];
    enum nrg_name_kind kind;
};

struct nrg_identity {
    struct nrg_name *names;
    size_t n, cap;
};

int nrg_identity_learn(struct nrg_identity *identity, const struct nrg_root *root);
/* Adds a name unless it is known or so common that it names nobody (localhost, root, /). */
int nrg_identity_add(struct nrg_identity *identity, enum nrg_name_kind kind, const char *text,
                     size_t len);
void nrg_identity_release(struct nrg_identity *identity);

#endif
