/* See error.h. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/secret.h"

/* A place may be a URI, which is longer than `where` can be: its password goes before it is cut. */
static void hide_place(struct nrg_error *err, const char *where)
{
    if (strstr(where, "://"))
        nrg_mask_uri(err->where, sizeof err->where, where);
    else
        nrg_mask_text(err->where, sizeof err->where, where);
}

int nrg_fail_at(struct nrg_error *err, int code, const char *where, long long offset,
                const char *fmt, ...)
{
    if (err) {
        char what[sizeof err->what];
        va_list ap;
        err->code = code;
        err->offset = offset;
        va_start(ap, fmt);
        vsnprintf(what, sizeof what, fmt, ap);
        va_end(ap);
        nrg_mask_text(err->what, sizeof err->what, what);
        hide_place(err, where ? where : "");
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
