/*
 * nrg view: the page of a recording, in the browser. It is written to a folder of its own below the
 * temporary one; where no desktop is there to open it, its path is printed.
 */
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/temp.h"
#include "cli/page/page.h"

extern char **environ;

static const struct nrg_opt options[] = {
    {"redact", 0, NRG_OPT_FLAG, NULL, "leave out arguments, paths, names of hosts and users",
     offsetof(struct nrg_page_options, redact)},
    {"profile", 0, NRG_OPT_STRING, "FILE",
     "what the machine charges per MAC and byte, for the part that says why: a profile of nrg "
     "train, "
     "which is also held against the run, or what nrg calibrate --json wrote",
     offsetof(struct nrg_page_options, profile)},
    {0},
};

/* Whether a browser was asked to show it. */
static bool open_browser(char *path)
{
    char *const argv[] = {(char[]){"xdg-open"}, path, NULL};
    int status = 1;
    pid_t pid;
    bool desktop = getenv("DISPLAY") || getenv("WAYLAND_DISPLAY");
    if (!desktop || posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ))
        return false;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && !WEXITSTATUS(status);
}

static int run_view(struct nrg_cli *cli, void *v, int argc, char **argv)
{
    char folder[4000], path[4096];
    if (argc < 1)
        return nrg_usage(cli, "wants a recording: nrg view FILE.nrg");
    int rc = nrg_temp_folder(folder, sizeof folder, "nrg-view");
    if (rc) {
        fprintf(stderr, "nrg: %s: cannot make a folder there: %s\n", nrg_temp_dir(), strerror(-rc));
        return 1;
    }
    snprintf(path, sizeof path, "%s/nrg.html", folder);
    int code = nrg_page_write(cli, v, argv, argc, path);
    if (!code && !open_browser(path) && !cli->quiet)
        fprintf(stderr, "nrg: no browser could be opened: open this file yourself\n");
    if (!code)
        puts(path);
    else if (!unlink(path) || errno == ENOENT)
        rmdir(folder);
    return code;
}

const struct nrg_command nrg_cmd_view = {
    .name = "view",
    .summary = "a recording as a page in the browser",
    .synopsis = "[--redact] [--profile FILE] FILE.nrg...",
    .about = "Writes the page of nrg report --html to a temporary place and opens it in the\n"
             "browser. Prints where it is.",
    .examples = "  nrg view run.nrg\n",
    .options = options,
    .values_size = sizeof(struct nrg_page_options),
    .run = run_view,
};
