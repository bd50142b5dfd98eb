/*
 * Fuzz target: patterns for lines. The first line of the input is the pattern, the second the
 * line that it is held against. Whatever compiles must match within its buffers, give finite
 * values, and a match must have at least one.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sensors/meter/text/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void match(const struct nrg_pattern *pattern, size_t n_fields, const char *line, size_t len)
{
    double values[NRG_METER_FIELDS];
    struct nrg_pattern_match m = {.values = values};
    size_t found = 0;
    if (!nrg_pattern_match(pattern, line, len, n_fields, &m))
        return;
    for (size_t i = 0; i < n_fields; i++) {
        if (isinf(values[i]))
            abort();
        found += !isnan(values[i]);
    }
    if (!found || (m.time && (m.time < line || m.time + m.time_len > line + len)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nrg_pattern pattern;
    struct nrg_meter_field fields[NRG_METER_FIELDS];
    struct nrg_error err;
    size_t n_fields = 0, first = 0;
    while (first < size && data[first] != '\n')
        first++;
    char *text = malloc(first + 1), *line;
    size_t len = size > first ? size - first - 1 : 0;
    line = malloc(len + 1); /* exactly as long: the sanitizer sees every byte too far */
    if (text && line) {
        memcpy(text, data, first);
        text[first] = '\0';
        if (len)
            memcpy(line, data + first + 1, len);
        if (!nrg_pattern_compile(&pattern, text, fields, &n_fields, &err)) {
            if (!n_fields || n_fields > NRG_METER_FIELDS)
                abort();
            match(&pattern, n_fields, line, len < 1024 ? len : 1024);
        }
    }
    free(text);
    free(line);
    return 0;
}
