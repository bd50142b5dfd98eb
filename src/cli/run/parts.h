/*
 * Where the parts of nrg are that run inside of the measured program. They are taken from where
 * nobody else can put them: the build folder when the program runs from that very folder, then
 * where the same wheel or `meson install` put it if only the user and root can write there (a
 * program that was copied to /tmp has neighbours that anybody may have made), then the prefix that
 * the program was built for, which a wheel's does not have.
 */
#ifndef NRG_CLI_RUN_PARTS_H
#define NRG_CLI_RUN_PARTS_H

#include <limits.h>
#include <stdbool.h>

struct nrg_run_part {
    const char *option;            /* that wants it, for messages */
    const char *file;              /* by which the folder is known */
    const char *in_build;          /* below the program's folder in the build tree */
    const char *in_wheel;          /* beside the program in a wheel */
    const char *beside, *absolute; /* where an installation has it; "": nowhere */
};

/* Fills in the part's folder, resolved; false and "" when it is not there. May say why on stderr.
 */
bool nrg_run_part_find(const struct nrg_run_part *part, char folder[PATH_MAX]);

#endif
