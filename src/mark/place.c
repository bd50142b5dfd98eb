/*
 * See mark/internal.h. The variable may be old (inherited by a program that outlived its recorder)
 * and the descriptor's number may be another file's by now: inode, seals, magic, layout and token
 * must all fit before anything is written to it.
 */
#include "mark/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct offer {
    int fd;
    unsigned long long inode;
    uint8_t token[NRG_RING_TOKEN_BYTES];
    char path[64];
};

static int parse_offer(const char *variable, struct offer *o)
{
    char token[2 * NRG_RING_TOKEN_BYTES + 1];
    if (sscanf(variable, "1,%d,%llu,%32[0-9a-f],%63[/a-z0-9]", &o->fd, &o->inode, token, o->path) !=
        4)
        return -EINVAL;
    for (size_t i = 0; i < NRG_RING_TOKEN_BYTES; i++)
        if (sscanf(token + 2 * i, "%2hhx", &o->token[i]) != 1)
            return -EINVAL;
    return 0;
}

/* True for the file that was offered, sealed so that it can't shrink while it is mapped. */
static bool is_offered(int fd, const struct offer *o, off_t *size)
{
    struct stat st;
    if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_ino != o->inode ||
        st.st_size < (off_t)NRG_RING_SLOTS_AT)
        return false;
    *size = st.st_size;
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK);
}

static bool is_recorder(const struct nrg_ring_header *h, const struct offer *o)
{
    return h->magic == NRG_RING_MAGIC && !memcmp(h->token, o->token, sizeof h->token);
}

static bool is_segment(const struct nrg_ring_header *h, const struct offer *o)
{
    return is_recorder(h, o) && h->version == NRG_RING_VERSION && h->n_slots == NRG_RING_SLOTS &&
           h->n_records == NRG_RING_RECORDS && h->names_bytes == NRG_RING_NAMES_BYTES &&
           h->clock <= NRG_RING_TSC;
}

/* The recorder is there, but of another layout: it is told, where it can be. */
static int refuse(int fd, const struct offer *o)
{
    int rc = -EBADMSG;
    char *page = mmap(NULL, NRG_RING_SLOTS_AT, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return -errno;
    struct nrg_ring_refusals *r = (struct nrg_ring_refusals *)(page + NRG_RING_REFUSALS_AT);
    if (is_recorder((struct nrg_ring_header *)page, o)) {
        atomic_store_explicit(&r->version, NRG_RING_VERSION, memory_order_relaxed);
        uint32_t before = atomic_fetch_add_explicit(&r->programs, 1, memory_order_release);
        rc = r->magic == NRG_RING_REFUSALS_MAGIC || before ? -EPROTO : -EPROTONOSUPPORT;
    }
    munmap(page, NRG_RING_SLOTS_AT);
    return rc;
}

static int map_segment(int fd, off_t size, const struct offer *o, struct nrg_ring_header **segment)
{
    if (size != (off_t)NRG_RING_BYTES)
        return refuse(fd, o);
    void *mapped = mmap(NULL, NRG_RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        return -errno;
    if (!is_segment(mapped, o)) {
        munmap(mapped, NRG_RING_BYTES);
        return refuse(fd, o);
    }
    madvise(mapped, NRG_RING_BYTES, MADV_DONTDUMP); /* a core file need not hold the rings */
    *segment = mapped;
    return 0;
}

int nrg_place_open(const char *variable, struct nrg_ring_header **segment)
{
    struct offer o;
    off_t size;
    int rc = parse_offer(variable, &o);
    if (rc)
        return rc;
    if (is_offered(o.fd, &o, &size))
        return map_segment(o.fd, size, &o, segment);
    int fd = open(o.path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    rc = is_offered(fd, &o, &size) ? map_segment(fd, size, &o, segment) : -EBADMSG;
    close(fd);
    return rc;
}

/* Field 22 of stat, counted from the end of the name, which may contain anything. */
static int64_t read_start_ticks(void)
{
    char text[1024];
    long long ticks = 0;
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at && sscanf(at, "%lld", &ticks) == 1 ? ticks : 0;
}

static void describe_process(struct nrg_place *place)
{
    struct stat st;
    if (place->known)
        return;
    place->pid = (int32_t)getpid();
    place->pid_namespace = stat("/proc/self/ns/pid", &st) ? 0 : (uint64_t)st.st_ino;
    place->start_ticks = read_start_ticks();
    place->known = true;
}

struct nrg_ring_slot *nrg_place_claim(struct nrg_place *place, struct nrg_ring_header *segment)
{
    describe_process(place);
    struct nrg_ring_slot *slots = nrg_place_slots(segment);
    uint64_t me = (uint64_t)(uint32_t)place->pid << 32 | (uint32_t)syscall(SYS_gettid);
    for (size_t i = 0; i < NRG_RING_SLOTS; i++) {
        struct nrg_ring_slot *slot = &slots[i];
        uint64_t nobody = 0;
        if (atomic_load_explicit(&slot->owner, memory_order_relaxed) ||
            !atomic_compare_exchange_strong_explicit(&slot->owner, &nobody, me,
                                                     memory_order_acquire, memory_order_relaxed))
            continue;
        slot->pid_namespace = place->pid_namespace;
        slot->start_ticks = place->start_ticks;
        memset(slot->name, 0, sizeof slot->name);
        prctl(PR_GET_NAME, slot->name, 0, 0, 0);
        atomic_store_explicit(&slot->dropped, 0, memory_order_relaxed);
        atomic_store_explicit(&slot->too_deep, 0, memory_order_relaxed);
        atomic_store_explicit(&slot->nameless, 0, memory_order_relaxed);
        return slot;
    }
    return NULL;
}

void nrg_place_announce(struct nrg_ring_header *segment, struct nrg_ring_slot *slot)
{
    atomic_store_explicit(&slot->phase, NRG_RING_READY, memory_order_release);
    atomic_fetch_add_explicit(&segment->claims, 1, memory_order_release);
    syscall(SYS_futex, &segment->claims, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
