/* See run/parts.h. */
#include "cli/run/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/trust.h"

/* Fills folder when base/place has the file. */
static bool is_there(const struct nrg_run_part *part, const char *base, const char *place,
                     char *folder)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s/%s", base, place, part->file);
    if (access(path, R_OK))
        return false;
    *strrchr(path, '/') = '\0';
    return realpath(path, folder) != NULL;
}

static bool is_trusted(const struct nrg_run_part *part, const char *base, const char *place,
                       char *folder)
{
    char file[PATH_MAX + 64];
    struct nrg_error err;
    if (!is_there(part, base, place, folder))
        return false;
    snprintf(file, sizeof file, "%s/%s", folder, part->file);
    if (!nrg_trust_file(file, &err))
        return true;
    fprintf(stderr, "nrg: --%s: %s is not used: %s %s\n", part->option, folder, err.where,
            err.what);
    return false;
}

bool nrg_run_part_find(const struct nrg_run_part *part, char folder[PATH_MAX])
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    bool in_build = slash && *self && !strcmp(self, NRG_BUILD_FOLDER);
    bool in_prefix = slash && *self && !strcmp(self, NRG_PROGRAM_FOLDER);
    bool in_wheel = slash && nrg_ends_with(self, "/nrg/bin");
    if ((in_build && is_there(part, self, part->in_build, folder)) ||
        (in_wheel && is_trusted(part, self, part->in_wheel, folder)) ||
        (slash && !in_prefix && is_trusted(part, self, part->beside, folder)) ||
        (part->absolute[0] && is_there(part, "", part->absolute, folder)))
        return true;
    folder[0] = '\0';
    return false;
}
