/*
 * record/sampler/proctree.c: the moments of a process's end, one by one, as a busy machine shows
 * them. A captured /proc stands still where a real one is gone in microseconds.
 */
#include "support/cmocka.h"
#include "support/tree.h"

#include <string.h>
#include <time.h>

#include "record/sampler/proctree.h"

enum { PARENT = 100, CHILD = 101 };

/* The CPU time of each process's last row, by id. */
struct seen {
    int64_t cpu_ns[8];
};

static void on_sample(void *arg, int64_t t_ns, const int64_t *values)
{
    struct seen *seen = arg;
    (void)t_ns;
    assert_in_range(values[NRG_P_PROCESS], 1, 7);
    seen->cpu_ns[values[NRG_P_PROCESS]] = values[NRG_P_CPU_NS];
}

static void on_process(void *arg, const struct nrg_process_info *info)
{
    (void)arg, (void)info;
}

static void on_note(void *arg, const char *detail)
{
    (void)arg, (void)detail;
}

static void show(struct tree *tree, int pid, int parent, char process_state, int ticks, int waited)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    tree_write(tree, path,
               "%d (p) %c %d 1 1 0 -1 0 1 2 0 0 %d 0 %d 0 20 0 1 0 5678 1000000 250 0\n", pid,
               process_state, parent, ticks, waited);
}

static void remove_child(struct tree *tree)
{
    tree_write(tree, "/proc/101/stat", "%s",
               ""); /* as an open stat reads once its process is gone */
    tree_write(tree, "/proc/100/task/100/children", "%s", "");
}

static int64_t total_ms(const struct seen *seen)
{
    int64_t sum_ns = 0;
    for (size_t i = 0; i < 8; i++)
        sum_ns += seen->cpu_ns[i];
    return sum_ns / 1000000;
}

/* A parent that has used 0.1 s, and a child 0.5 s. */
static struct nrg_proctree *begin(struct tree *tree, struct seen *seen)
{
    const struct nrg_proctree_events events = {on_sample, on_process, on_note, seen, NULL};
    memset(seen, 0, sizeof *seen);
    tree_init(tree);
    show(tree, PARENT, 1, 'S', 10, 0);
    show(tree, CHILD, PARENT, 'R', 50, 0);
    tree_write(tree, "/proc/100/task/100/children", "101 ");
    tree_write(tree, "/proc/101/task/101/children", "%s", "");
    struct nrg_proctree *processes = nrg_proctree_new(&tree->ctx, false, &events);
    assert_non_null(processes);
    assert_int_equal(nrg_proctree_add_root(processes, PARENT, true), 0);
    nrg_proctree_poll(processes);
    assert_int_equal(total_ms(seen), 600);
    return processes;
}

static void end(struct tree *tree, struct nrg_proctree *processes)
{
    nrg_proctree_free(processes);
    tree_release(tree);
}

/* wait(2) adds the child to its parent's sums before the child leaves /proc. */
static void in_the_sums_and_still_there(void **state)
{
    struct tree tree;
    struct seen seen;
    (void)state;
    struct nrg_proctree *processes = begin(&tree, &seen);
    show(&tree, CHILD, PARENT, 'X', 50, 0);
    show(&tree, PARENT, 1, 'S', 10, 50);
    nrg_proctree_poll(processes);
    assert_int_equal(total_ms(&seen), 600);
    remove_child(&tree);
    nrg_proctree_poll(processes);
    nrg_proctree_finish(processes);
    assert_int_equal(total_ms(&seen), 600);
    end(&tree, processes);
}

/* Stopped in the middle of its wait, the parent does not have a child that is gone. */
static void gone_and_not_in_the_sums_yet(void **state)
{
    struct tree tree;
    struct seen seen;
    (void)state;
    struct nrg_proctree *processes = begin(&tree, &seen);
    remove_child(&tree);
    for (int i = 0; i < 3; i++)
        nrg_proctree_poll(processes);
    show(&tree, PARENT, 1, 'S', 10, 50 + 8); /* and one that was never seen */
    nrg_proctree_poll(processes);
    nrg_proctree_finish(processes);
    assert_int_equal(total_ms(&seen), 680);
    end(&tree, processes);
}

/* What nobody is told must not hide those that come later. */
static void reported_to_nobody(void **state)
{
    struct tree tree;
    struct seen seen;
    (void)state;
    struct nrg_proctree *processes = begin(&tree, &seen);
    remove_child(&tree);
    for (int i = 0; i < 4; i++) {
        nrg_proctree_poll(processes);
        nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
    }
    show(&tree, PARENT, 1, 'S', 10, 8);
    nrg_proctree_poll(processes);
    assert_int_equal(total_ms(&seen), 680);
    end(&tree, processes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_the_sums_and_still_there),
        cmocka_unit_test(gone_and_not_in_the_sums_yet),
        cmocka_unit_test(reported_to_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
