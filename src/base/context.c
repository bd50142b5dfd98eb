/* See context.h. */
#include "base/context.h"

#include <stdarg.h>
#include <stdio.h>

void nrg_log(const struct nrg_context *ctx, enum nrg_level level, const char *fmt, ...)
{
    if (!ctx->log)
        return;
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    ctx->log(ctx->log_arg, level, line);
}
