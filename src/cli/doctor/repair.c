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

#include "base/mem.h"
#include "base/trust.h"
#include "cli/privilege.h"

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
    if (entry->pw_uid)
        nrg_privilege_of_file();
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

/* Of PATH, the folders whose programs nobody but root could have put there. */
static void keep_trusted_folders(void)
{
    struct nrg_str kept = {0};
    char *path = strdup(getenv("PATH") ? getenv("PATH") : ""), *save = NULL;
    for (char *folder = path ? strtok_r(path, ":", &save) : NULL; folder;
         folder = strtok_r(NULL, ":", &save))
        if (!nrg_trust_system_file(folder, NULL) && nrg_str_addf(&kept, "%s:", folder))
            _exit(127);
    if (!path || nrg_str_addf(&kept, "/usr/sbin:/usr/bin:/sbin:/bin") ||
        setenv("PATH", kept.text, 1))
        _exit(127);
    free(path);
    nrg_str_release(&kept);
}

static int run_shell(const char *command, const char *user)
{
    char script[sizeof prelude + sizeof((struct nrg_doctor_remedy *)NULL)->command];
    int status;
    snprintf(script, sizeof script, "%s%s", prelude, command);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("USER", user, 1);
        keep_trusted_folders();
        dup2(STDERR_FILENO, STDOUT_FILENO); /* what commands say is talk, not our result */
        execl("/bin/sh", "sh", "-c", script, (char *)NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool was_run(const struct nrg_repairs *repairs, const char *command)
{
    for (size_t i = 0; i < repairs->n; i++)
        if (!strcmp(repairs->commands[i], command))
            return true;
    return false;
}

/* The least harmful remedy that was not run yet, of all problems; of equals the first. */
static const struct nrg_doctor_remedy *choose(const struct nrg_repairs *repairs,
                                              const struct nrg_findings *problems,
                                              const struct nrg_finding **problem)
{
    const struct nrg_doctor_remedy *best = NULL;
    for (size_t p = 0; p < problems->n; p++)
        for (size_t r = 0; r < problems->items[p].n_remedies; r++) {
            const struct nrg_doctor_remedy *remedy = &problems->items[p].remedies[r];
            if (!remedy->command[0] || remedy->harm == NRG_HARM_EVERYBODY ||
                (best && remedy->harm >= best->harm) || was_run(repairs, remedy->command))
                continue;
            best = remedy;
            *problem = &problems->items[p];
        }
    return best;
}

int nrg_repair(struct nrg_repairs *repairs, const struct nrg_findings *problems, const char *user)
{
    const struct nrg_finding *problem;
    const struct nrg_doctor_remedy *remedy = choose(repairs, problems, &problem);
    if (!remedy)
        return 0;
    if (nrg_reserve(&repairs->commands, &repairs->cap, repairs->n + 1, sizeof *repairs->commands))
        return -ENOMEM;
    char *command = repairs->commands[repairs->n] = strdup(remedy->command);
    if (!command)
        return -ENOMEM;
    repairs->n++;
    printf("%s, as root for %s:\n    %s\n", problem->what, user, command);
    int code = run_shell(command, user);
    if (code)
        printf("    failed (%d)\n", code);
    return 1;
}

void nrg_repairs_release(struct nrg_repairs *repairs)
{
    for (size_t i = 0; i < repairs->n; i++)
        free(repairs->commands[i]);
    free(repairs->commands);
    *repairs = (struct nrg_repairs){0};
}
