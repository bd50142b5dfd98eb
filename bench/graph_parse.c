/*
 * Reads model files again and again and prints what it took, one JSON line per file: the shortest
 * of `rounds` (the machine has other work; the shortest is the least disturbed), for the reader
 * alone and with reduction and costs, and the memory of the model per operator. For bench/graph.
 *
 *   graph_parse ROUNDS FILE…
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include <fcntl.h>
#include <unistd.h>

#include "graph/reader.h"
#include "graph/reduce.h"

struct result {
    double read_s, all_s;
    size_t arena_bytes, operators, values, kept;
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int once(const struct nrg_source *source, struct result *best)
{
    struct nrg_model model;
    struct nrg_reduced reduced;
    struct nrg_error err;
    double start = now_s();
    if (nrg_model_read_bytes(source, NULL, &model, &err)) {
        fprintf(stderr, "%s: %s\n", source->name, err.what);
        return -1;
    }
    double read = now_s() - start;
    if (!nrg_reduce(&model, NULL, &reduced, &err)) {
        nrg_cost_all(&reduced, NRG_CONVENTION_NRG);
        best->kept = reduced.n_operators;
        nrg_reduced_release(&reduced);
    }
    double all = now_s() - start;
    best->read_s = best->read_s > 0 && best->read_s < read ? best->read_s : read;
    best->all_s = best->all_s > 0 && best->all_s < all ? best->all_s : all;
    best->arena_bytes = model.arena.used;
    best->operators = model.n_graphs ? model.graphs[0]->n_ops : 0;
    best->values = model.n_graphs ? model.graphs[0]->n_values : 0;
    nrg_model_release(&model);
    return 0;
}

static int measure(const char *path, int rounds)
{
    struct result best = {0};
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;
    if (fd < 0 || fstat(fd, &st) || st.st_size <= 0) {
        perror(path);
        return 1;
    }
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    struct nrg_source source = {.bytes = map, .size = (size_t)st.st_size, .name = path};
    close(fd);
    if (map == MAP_FAILED)
        return 1;
    for (int i = 0; i < rounds && !rc; i++)
        rc = once(&source, &best);
    munmap(map, (size_t)st.st_size);
    if (rc)
        return 1;
    printf("{\"file\": \"%s\", \"bytes\": %lld, \"read_s\": %.9f, \"all_s\": %.9f, "
           "\"arena_bytes\": %zu, \"operators\": %zu, \"values\": %zu, \"kept\": %zu}\n",
           path, (long long)st.st_size, best.read_s, best.all_s, best.arena_bytes, best.operators,
           best.values, best.kept);
    return 0;
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[1]) : 0, failed = 0;
    if (rounds < 1) {
        fprintf(stderr, "usage: graph_parse ROUNDS FILE...\n");
        return 2;
    }
    for (int i = 2; i < argc; i++)
        failed |= measure(argv[i], rounds);
    return failed;
}
