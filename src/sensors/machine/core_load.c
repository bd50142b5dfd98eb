/*
 * See core_load.h. For one core with threads that are busy u1, u2, ... of the time, independently:
 *
 *   awake  = 1 - (1 - u1)(1 - u2)...        some thread is busy
 *   beside = (u1 + u2 + ... - awake) / (threads - 1)     the others are busy, too
 *   share  = (1 - s) awake + s beside       s: nrg_cpu_second_thread
 *
 * and the machine's share is the mean over its cores. Half of the threads busy, each on a core
 * of its own, is 1 - s = 0.84 of the way to full; all threads half busy is 0.67. Where it is
 * unknown who shares a core, the second case is assumed: it is also what servers without SMT do,
 * which wake caches and memory with the first busy core.
 */
#include "sensors/machine/core_load.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/parse.h"
#include "sensors/machine/cpu_table.h"
#include "sensors/machine/files.h"

#define PROC_STAT_MAX ((size_t)16 << 20)
#define LINE_MAX_SIZE 256
#define TOPOLOGY      "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list"

struct thread {
    int cpu;
    unsigned core; /* in nrg_core_load.cores */
    struct nrg_cpu_ticks ticks;
};

struct core {
    unsigned threads;
    double busy, idle; /* sum of u, product of 1 - u */
};

struct nrg_core_load {
    unsigned n_threads, n_cores;
    bool started;
    struct thread *threads; /* in the order of /proc/stat */
    struct core *cores;
};

static double core_share(double busy, double idle, unsigned threads)
{
    double awake = 1 - idle;
    if (threads < 2)
        return awake;
    return (1 - nrg_cpu_second_thread) * awake +
           nrg_cpu_second_thread * (busy - awake) / (threads - 1);
}

double nrg_load_share(double utilisation)
{
    return core_share(2 * utilisation, (1 - utilisation) * (1 - utilisation), 2);
}

static int keep_lowest(unsigned cpu, void *arg)
{
    int *lowest = arg;
    if (*lowest < 0 || (int)cpu < *lowest)
        *lowest = (int)cpu;
    return 0;
}

/* The lowest CPU that shares the core; the CPU itself where nothing is said. */
static int first_sibling(const struct nrg_root *root, int cpu)
{
    char path[96], text[256];
    int lowest = -1;
    snprintf(path, sizeof path, TOPOLOGY, cpu);
    if (nrg_root_read(root, path, text, sizeof text) <= 0 ||
        nrg_parse_cpulist(text, keep_lowest, &lowest) || lowest < 0)
        return cpu;
    return lowest;
}

/* Siblings come later in /proc/stat than the first thread of their core. */
static void place_thread(struct nrg_core_load *load, const struct nrg_root *root, int cpu)
{
    struct thread *t = &load->threads[load->n_threads];
    int first = first_sibling(root, cpu);
    *t = (struct thread){.cpu = cpu, .core = load->n_cores};
    for (unsigned i = 0; i < load->n_threads && first != cpu; i++)
        if (load->threads[i].cpu == first)
            t->core = load->threads[i].core;
    load->n_threads++;
    load->n_cores += t->core == load->n_cores;
    load->cores[t->core].threads++;
}

static unsigned count_cpu_lines(const char *text, const char *end)
{
    struct nrg_cpu_ticks ticks;
    unsigned n = 0;
    int cpu;
    for (; text < end && !nrg_proc_stat_line(&text, end, &cpu, &ticks);)
        n += cpu != NRG_CPU_ALL;
    return n;
}

static void place_threads(struct nrg_core_load *load, const struct nrg_root *root, const char *text,
                          const char *end)
{
    struct nrg_cpu_ticks ticks;
    int cpu;
    while (text < end && !nrg_proc_stat_line(&text, end, &cpu, &ticks))
        if (cpu != NRG_CPU_ALL)
            place_thread(load, root, cpu);
}

struct nrg_core_load *nrg_core_load_new(const struct nrg_root *root)
{
    char *text;
    ssize_t len = nrg_root_read_all(root, "/proc/stat", PROC_STAT_MAX, &text);
    if (len < 0)
        return NULL;
    unsigned n = count_cpu_lines(text, text + len);
    struct nrg_core_load *load = calloc(1, sizeof *load);
    if (load && n) {
        load->threads = calloc(n, sizeof *load->threads);
        load->cores = calloc(n, sizeof *load->cores);
        if (load->threads && load->cores)
            place_threads(load, root, text, text + len);
    }
    free(text);
    if (load && load->n_cores < load->n_threads)
        return load;
    nrg_core_load_free(load);
    return NULL;
}

void nrg_core_load_free(struct nrg_core_load *load)
{
    if (!load)
        return;
    free(load->threads);
    free(load->cores);
    free(load);
}

size_t nrg_core_load_stat_size(const struct nrg_core_load *load)
{
    return ((size_t)load->n_threads + 2) * LINE_MAX_SIZE;
}

static void add_thread(struct nrg_core_load *load, const struct thread *t,
                       const struct nrg_cpu_ticks *now)
{
    struct core *core = &load->cores[t->core];
    int64_t busy = nrg_cpu_ticks_between(t->ticks.busy, now->busy);
    int64_t total = busy + nrg_cpu_ticks_between(t->ticks.idle, now->idle) +
                    nrg_cpu_ticks_between(t->ticks.steal, now->steal);
    double u = total ? (double)busy / (double)total : 0;
    core->busy += u;
    core->idle *= 1 - u;
}

static double mean_share(const struct nrg_core_load *load)
{
    double sum = 0;
    for (unsigned i = 0; i < load->n_cores; i++)
        sum += core_share(load->cores[i].busy, load->cores[i].idle, load->cores[i].threads);
    return sum / load->n_cores;
}

double nrg_core_load_share(struct nrg_core_load *load, const char *text, size_t len, bool settle)
{
    const char *end = text + len;
    struct nrg_cpu_ticks ticks;
    int cpu;
    unsigned at = 0;
    for (unsigned i = 0; i < load->n_cores; i++) {
        load->cores[i].busy = 0;
        load->cores[i].idle = 1;
    }
    while (text < end && !nrg_proc_stat_line(&text, end, &cpu, &ticks)) {
        while (at < load->n_threads && load->threads[at].cpu < cpu)
            at++;
        if (at == load->n_threads || load->threads[at].cpu != cpu)
            continue; /* the machine's line, or a CPU that came later */
        if (load->started)
            add_thread(load, &load->threads[at], &ticks);
        if (settle)
            load->threads[at].ticks = ticks;
    }
    bool known = load->started;
    load->started |= settle;
    return known ? mean_share(load) : -1;
}
