/*
 * Marks a known number of spans, for tests of the command line:
 *
 *   span-maker threads T N     T threads with N steps each
 *   span-maker fork P T N      the same in P children
 *   span-maker exec T N        closes all descriptors, then becomes `threads T N`
 *   span-maker kill N          N steps, opens one more, and dies of SIGKILL
 *   span-maker leave N         N steps, then a thread ends with a span open
 *   span-maker burst N         N spans as fast as they come
 *   span-maker names N         N spans, each with a long name of its own and a count, then such a
 *                              mark and such a count
 *   span-maker deep N          N spans, one inside the other, each with a count
 *   span-maker busy MS         MS ms of work in "busy", as long asleep in "asleep"
 *   span-maker inside FILE N   N steps with a recorder of its own
 *
 * A step is a span "step" of kind step with its number, which holds "work-I" of thread I and in it
 * "inner", a count of 3 "items" and a mark "done". A short rest after every 64 lets the ring be
 * emptied. Prints "active" or "idle": whether a recorder was there.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <nrg/nrg.h>

static int n_steps;

static void *make_steps(void *arg)
{
    char name[32];
    uint32_t step = nrg_name_intern("step", "step", NULL);
    snprintf(name, sizeof name, "work-%d", (int)(intptr_t)arg);
    for (int i = 0; i < n_steps; i++) {
        nrg_span_begin_numbered(step, i);
        nrg_span_begin(name);
        nrg_span_begin("inner");
        nrg_count_add("items", 3);
        nrg_span_end();
        nrg_mark("done");
        nrg_span_end();
        nrg_span_end();
        if (i % 64 == 63)
            usleep(1000);
    }
    return NULL;
}

static int make_threads(int n)
{
    pthread_t threads[64];
    for (int i = 0; i < n && i < 64; i++)
        if (pthread_create(&threads[i], NULL, make_steps, (void *)(intptr_t)i))
            return 1;
    for (int i = 0; i < n && i < 64; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

static int make_children(int n, int n_threads)
{
    for (int i = 0; i < n; i++)
        if (fork() == 0)
            _exit(make_threads(n_threads));
    for (int i = 0; i < n; i++)
        wait(NULL);
    return 0;
}

static int become_another(char **argv)
{
    char *const next[] = {argv[0], "threads", argv[2], argv[3], NULL};
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    execv(argv[0], next);
    return 1;
}

static void *leave_open(void *arg)
{
    nrg_span_begin("left open");
    return arg;
}

static void be_busy(int ms)
{
    struct timespec begin, now;
    nrg_span_begin("busy");
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
    nrg_span_end();
    nrg_span_begin("asleep");
    usleep((useconds_t)ms * 1000);
    nrg_span_end();
}

/* Each with a count of a name that has room. */
static void make_deep(int n)
{
    uint32_t deep = nrg_name_intern("deep", NULL, NULL);
    for (int i = 0; i < n; i++) {
        nrg_span_begin_name(deep);
        nrg_count_add("items", 1);
    }
    nrg_span_unwind(0);
}

static void make_names(int n)
{
    char name[4001];
    uint32_t items = nrg_name_intern("items", "counter", NULL);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (int i = 0; i < n; i++) {
        name[snprintf(name, 16, "%d", i)] = '-';
        nrg_span_begin(name);
        nrg_count_add_name(items, 1);
        nrg_span_end();
        if (i % 64 == 63)
            usleep(1000);
    }
    name[0] = 'm';
    nrg_mark(name);
    name[0] = 'c';
    nrg_count_add(name, 1);
}

static int record_inside(const char *path, int n)
{
    if (nrg_recorder_start(path)) {
        fprintf(stderr, "span-maker: %s\n", nrg_recorder_reason());
        return 1;
    }
    n_steps = n;
    make_threads(2);
    return nrg_recorder_stop() ? 1 : 0;
}

static int number(char **argv, int argc, int i)
{
    return i < argc ? atoi(argv[i]) : 1;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    puts(nrg_recording_active() ? "active" : "idle");
    fflush(stdout);
    n_steps = number(argv, argc, 2);
    if (!strcmp(what, "threads") && (n_steps = number(argv, argc, 3)) >= 0)
        return make_threads(number(argv, argc, 2));
    if (!strcmp(what, "fork") && (n_steps = number(argv, argc, 4)) >= 0)
        return make_children(number(argv, argc, 2), number(argv, argc, 3));
    if (!strcmp(what, "exec") && argc > 3)
        return become_another(argv);
    if (!strcmp(what, "inside") && argc > 3)
        return record_inside(argv[2], number(argv, argc, 3));
    if (!strcmp(what, "deep"))
        make_deep(n_steps);
    if (!strcmp(what, "names"))
        make_names(n_steps);
    if (!strcmp(what, "busy"))
        be_busy(n_steps);
    if (!strcmp(what, "kill") || !strcmp(what, "leave"))
        make_steps(NULL);
    if (!strcmp(what, "leave")) {
        pthread_t thread;
        if (!pthread_create(&thread, NULL, leave_open, NULL))
            pthread_join(thread, NULL);
    }
    if (!strcmp(what, "kill")) {
        nrg_span_begin("left open");
        raise(SIGKILL);
    }
    for (int i = 0; !strcmp(what, "burst") && i < n_steps; i++) {
        nrg_span_begin("burst");
        nrg_span_end();
    }
    return 0;
}
