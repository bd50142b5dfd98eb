/*
 * See spans/segment.h. The file is sealed, so that no program can shorten it: access to a mapping
 * beyond the end of its file raises SIGBUS. The descriptor has a high number, out of the way of
 * scripts that use the low ones.
 */
#include "record/spans/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/root.h"
#include "record/machine_info.h"

#define HIGH_FD 200

static size_t mapped_bytes(bool whole)
{
    return whole ? NRG_RING_BYTES : NRG_RING_NAMES_AT;
}

/* The kernel does not just refuse a file beyond the limit: it sends a signal that kills. */
static bool is_within_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
           limit.rlim_cur >= NRG_RING_BYTES;
}

static int make_file(struct nrg_span_segment *s)
{
    struct stat st;
    if (!is_within_limit())
        return -EFBIG;
    int low = memfd_create("nrg-spans", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (low < 0)
        return -errno;
    s->fd = fcntl(low, F_DUPFD_CLOEXEC, HIGH_FD);
    if (s->fd < 0)
        s->fd = low;
    else
        close(low);
    if (ftruncate(s->fd, (off_t)NRG_RING_BYTES) ||
        fcntl(s->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) || fstat(s->fd, &st))
        return -errno;
    s->inode = st.st_ino;
    return 0;
}

static int fill_header(struct nrg_ring_header *h)
{
    struct nrg_root here;
    struct nrg_ring_refusals *refusals = (void *)((char *)h + NRG_RING_REFUSALS_AT);
    nrg_root_init(&here, NULL, NULL);
    if (getrandom(h->token, sizeof h->token, GRND_NONBLOCK) != (ssize_t)sizeof h->token)
        return -EIO;
    h->version = NRG_RING_VERSION;
    h->clock = nrg_machine_has_tsc(&here) ? NRG_RING_TSC : NRG_RING_MONOTONIC;
    h->n_slots = NRG_RING_SLOTS;
    h->n_records = NRG_RING_RECORDS;
    h->names_bytes = NRG_RING_NAMES_BYTES;
    atomic_store(&h->names_used, 1);
    refusals->magic = NRG_RING_REFUSALS_MAGIC;
    h->magic = NRG_RING_MAGIC;
    return 0;
}

int nrg_span_segment_init(struct nrg_span_segment *s, bool whole, struct nrg_error *err)
{
    *s = (struct nrg_span_segment){.fd = -1, .whole = whole};
    int rc = make_file(s);
    if (!rc) {
        s->header = mmap(NULL, mapped_bytes(whole), PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
        s->header = s->header == MAP_FAILED ? NULL : s->header;
        rc = s->header ? fill_header(s->header) : -errno;
    }
    if (!rc && whole)
        madvise(s->header, mapped_bytes(whole), MADV_DONTDUMP);
    if (rc) {
        nrg_span_segment_release(s);
        return nrg_fail(err, rc, NULL, "no memory to share with the command: %s", strerror(-rc));
    }
    return 0;
}

void nrg_span_segment_release(struct nrg_span_segment *s)
{
    if (s->header)
        munmap(s->header, mapped_bytes(s->whole));
    if (s->fd >= 0)
        close(s->fd);
    s->header = NULL;
    s->fd = -1;
}

int nrg_span_segment_read(const struct nrg_span_segment *s, size_t offset, void *to, size_t size)
{
    if (offset > NRG_RING_BYTES || size > NRG_RING_BYTES - offset)
        return -EIO;
    if (s->whole) {
        memcpy(to, (const char *)s->header + offset, size);
        return 0;
    }
    ssize_t n;
    do
        n = pread(s->fd, to, size, (off_t)offset);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)size ? 0 : -EIO;
}

void nrg_span_segment_offer(const struct nrg_span_segment *s, pid_t holder,
                            char text[NRG_RING_VARIABLE_SIZE])
{
    char token[2 * NRG_RING_TOKEN_BYTES + 1];
    for (size_t i = 0; i < NRG_RING_TOKEN_BYTES; i++)
        snprintf(token + 2 * i, 3, "%02x", s->header->token[i]);
    snprintf(text, NRG_RING_VARIABLE_SIZE, "%s=1,%d,%llu,%s,/proc/%d/fd/%d", NRG_RING_VARIABLE,
             s->fd, s->inode, token, (int)holder, s->fd);
}
