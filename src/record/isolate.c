/* See isolate.h. */
#include "record/isolate.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/thread.h"

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

#define VFS_NAME "nrg-isolated"

static struct {
    pthread_mutex_t callers; /* held by who has a call in the thread's hands */
    pthread_mutex_t lock;    /* all that follows */
    pthread_cond_t changed;
    void (*call)(void *); /* NULL: none is waiting */
    void *arg;
    enum { ABSENT, STARTING, READY, REFUSED } state;
} host = {.callers = PTHREAD_MUTEX_INITIALIZER,
          .lock = PTHREAD_MUTEX_INITIALIZER,
          .changed = PTHREAD_COND_INITIALIZER};

static _Thread_local bool is_isolated;

/* Only a table of our own is emptied: the flag makes the kernel do both or nothing. */
static bool leave_table(void)
{
    if (syscall(SYS_close_range, 0U, ~0U, CLOSE_RANGE_UNSHARE))
        return false;
    int fd = -1;
    for (int i = 0; i < 3; i++) /* nothing of ours is ever stdin, stdout or stderr */
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    return fd == 2;
}

static void *serve(void *arg)
{
    bool ready = leave_table();
    is_isolated = true;
    pthread_mutex_lock(&host.lock);
    host.state = ready ? READY : REFUSED;
    pthread_cond_broadcast(&host.changed);
    while (ready) {
        while (!host.call)
            pthread_cond_wait(&host.changed, &host.lock);
        pthread_mutex_unlock(&host.lock);
        host.call(host.arg);
        pthread_mutex_lock(&host.lock);
        host.call = NULL;
        pthread_cond_broadcast(&host.changed);
    }
    pthread_mutex_unlock(&host.lock);
    return arg;
}

void nrg_isolate_begin(void)
{
    pthread_t thread;
    pthread_mutex_lock(&host.lock);
    if (host.state == ABSENT) {
        host.state = STARTING;
        if (nrg_isolate_register_vfs(VFS_NAME) ||
            nrg_thread_start(&thread, "nrg-files", serve, NULL))
            host.state = REFUSED;
        else
            pthread_detach(thread);
        while (host.state == STARTING)
            pthread_cond_wait(&host.changed, &host.lock);
    }
    pthread_mutex_unlock(&host.lock);
}

void nrg_isolate_forget(void)
{
    pthread_mutex_init(&host.callers, NULL);
    pthread_mutex_init(&host.lock, NULL);
    pthread_cond_init(&host.changed, NULL);
    host.call = NULL;
    host.state = ABSENT;
}

static bool is_ready(void)
{
    pthread_mutex_lock(&host.lock);
    bool ready = host.state == READY;
    pthread_mutex_unlock(&host.lock);
    return ready;
}

void nrg_isolate_call(void (*call)(void *), void *arg)
{
    if (is_isolated || !is_ready()) {
        call(arg);
        return;
    }
    pthread_mutex_lock(&host.callers);
    pthread_mutex_lock(&host.lock);
    host.arg = arg;
    host.call = call;
    pthread_cond_broadcast(&host.changed);
    while (host.call)
        pthread_cond_wait(&host.changed, &host.lock);
    pthread_mutex_unlock(&host.lock);
    pthread_mutex_unlock(&host.callers);
}

struct start {
    pthread_t *thread;
    const char *name;
    void *(*run)(void *);
    void *arg;
    int rc;
};

static void *run_isolated(void *arg)
{
    struct start s = *(struct start *)arg;
    free(arg);
    is_isolated = true;
    return s.run(s.arg);
}

static void start_thread(void *arg)
{
    struct start *s = arg, *copy = malloc(sizeof *copy);
    if (!copy) {
        s->rc = -ENOMEM;
        return;
    }
    *copy = *s;
    s->rc = nrg_thread_start(s->thread, s->name, run_isolated, copy);
    if (s->rc)
        free(copy);
}

int nrg_isolate_thread(pthread_t *thread, const char *name, void *(*run)(void *), void *arg)
{
    struct start s = {thread, name, run, arg, 0};
    if (!is_ready())
        return nrg_thread_start(thread, name, run, arg);
    nrg_isolate_call(start_thread, &s);
    return s.rc;
}

const char *nrg_isolate_vfs(void)
{
    return is_ready() ? VFS_NAME : NULL;
}
