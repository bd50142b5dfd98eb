/*
 * Who else could have written a file that nrg is about to obey: a line of nrg.conf that runs a
 * program, the Python parts that it puts into other programs. A file is trusted when only root and
 * the user that nrg runs as can write it, and no folder or link on the way to it can be replaced by
 * anybody else. A group that is the user's own (his name, nobody else in it) counts as the user.
 *
 * Errors: 0 or a negative errno; -EPERM with the name of who or what is in the way. No state.
 */
#ifndef NRG_BASE_TRUST_H
#define NRG_BASE_TRUST_H

#include "base/error.h"

/* 0: only root can, whoever asks. Folders that everybody can write are refused, too: what lies in
 * one was put there by somebody. */
int nrg_trust_system_file(const char *path, struct nrg_error *err);

/* 0: only this user and root can change what `path`, from the root folder on, leads to. */
int nrg_trust_file(const char *path, struct nrg_error *err);

#endif
