/*
 * Passwords and keys in what a user typed: user:password@ of a URI, and name=value where the name
 * is that of a secret. They are looked for in the whole text, before any copy of bounded length:
 * half of a password shows no '@' any more. When in doubt more is hidden: a ':' before an '@' of a
 * topic hides what is between them.
 *
 * Pure functions of text; nothing is allocated; any thread.
 */
#ifndef NRG_BASE_SECRET_H
#define NRG_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/* password, api-key, access_token, auth...; not those that name a file of it (password-file). */
bool nrg_is_secret_name(const char *name, size_t len);

/* The URI has user:password@ in it. A port is no password: host:1883/topic@x. */
bool nrg_has_password(const char *uri);

/* Copies one URI, blanks and all, with *** for what is secret; cuts as nrg_copy does. */
void nrg_mask_uri(char *to, size_t size, const char *uri);

/* The same for a sentence, whose words may hold a URI, ?name=value or --name=value. */
void nrg_mask_text(char *to, size_t size, const char *text);

#endif
