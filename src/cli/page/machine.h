/*
 * What the user knows of the machine beside the recording: a calibration or a profile, the line
 * that operators are held against, and with a profile a prediction of the recorded model.
 *
 * Open, use, close, also after open failed. Exit codes as in page.h.
 */
#ifndef NRG_CLI_PAGE_MACHINE_H
#define NRG_CLI_PAGE_MACHINE_H

#include <jansson.h>

#include "cli/attribute/source.h"
#include "predict/machine_price.h"

struct nrg_page_machine {
    const char *path; /* NULL: nothing is known */
    bool has_profile;
    struct nrg_machine_price price;
    struct nrg_profile profile;
};

int nrg_page_machine_open(struct nrg_page_machine *machine, const char *path);
void nrg_page_machine_close(struct nrg_page_machine *machine);

/*
 * The profile's prediction beside the recording, as `nrg predict --against --json`; a new
 * reference. NULL: there is none, and if a profile was given, a note of the attribution says why.
 */
json_t *nrg_page_machine_against(const struct nrg_page_machine *machine,
                                 const struct nrg_attribute_source *source,
                                 struct nrg_attribution *attribution);

#endif
