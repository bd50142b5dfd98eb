/*
 * See run/torch.h. What is injected runs inside the measured program, so it is taken from where
 * nobody else can put it: the build folder when the program runs from that very folder, then where
 * the same wheel or `meson install` put it if only the user and root can write there (a program
 * that was copied to /tmp has neighbours that anybody may have made), then the prefix that the
 * program was built for.
 */
#include "cli/run/torch.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/temp.h"
#include "base/trust.h"
#include "cli/run/graph.h"
#include "cli/screen.h"

#define MAX_MODELS 64

/* Fills folder when there is a sitecustomize.py of ours in base/place. */
static bool is_inject(const char *base, const char *place, char *folder)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s/sitecustomize.py", base, place);
    if (access(path, R_OK))
        return false;
    *strrchr(path, '/') = '\0';
    return realpath(path, folder) != NULL;
}

static bool is_trusted_inject(const char *base, const char *place, char *folder)
{
    char file[PATH_MAX + 32];
    struct nrg_error err;
    if (!is_inject(base, place, folder))
        return false;
    snprintf(file, sizeof file, "%s/sitecustomize.py", folder);
    if (!nrg_trust_file(file, &err))
        return true;
    fprintf(stderr, "nrg: --torch: %s is not used: %s %s\n", folder, err.where, err.what);
    return false;
}

/* The folder with our sitecustomize.py, "" when it is not found. */
static void find_inject(char *folder)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    bool in_build = slash && !strcmp(self, NRG_BUILD_FOLDER);
    bool in_prefix = slash && !strcmp(self, NRG_PROGRAM_FOLDER);
    bool in_wheel = slash && nrg_ends_with(self, "/nrg/bin");
    if ((in_build && is_inject(self, "python/nrg/inject", folder)) ||
        (in_wheel && is_trusted_inject(self, "../inject", folder)) ||
        (slash && !in_prefix && is_trusted_inject(self, NRG_INJECT_PLACE, folder)) ||
        is_inject("", NRG_INJECT_FOLDER, folder))
        return;
    folder[0] = '\0';
}

static int prepend_pythonpath(const char *folder)
{
    const char *before = getenv("PYTHONPATH");
    struct nrg_str path = {0};
    int rc = nrg_str_addf(&path, "%s", folder);
    if (!rc && before && *before)
        rc = nrg_str_addf(&path, ":%s", before);
    if (!rc && setenv("PYTHONPATH", path.text, 1))
        rc = -errno;
    nrg_str_release(&path);
    return rc;
}

void nrg_run_torch_prepare(struct nrg_run_torch *torch, const char *mode)
{
    char folder[PATH_MAX];
    torch->models[0] = '\0';
    unsetenv("NRG_TORCH_MODELS");
    find_inject(folder);
    /* A colon separates entries: a folder with one can't be in PYTHONPATH. */
    if (!folder[0] || strchr(folder, ':') || prepend_pythonpath(folder) ||
        setenv("NRG_TORCH", mode, 1)) {
        nrg_say("--torch: nrg's Python parts were not found beside the program: the "
                "command runs without");
        return;
    }
    if (!nrg_temp_folder(torch->models, sizeof torch->models, "nrg-models"))
        setenv("NRG_TORCH_MODELS", torch->models, 1);
}

/* "0001-NAME.FORMAT": the name between the first dash and the last dot. */
static bool take_name(const char *file, char *name, size_t size)
{
    const char *dash = strchr(file, '-'), *dot = strrchr(file, '.');
    if (!dash || !dot || dot <= dash + 1 || file[0] == '.')
        return false;
    nrg_copy_clean(name, size, dash + 1, (size_t)(dot - dash - 1));
    return true;
}

static void collect_one(const char *path, const char *name, struct nrg_recorder *recorder)
{
    struct nrg_run_graph graph;
    struct nrg_error err;
    int rc = nrg_run_graph_read(&graph, path, NULL, &err);
    graph.path = name;
    if (!rc)
        rc = nrg_run_graph_store(&graph, recorder, &err);
    if (rc)
        nrg_say("the graph of %s is not kept: %s", name, err.what);
    nrg_run_graph_release(&graph);
}

static void each_file(struct nrg_run_torch *torch, struct nrg_recorder *recorder)
{
    struct dirent **files;
    struct stat st;
    int n = scandir(torch->models, &files, NULL, alphasort), taken = 0;
    for (int i = 0; i < n; i++) {
        char name[200], path[sizeof torch->models + sizeof files[i]->d_name + 2];
        snprintf(path, sizeof path, "%s/%s", torch->models, files[i]->d_name);
        /* The program made the folder's files: nothing but a file is one. */
        bool is_file = !lstat(path, &st) && S_ISREG(st.st_mode);
        if (recorder && is_file && taken < MAX_MODELS &&
            take_name(files[i]->d_name, name, sizeof name)) {
            collect_one(path, name, recorder);
            taken++;
        }
        unlink(path); /* fails for "." and "..", as it should */
        free(files[i]);
    }
    if (n >= 0)
        free(files);
}

void nrg_run_torch_collect(struct nrg_run_torch *torch, struct nrg_recorder *recorder)
{
    if (torch->models[0])
        each_file(torch, recorder);
}

void nrg_run_torch_release(struct nrg_run_torch *torch)
{
    if (!torch->models[0])
        return;
    each_file(torch, NULL);
    rmdir(torch->models);
    torch->models[0] = '\0';
}
