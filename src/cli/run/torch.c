/* See run/torch.h. */
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
#include "base/temp.h"
#include "cli/run/graph.h"
#include "cli/run/parts.h"
#include "cli/screen.h"

#define MAX_MODELS 64

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
    static const struct nrg_run_part part = {.option = "torch",
                                             .file = "sitecustomize.py",
                                             .in_build = "python/nrg/inject",
                                             .in_wheel = "../inject",
                                             .beside = NRG_INJECT_PLACE,
                                             .absolute = NRG_INJECT_FOLDER};
    char folder[PATH_MAX];
    torch->models[0] = '\0';
    unsetenv("NRG_TORCH_MODELS");
    nrg_run_part_find(&part, folder);
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
        rc = nrg_run_graph_store_late(&graph, recorder, &err);
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
