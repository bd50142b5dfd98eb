/* See scope_path.h. Parts that do not fit are left out: a path is for showing. */
#include "graph/scope_path.h"

#include <stdbool.h>
#include <string.h>

int nrg_scope_path(const char *label, size_t len, char *path, size_t size, nrg_scope_trim_fn *trim,
                   const void *arg)
{
    const char *end = label + len, *part = label + (len && label[0] == '/'), *slash;
    size_t at = 0, last = 0, last_len = 0;
    if (!memchr(label, '/', len))
        return -1;
    for (; (slash = memchr(part, '/', (size_t)(end - part))); part = slash + 1) {
        size_t n = (size_t)(slash - part);
        bool repeats = last_len && n > last_len && part[last_len] == '.' &&
                       !memcmp(part, path + last, last_len);
        if (!n || at + n + 2 > size)
            continue;
        if (repeats)
            at = last;
        else if (at)
            path[at++] = '.';
        last = at;
        memcpy(path + at, part, n);
        at += n;
        if (trim)
            at = trim(path, at, arg);
        last_len = at - last;
    }
    path[at] = 0;
    return (int)at;
}
