/*
 * Fuzz target: a file of /sys/cray/pm_counters, its name in the first line. What passes is a count
 * or a power that a node can have, with a stamp that fits, or none.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sensors/channel.h"
#include "sensors/cray/counter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nrg_cray_file file;
    int64_t value, stamp_us;
    char *text = malloc(size + 1); /* a byte too far is noticed */
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    char *line = memchr(text, '\n', size);
    size_t len = line ? size - (size_t)(line + 1 - text) : 0;
    if (line)
        *line++ = '\0';
    if (line && nrg_cray_file(text, &file)) {
        if (file.number < -1 || file.number > 63)
            abort();
        char *exact = malloc(len ? len : 1);
        if (exact && len)
            memcpy(exact, line, len);
        int rc = exact ? nrg_cray_parse(exact, len, file.energy, &value, &stamp_us) : -1;
        if (rc > 0 || (!rc && value < 0) || (!rc && stamp_us != NRG_MISSING && stamp_us < 0))
            abort();
        if (exact)
            nrg_cray_count(exact, len);
        free(exact);
    }
    free(text);
    return 0;
}
