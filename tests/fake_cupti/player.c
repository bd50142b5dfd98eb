/*
 * A program that "uses CUDA": it loads CUDA_INJECTION64_PATH as the driver does and plays a script
 * on threads of its own, in real time, with libnrg's spans for what the host does:
 *
 *   thread TID               what follows happens on it
 *   begin T NAME             a span, at T ns after the start
 *   end T
 *   call T CORRELATION       a call of the runtime that launches something
 *   sync T CORRELATION LENGTH [CONTEXT [KIND]]    one that waits for the GPU, so many ns; KIND is a
 *                            number of enum fake_call
 *   work KIND DEVICE CONTEXT STREAM CORRELATION START END NAME    on the GPU
 *
 * Options before the script: --launch calls what has correlation 1 from the first thread, in a span
 * that it opened before CUDA was initialised, --fork makes a child that does nothing at the end,
 * --crash ends by abort() without an exit handler, --none never initialises CUDA, --hold stops the
 * recorder for 300 ms while the program ends. Prints "base NS", the time of the start, "sync
 * CORRELATION BEGIN END" of each call that waits, as it really was, and how many libraries of CUPTI
 * are in its maps.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fake_cupti.h"
#include "nrg/nrg.h"

#define MAX_THREADS 16

struct event {
    char what; /* b, e, c, s */
    int64_t t_ns, length_ns;
    uint32_t correlation, context;
    enum fake_call kind;
    char *name;
};

struct thread {
    pthread_t id;
    struct event *events;
    size_t n, cap;
};

static struct {
    struct thread threads[MAX_THREADS];
    size_t n_threads;
    struct fake_kernel *work;
    size_t n_work, cap_work;
    int64_t base_ns;
    fake_cupti_call_function *call;
    fake_cupti_work_function *launch;
} play;

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void wait_until(int64_t t_ns)
{
    struct timespec ts = {t_ns / 1000000000, t_ns % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static void *grow(void *items, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return items;
    *cap = *cap ? *cap * 2 : 256;
    return realloc(items, *cap * size);
}

static void add_event(struct thread *t, char what, char *rest)
{
    struct event e = {.what = what};
    char *end;
    e.t_ns = strtoll(rest, &end, 10);
    if (what == 'c' || what == 's')
        e.correlation = (uint32_t)strtoul(end, &end, 10);
    if (what == 's') {
        e.length_ns = strtoll(end, &end, 10);
        e.context = (uint32_t)strtoul(end, &end, 10);
        e.kind = (enum fake_call)strtoul(end, NULL, 10);
        e.kind = e.kind ? e.kind : FAKE_WAITS;
    }
    if (what == 'b')
        e.name = strdup(end + 1);
    t->events = grow(t->events, t->n, &t->cap, sizeof e);
    t->events[t->n++] = e;
}

static void add_work(const char *rest)
{
    struct fake_kernel w;
    long long start, end;
    int at = 0;
    if (sscanf(rest, "%u %u %u %u %u %lld %lld %n", &w.kind, &w.device, &w.context, &w.stream,
               &w.correlation, &start, &end, &at) < 7)
        exit(2);
    w.start_ns = start;
    w.end_ns = end;
    w.name = strdup(rest + at);
    play.work = grow(play.work, play.n_work, &play.cap_work, sizeof w);
    play.work[play.n_work++] = w;
}

static void read_script(const char *path)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t size = 0;
    ssize_t n;
    if (!f)
        exit(2);
    while ((n = getline(&line, &size, f)) > 0) {
        line[n - 1] = '\0';
        struct thread *t = play.n_threads ? &play.threads[play.n_threads - 1] : NULL;
        if (!strncmp(line, "thread ", 7) && play.n_threads < MAX_THREADS)
            play.n_threads++;
        else if (!strncmp(line, "begin ", 6) && t)
            add_event(t, 'b', line + 6);
        else if (!strncmp(line, "end ", 4) && t)
            add_event(t, 'e', line + 4);
        else if (!strncmp(line, "call ", 5) && t)
            add_event(t, 'c', line + 5);
        else if (!strncmp(line, "sync ", 5) && t)
            add_event(t, 's', line + 5);
        else if (!strncmp(line, "work ", 5))
            add_work(line + 5);
        else
            exit(2);
    }
    free(line);
    fclose(f);
}

static void launch_all(uint32_t correlation)
{
    for (size_t i = 0; i < play.n_work; i++) {
        struct fake_kernel w = play.work[i];
        if (w.correlation != correlation || !play.launch)
            continue;
        w.start_ns += play.base_ns;
        w.end_ns += play.base_ns;
        play.launch(&w);
    }
}

static void *play_thread(void *arg)
{
    const struct thread *t = arg;
    for (size_t i = 0; i < t->n; i++) {
        const struct event *e = &t->events[i];
        wait_until(play.base_ns + e->t_ns);
        if (e->what == 'b') {
            nrg_span_begin(e->name);
        } else if (e->what == 'e') {
            nrg_span_end();
        } else if (play.call) {
            int64_t start_ns = now_ns();
            launch_all(e->correlation);
            if (e->what == 's')
                wait_until(start_ns + e->length_ns);
            int64_t end_ns = now_ns();
            play.call(e->kind, e->correlation, e->context, start_ns, end_ns);
            if (e->what == 's')
                printf("sync %u %lld %lld\n", e->correlation, (long long)start_ns,
                       (long long)end_ns);
        }
    }
    return NULL;
}

/* As the driver does in cuInit. */
static void initialise_cuda(void)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    int (*init)(void) =
        library ? (int (*)(void))(intptr_t)dlsym(library, "InitializeInjection") : NULL;
    if (init && init() != 1)
        exit(3);
    const char *cupti = getenv("NRG_CUPTI_LIBRARY");
    void *fake = cupti ? dlopen(cupti, RTLD_NOW | RTLD_NOLOAD) : NULL;
    if (!fake)
        return;
    play.call = (fake_cupti_call_function *)(intptr_t)dlsym(fake, "fake_cupti_call");
    play.launch = (fake_cupti_work_function *)(intptr_t)dlsym(fake, "fake_cupti_work");
}

