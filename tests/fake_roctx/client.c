/*
 * A program with ranges of roctx: roctx-client LIBRARY [hip|kernels SDK|PROFILER]; "hip": it begins
 * to use HIP first, as a program that computes does; "kernels": it computes, with the stand-in SDK
 * for HIP; another word is a rocprofiler-sdk that it has in it.
 * Ranges nest and cross, one is ended by another thread, there is a mark. Prints the levels that
 * roctx gave, and how many of nrg's libraries are in its maps.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_roctx.h"

static struct {
    void (*mark)(const char *);
    int (*push)(const char *);
    int (*pop)(void);
    uint64_t (*start)(const char *);
    void (*stop)(uint64_t);
} roctx;

static void load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    *(void **)&roctx.mark = dlsym(library, "roctxMarkA");
    *(void **)&roctx.push = dlsym(library, "roctxRangePushA");
    *(void **)&roctx.pop = dlsym(library, "roctxRangePop");
    *(void **)&roctx.start = dlsym(library, "roctxRangeStartA");
    *(void **)&roctx.stop = dlsym(library, "roctxRangeStop");
}

/* As libamdhip64 does with its first call. */
static void begin_hip(void)
{
    static uint64_t functions[8] = {sizeof functions};
    void *tables[] = {functions};
    uint64_t id;
    rocprofiler_register_library_api_table("hip", NULL, 60000, tables, 1, &id);
}

static void *stop(void *id)
{
    roctx.stop(*(uint64_t *)id);
    return NULL;
}

static void use_ranges(void)
{
    pthread_t thread;
    printf("levels");
    for (int step = 0; step < 3; step++) {
        printf(" %d", roctx.push("step"));
        printf(" %d", roctx.push("forward"));
        usleep(2000);
        printf(" %d", roctx.pop());
        printf(" %d", roctx.pop());
    }
    printf(" %d\n", roctx.pop());
    uint64_t first = roctx.start("first"), second = roctx.start("second");
    usleep(2000);
    roctx.stop(first);
    usleep(2000);
    roctx.stop(second);
    roctx.mark("half time");
    uint64_t far = roctx.start("far");
    pthread_create(&thread, NULL, stop, &far);
    pthread_join(thread, NULL);
    roctx.push("after");
    roctx.pop();
}

static void *find(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found)
        exit(3);
    return found;
}

/* Two kernels in ranges, one on the other GPU without any, copies, waiting. */
static void compute(const char *sdk)
{
    void *library = dlopen(sdk, RTLD_NOW);
    if (!library)
        exit(3);
    __typeof__(&fake_hip_load) hip_load = find(library, "fake_hip_load");
    __typeof__(&fake_hip_launch) hip_launch = find(library, "fake_hip_launch");
    __typeof__(&fake_hip_copy) hip_copy = find(library, "fake_hip_copy");
    __typeof__(&fake_hip_synchronize) hip_synchronize = find(library, "fake_hip_synchronize");
    hip_load(3, "_Z4gemmPfi");
    hip_load(4, "plain");
    roctx.push("step");
    hip_copy(8, 7, 500);
    roctx.push("forward");
    hip_launch(8, 3, 3000, 2000);
    roctx.pop();
    hip_launch(8, 4, 5000, 1000);
    roctx.pop();
    hip_synchronize(8000);
    hip_launch(9, 3, 300, 400);
    usleep(2000); /* a queue has one kernel at a time */
    hip_copy(9, 8, 100);
    hip_launch(9, 77, 300, 400);
    usleep(5000);
}

static void print_maps(void)
{
    char line[4096];
    FILE *f = fopen("/proc/self/maps", "r");
    int n = 0;
    while (f && fgets(line, sizeof line, f))
        n += strstr(line, "libnrg-inject") != NULL;
    printf("mapped %d\n", n);
    if (f)
        fclose(f);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    load(argv[1]);
    if (argc > 2 && (!strcmp(argv[2], "hip") || !strcmp(argv[2], "kernels")))
        begin_hip();
    else if (argc > 2 && !dlopen(argv[2], RTLD_NOW | RTLD_LOCAL))
        return 2;
    if (argc > 3)
        compute(argv[3]);
    else
        use_ranges();
    print_maps();
    return 0;
}
