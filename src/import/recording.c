/* What every imported recording has, whatever the format of its log: see internal.h. */
#include <math.h>
#include <string.h>

#include <nrg/nrg.h>

#include "import/internal.h"

int nrg_import_flush_rows(struct nrg_store *store, int series, struct nrg_rows *rows)
{
    int rc = nrg_store_rows(store, series, rows);
    rows->n = 0;
    return rc ? rc : nrg_store_commit(store);
}

static void drop_missing_parents(struct nrg_channel *channels, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool found = false;
        for (size_t k = 0; k < n; k++)
            found |= !strcmp(channels[k].name, channels[i].parent);
        if (!found)
            channels[i].parent[0] = '\0';
    }
}

int nrg_import_sensor(struct nrg_store *store, const char *format, const char *path,
                      struct nrg_channel *channels, size_t n, int64_t period_ns, int *series)
{
    const struct nrg_driver driver = {.name = format};
    bool wanted[NRG_IMPORT_CHANNELS];
    struct nrg_found found = {
        .driver = &driver, .channels = channels, .n_channels = n, .wanted = wanted};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    nrg_copy_clean(found.sensor, sizeof found.sensor, name, strlen(name));
    memset(wanted, true, sizeof wanted);
    drop_missing_parents(channels, n);
    return nrg_store_sensor(store, &found, period_ns, series, 1);
}

int nrg_import_describe(struct nrg_store *store, const struct nrg_import_origin *o)
{
    char text[512] = "imported from ";
    size_t len = strlen(text);
    const int64_t edges_ns[] = {o->begin_ns, o->end_ns};
    const struct nrg_run run = {
        .id = 1, .kind = "run", .begin_ns = o->begin_ns, .end_ns = o->end_ns, .exit_code = -1};
    nrg_copy_clean(text + len, sizeof text - len, o->path, strlen(o->path));
    nrg_store_text(store, "command_line", text);
    nrg_store_text(store, "imported_from", text + len);
    nrg_store_text(store, "import_format", o->format);
    nrg_store_text(store, "nrg_version", NRG_VERSION);
    nrg_store_integer(store, "begin_ns", o->begin_ns);
    nrg_store_integer(store, "end_ns", o->end_ns);
    if (!isnan(o->idle_w))
        nrg_store_real(store, "idle_w", o->idle_w);
    int rc = o->one_run ? nrg_store_run(store, &run) : 0;
    for (size_t i = 0; !rc && o->wall_clock && i < 2; i++) {
        struct nrg_clock_pair pair = {.mono_ns = edges_ns[i], .real_ns = edges_ns[i]};
        rc = nrg_store_clock(store, &pair);
    }
    return rc;
}
