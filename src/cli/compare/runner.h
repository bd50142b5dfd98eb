/*
 * `nrg compare --run N -- CMD_A --- CMD_B`: runs both commands N times, in turn, in random order
 * within each pair, each by an `nrg run` of its own, and leaves the recordings in a folder. What is
 * there already is not run again, so that an interrupted comparison goes on where it stopped.
 *
 * Single-threaded. Functions return an exit code and have printed the reason for it.
 */
#ifndef NRG_CLI_COMPARE_RUNNER_H
#define NRG_CLI_COMPARE_RUNNER_H

#include "cli/cli.h"
#include "compare/side.h"

struct nrg_compare_runner {
    const char *folder; /* NULL: made up */
    int runs, warmup, seed;
    int64_t cool_ns;       /* at most so long after each run; 0: not at all */
    struct nrg_list with;  /* options of nrg run: "--rate=100Hz" */
    bool keep_going;       /* also when a command fails */
    char **commands[2];    /* NULL-terminated */
    char made_folder[256]; /* where the recordings are, afterwards */
    int stopped_by;        /* signal that ended it early; 0: none */
};

/* The two commands of what follows the options; without `---` both are the same. 0 or -EINVAL. */
int nrg_compare_commands(struct nrg_compare_runner *runner, int argc, char **argv);

/* Runs what is missing and adds to the sides what is there, also when it was stopped. */
int nrg_compare_run(struct nrg_cli *cli, struct nrg_compare_runner *runner,
                    struct nrg_compare_side sides[2]);

#endif
