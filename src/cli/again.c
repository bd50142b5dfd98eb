/* See again.h. */
#include "cli/again.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/stop.h"

extern char **environ;

static int redirect(posix_spawn_file_actions_t *actions, const char *log)
{
    int rc = posix_spawn_file_actions_init(actions);
    if (rc || !log)
        return rc;
    rc = posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, log,
                                          O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0666);
    return rc ? rc : posix_spawn_file_actions_adddup2(actions, STDOUT_FILENO, STDERR_FILENO);
}

int nrg_again(const char *const *argv, const char *log)
{
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = 0, rc = redirect(&actions, log);
    if (rc)
        return -rc;
    rc = posix_spawn(&child, "/proc/self/exe", &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (rc)
        return -rc;
    nrg_stop_pass_to(child);
    while (!rc && waitpid(child, &status, 0) < 0)
        rc = errno == EINTR ? 0 : errno;
    nrg_stop_pass_to(0);
    if (rc)
        return -rc;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
