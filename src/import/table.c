/* See internal.h: what importers of CSV files with a header share. */
#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "import/internal.h"
#include "sensors/domain.h"

int nrg_import_cells(struct nrg_csv *cells, char *line, size_t len, struct nrg_error *err)
{
    nrg_csv_init(cells, line, len, NULL);
    int rc = nrg_csv_next(cells, err);
    if (rc < 0)
        nrg_csv_release(cells);
    return rc < 0 ? rc : 0;
}

bool nrg_import_has_column(const char *header, size_t len, const char *name)
{
    const char *at = header, *end = header + len;
    size_t wanted = strlen(name);
    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *cell = at;
        size_t n = (size_t)((comma ? comma : end) - at);
        nrg_trim(&cell, &n);
        if (n > 2 && *cell == '"' && cell[n - 1] == '"')
            cell++, n -= 2;
        if (n == wanted && !memcmp(cell, name, n))
            return true;
        at = comma ? comma + 1 : end;
    }
    return false;
}

int nrg_import_numbered(struct nrg_cell cell, const char *before, const char *after)
{
    size_t head = strlen(before), tail = strlen(after);
    int64_t number;
    nrg_trim(&cell.text, &cell.len);
    if (cell.len <= head + tail || memcmp(cell.text, before, head) ||
        memcmp(cell.text + cell.len - tail, after, tail))
        return -1;
    if (nrg_parse_i64(cell.text + head, cell.len - head - tail, &number))
        return -1;
    return number >= 0 && number < NRG_IMPORT_CHANNELS ? (int)number : -1;
}

struct nrg_channel nrg_import_energy_channel(const char *name, enum nrg_provenance provenance,
                                             const char *source)
{
    struct nrg_channel c = {
        .quantity = NRG_ENERGY, .kind = NRG_COUNTER, .provenance = provenance, .scale = 1e-6};
    nrg_copy_clean(c.name, sizeof c.name, name, strlen(name));
    nrg_copy_clean(c.source, sizeof c.source, source, strlen(source));
    nrg_domain_describe(&c);
    return c;
}
