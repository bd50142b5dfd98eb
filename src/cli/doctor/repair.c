/* See repair.h. */
#include "cli/doctor/repair.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int nrg_guise_begin(struct nrg_guise *guise, const char *user, struct nrg_error *err)
{
    *guise = (struct nrg_guise){0};
    const struct passwd *entry = getpwnam(user);
    if (!entry)
        return nrg_fail(err, -ENOENT, "--user", "there is no user '%s'", user);
    guise->n_groups = getgroups(0, NULL);
    guise->groups = calloc((size_t)guise->n_groups + 1, sizeof *guise->groups);
    if (!guise->groups)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    guise->n_groups = getgroups(guise->n_groups, guise->groups);
    if (guise->n_groups < 0 || initgroups(user, entry->pw_gid) || setegid(entry->pw_gid) ||
        seteuid(entry->pw_uid)) {
        int rc = -errno;
        nrg_guise_end(guise);
        return nrg_fail(err, rc, "--user", "can't take the place of '%s': %s", user, strerror(-rc));
    }
    return 0;
}

void nrg_guise_end(struct nrg_guise *guise)
{
    if (seteuid(0) || setegid(0) || setgroups((size_t)guise->n_groups, guise->groups))
        abort(); /* with whose rights would it go on? */
    free(guise->groups);
    *guise = (struct nrg_guise){0};
}

/* As root already, and for another user than root. */
static const char prelude[] = "sudo() { \"$@\"; }; id() { command id \"$@\" \"$USER\"; }; ";

static int run_shell(const char *command, const char *user)
{
    char script[sizeof prelude + sizeof((struct nrg_doctor_remedy *)NULL)->command];
    int status;
    snprintf(script, sizeof script, "%s%s", prelude, command);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("USER", user, 1);
        dup2(STDERR_FILENO, STDOUT_FILENO); /* what commands say is talk, not our result */
        execl("/bin/sh", "sh", "-c", script, (char *)NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool nrg_repair(const struct nrg_finding *problem, const char *user)
{
    for (size_t i = 0; i < problem->n_remedies; i++) {
        const struct nrg_doctor_remedy *remedy = &problem->remedies[i];
        if (!remedy->command[0] || remedy->for_everybody)
            continue;
        printf("%s, as root for %s:\n    %s\n", problem->what, user, remedy->command);
        int code = run_shell(remedy->command, user);
        if (!code)
            return true;
        printf("    failed (%d)\n", code);
    }
    return false;
}
