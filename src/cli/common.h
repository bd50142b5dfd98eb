/* Shared by the command line's own files: the common options' table and small printers. */
#ifndef NRG_CLI_COMMON_H
#define NRG_CLI_COMMON_H

#include <jansson.h>
#include <stdio.h>

#include "cli/cli.h"

extern const struct nrg_opt nrg_common_options[];

/* Writes a JSON document and a newline; takes the reference. `path` "-" is stdout. 0 or 1. */
int nrg_print_json(json_t *doc, const char *path);
/* With that many digits; 17 read back as the same numbers. */
int nrg_print_json_digits(json_t *doc, const char *path, size_t digits);

/* True when `stream` is a terminal and NO_COLOR is unset. */
bool nrg_use_colour(FILE *stream);

/* Local time minus UTC: "+02:00", "-0330", "2". 0 or -EINVAL. */
int nrg_parse_zone(const char *text, int64_t *offset_ns);

/*
 * What we open must not take the place of a closed standard stream, where our talk would go into
 * it. The stand-ins close on exec: a command that we start finds closed what was closed.
 */
void nrg_occupy_standard_streams(void);

#endif
