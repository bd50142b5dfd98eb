/* nrg --version, and with --verbose the libraries of others, for reports of holes and of bugs. */
#include <stdio.h>
#include <string.h>

#include <nrg/nrg.h>

#include "cli/internal.h"
#include "cli/privilege.h"
#include "record/libraries.h"

static void print_library(const struct nrg_library *library)
{
    if (!library->version[0])
        printf("%-8s not here: it is loaded when a compressed file is read\n", library->name);
    else
        printf("%-8s %-8s %s%s%s\n", library->name, library->version,
               library->bundled ? "bundled" : "dynamic", library->place[0] ? ", " : "",
               library->place);
}

int nrg_print_version(int argc, char **argv)
{
    struct nrg_library libraries[NRG_LIBRARIES];
    bool verbose = argc > 0 && (!strcmp(argv[0], "-v") || !strcmp(argv[0], "--verbose"));
    if (argc > verbose) {
        nrg_say("--version takes --verbose (-v) alone, not '%s'", argv[verbose]);
        return 2;
    }
    puts("nrg " NRG_VERSION);
    if (!verbose)
        return 0;
    nrg_privilege_drop(); /* one of them may be loaded now */
    nrg_libraries_list(libraries);
    for (size_t i = 0; i < NRG_LIBRARIES; i++)
        print_library(&libraries[i]);
    return 0;
}