/* As cudaDeviceSynchronize does. */
static void wait_for_work(void)
{
    int64_t last_ns = 0;
    for (size_t i = 0; i < play.n_work; i++)
        last_ns = play.work[i].end_ns > last_ns ? play.work[i].end_ns : last_ns;
    wait_until(play.base_ns + last_ns);
}

static void print_maps(void)
{
    char line[4096];
    FILE *f = fopen("/proc/self/maps", "r");
    int n = 0;
    while (f && fgets(line, sizeof line, f))
        n += strstr(line, "cupti") || strstr(line, "libnrg-inject");
    printf("mapped %d\n", n);
    if (f)
        fclose(f);
}

static void hold_recorder(void)
{
    const struct timespec rest = {0, 300000000};
    pid_t recorder = getppid();
    kill(recorder, SIGSTOP);
    if (fork())
        return;
    nanosleep(&rest, NULL);
    kill(recorder, SIGCONT);
    _exit(0);
}

int main(int argc, char **argv)
{
    bool fork_too = false, crash = false, none = false, launch = false, hold = false;
    for (; argc > 2; argc--, argv++) {
        fork_too |= !strcmp(argv[1], "--fork");
        crash |= !strcmp(argv[1], "--crash");
        none |= !strcmp(argv[1], "--none");
        launch |= !strcmp(argv[1], "--launch");
        hold |= !strcmp(argv[1], "--hold");
    }
    read_script(argv[1]);
    nrg_span_begin("main");
    if (!none)
        initialise_cuda();
    play.base_ns = now_ns() + 20000000;
    printf("base %lld\n", (long long)play.base_ns);
    if (launch && play.call) {
        int64_t start_ns = now_ns();
        launch_all(1);
        play.call(FAKE_LAUNCHES, 1, 0, start_ns, now_ns());
    }
    for (size_t i = 0; i < play.n_threads; i++)
        pthread_create(&play.threads[i].id, NULL, play_thread, &play.threads[i]);
    for (size_t i = 0; i < play.n_threads; i++)
        pthread_join(play.threads[i].id, NULL);
    wait_for_work();
    print_maps();
    fflush(stdout);
    if (fork_too && !fork())
        exit(0);
    while (fork_too && wait(NULL) > 0)
        ;
    if (crash)
        abort();
    if (hold)
        hold_recorder();
    nrg_span_end();
    return 7;
}
