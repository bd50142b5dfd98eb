/* See read_at.h. */
#include "base/read_at.h"

#include <errno.h>
#include <unistd.h>

ssize_t nrg_read_at(int fd, void *bytes, size_t size, off_t offset)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = pread(fd, (char *)bytes + done, size - done, offset + (off_t)done);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    return (ssize_t)done;
}
