/*
 * The page of one or several recordings (report/page/page.h), for `nrg report --html` and `nrg
 * view`. Functions return an exit code and have printed the reason for it.
 */
#ifndef NRG_CLI_PAGE_PAGE_H
#define NRG_CLI_PAGE_PAGE_H

#include "cli/show.h"

struct nrg_page_options {
    struct nrg_show_options show;
    bool redact;
    const char *profile; /* of nrg train, or what nrg calibrate --json wrote; NULL */
};

/* Writes the page to `path` ("-": stdout). */
int nrg_page_write(const struct nrg_cli *cli, const struct nrg_page_options *options,
                   char *const *recordings, int n, const char *path);

#endif
