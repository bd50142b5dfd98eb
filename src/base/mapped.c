/*
 * See mapped.h. A fault outside of our ranges is not ours: the handler puts back the action that
 * was there before, and the access that faulted meets that.
 */
#include "base/mapped.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_MAPPED 8 /* an index, its shards, a file of parameters beside */

/* What a signal handler can know. */
static struct {
    struct {
        uintptr_t from, to; /* both 0: free */
        volatile sig_atomic_t cut;
    } ranges[MAX_MAPPED];
    uintptr_t page;
    struct sigaction before;
    unsigned n;
} mapped;

static void on_fault(int signal, siginfo_t *info, void *context)
{
    uintptr_t at = (uintptr_t)info->si_addr;
    for (size_t i = 0; i < MAX_MAPPED; i++) {
        if (at < mapped.ranges[i].from || at >= mapped.ranges[i].to)
            continue;
        mapped.ranges[i].cut = 1;
        void *page = (void *)(at & ~(mapped.page - 1));
        if (mmap(page, mapped.page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
            page)
            return;
    }
    sigaction(signal, &mapped.before, NULL);
}

static void on_any_fault(int signal, siginfo_t *info, void *context)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *at = (void *)((uintptr_t)info->si_addr & ~(page - 1));
    if (info->si_code != BUS_ADRERR || mmap(at, page, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at)
        sigaction(signal, &(const struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

void nrg_mapped_survive(void)
{
    sigaction(SIGBUS,
              &(const struct sigaction){.sa_sigaction = on_any_fault, .sa_flags = SA_SIGINFO},
              NULL);
}

int nrg_mapped_open(struct nrg_mapped *m, int fd, size_t size)
{
    const struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    size_t i = 0;
    *m = (struct nrg_mapped){0};
    while (i < MAX_MAPPED && mapped.ranges[i].to)
        i++;
    if (!size || i == MAX_MAPPED)
        return size ? -EMFILE : -EINVAL;
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return -errno;
    mapped.page = (uintptr_t)sysconf(_SC_PAGESIZE);
    mapped.ranges[i].cut = 0;
    mapped.ranges[i].from = (uintptr_t)bytes;
    mapped.ranges[i].to = (uintptr_t)bytes + size;
    if (!mapped.n++)
        sigaction(SIGBUS, &action, &mapped.before);
    *m = (struct nrg_mapped){bytes, size};
    return 0;
}

int nrg_mapped_close(struct nrg_mapped *m)
{
    bool cut = false;
    if (!m->bytes)
        return 0;
    for (size_t i = 0; i < MAX_MAPPED; i++) {
        if (mapped.ranges[i].from != (uintptr_t)m->bytes)
            continue;
        cut = mapped.ranges[i].cut;
        mapped.ranges[i].from = mapped.ranges[i].to = 0;
        if (!--mapped.n)
            sigaction(SIGBUS, &mapped.before, NULL);
    }
    munmap(m->bytes, m->size);
    *m = (struct nrg_mapped){0};
    return cut ? -EIO : 0;
}
