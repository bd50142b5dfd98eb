/* The page of one or several recordings (report/page/page.h), for `nrg report --html` and `nrg
 * view`.
 */
#ifndef NRG_CLI_PAGE_H
#define NRG_CLI_PAGE_H

#include "cli/show.h"

struct nrg_page_options {
    struct nrg_show_options show;
    bool redact;
};

/* Writes the page to `path` ("-": stdout). Exit code 0, or 1 after saying why. */
int nrg_page_write(const struct nrg_cli *cli, const struct nrg_page_options *options,
                   char *const *recordings, int n, const char *path);

#endif
