/* `nrg report --svg`: a single picture of a recording (report/picture/picture.h). */
#ifndef NRG_CLI_PAGE_PICTURE_H
#define NRG_CLI_PAGE_PICTURE_H

#include "cli/page/page.h"

enum nrg_picture_what {
    NRG_PICTURE_NONE,
    NRG_PICTURE_TIMELINE,
    NRG_PICTURE_FLAME,
    NRG_PICTURE_ROOFLINE
};
extern const struct nrg_choice nrg_picture_choices[];

/* Writes it to `path` ("-": stdout), or nothing when it fails. */
int nrg_picture_write(const struct nrg_cli *cli, const struct nrg_page_options *options,
                      enum nrg_picture_what what, const char *recording, const char *path);

#endif
