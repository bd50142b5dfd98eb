/* See own_program.h. */
#include "sensors/own_program.h"

#include <string.h>
#include <unistd.h>

#include "base/trust.h"

void nrg_program_path(char path[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[n > 0 && n < PATH_MAX - 1 ? n : 0] = '\0';
}

bool nrg_program_is_installed(void)
{
    char path[PATH_MAX + sizeof "/build.ninja"];
    nrg_program_path(path);
    char *slash = strrchr(path, '/');
    if (!slash)
        return true;
    strcpy(slash, "/build.ninja");
    return access(path, F_OK) != 0;
}

bool nrg_is_plain_path(const char *path)
{
    return path[0] == '/' &&
           path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                             "0123456789/_.,:+@%=*-")] == '\0';
}

bool nrg_program_is_closed(void)
{
    char path[PATH_MAX];
    nrg_program_path(path);
    return nrg_is_plain_path(path) && !strchr(path, '*') && !nrg_trust_system_file(path, NULL);
}
