/* See dir.h. The kernel's own records, as getdents64 gives them. */
#include "base/dir.h"

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

struct record {
    uint64_t inode, offset;
    unsigned short bytes;
    unsigned char type;
    char name[];
};

void nrg_dir_each(int fd, bool (*each)(void *arg, int fd, const char *name), void *arg)
{
    char buf[2048] __attribute__((aligned(8)));
    long n;
    while ((n = syscall(SYS_getdents64, fd, buf, sizeof buf)) > 0) {
        for (long at = 0; at < n;) {
            const struct record *record = (const struct record *)(buf + at);
            if (!each(arg, fd, record->name))
                return;
            at += record->bytes;
        }
    }
}
