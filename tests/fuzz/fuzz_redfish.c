/*
 * Fuzz target: a document of a Redfish service. What passes as a reading is a power that a machine
 * can draw, and every link is a path of the same service, in bounds.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sensors/redfish/document.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_path(const char *path)
{
    if (!memchr(path, '\0', NRG_REDFISH_PATH) || (path[0] && path[0] != '/'))
        abort();
    for (; *path; path++)
        if (*path <= ' ' || *path >= 127)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct nrg_redfish_document d;
    char *exact = malloc(size ? size : 1); /* a byte too far is noticed */
    if (!exact)
        return 0;
    if (size)
        memcpy(exact, data, size);
    int rc = nrg_redfish_parse(exact, size, &d);
    free(exact);
    if (rc > 0)
        abort();
    if (rc)
        return 0;
    if (!d.error && !(d.watts > 0 && d.watts <= 1e6))
        abort();
    check_path(d.power);
    check_path(d.environment);
    check_path(d.chassis);
    check_path(d.source);
    for (size_t i = 0; i < d.n_members; i++)
        check_path(d.members[i]);
    return 0;
}
