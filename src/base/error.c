/* See error.h. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int nrg_fail_at(struct nrg_error *err, int code, const char *where, long long offset,
                const char *fmt, ...)
{
    if (err) {
        va_list ap;
        err->code = code;
        err->offset = offset;
        snprintf(err->where, sizeof err->where, "%s", where ? where : "");
        va_start(ap, fmt);
        vsnprintf(err->what, sizeof err->what, fmt, ap);
        va_end(ap);
    }
    return code;
}

const char *nrg_error_text(const struct nrg_error *err, char *buf, size_t size)
{
    if (err->where[0] && err->offset >= 0)
        snprintf(buf, size, "%s:%lld: %s", err->where, err->offset, err->what);
    else if (err->where[0])
        snprintf(buf, size, "%s: %s", err->where, err->what);
    else
        snprintf(buf, size, "%s", err->what);
    return buf;
}
