/* See again.h. */
#include "cli/again.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/stop.h"

extern char **environ;

/* In a folder of others there could be a link to a file of ours, or a FIFO that nobody reads. */
static int open_log(const char *log)
{
    struct stat st;
    int fd = open(log, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, &st)                              ? -errno
             : !S_ISREG(st.st_mode) || st.st_nlink > 1   ? -EEXIST
             : ftruncate(fd, 0) || fcntl(fd, F_SETFL, 0) ? -errno
                                                         : 0;
    if (rc)
        close(fd);
    return rc ? rc : fd;
}

static int start(const char *const *argv, int log, pid_t *child)
{
    posix_spawn_file_actions_t actions;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc)
        return rc;
    for (int fd = STDOUT_FILENO; !rc && log >= 0 && fd <= STDERR_FILENO; fd++)
        rc = posix_spawn_file_actions_adddup2(&actions, log, fd);
    if (!rc)
        rc = posix_spawn(child, "/proc/self/exe", &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

int nrg_again(const char *const *argv, const char *log)
{
    pid_t child;
    int status = 0, fd = log ? open_log(log) : -1;
    if (log && fd < 0)
        return fd;
    int rc = start(argv, fd, &child);
    if (fd >= 0)
        close(fd);
    if (rc)
        return -rc;
    nrg_stop_pass_to(child);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    nrg_stop_pass_to(0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
