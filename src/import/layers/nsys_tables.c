/* See nsys.h: scanning tables whose columns vary, and what the rows of others refer to. */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "import/layers/nsys.h"
#include "record/store/database.h"
#include "record/store/source.h"
#include "sensors/channel.h"

enum { NVTX_CATEGORY = 33, NVTX_DOMAIN = 75 }; /* eventType of rows that give names */

bool nrg_nsys_has(struct nrg_nsys *n, const char *table)
{
    char sql[256];
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
             " AND name = '%s'",
             table);
    return nrg_database_number(n->db, sql) > 0;
}

/* A column that is computed does not count: its rule would be the file's. */
static bool has_column(struct nrg_nsys *n, const char *table, const char *column)
{
    char sql[256];
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM pragma_table_xinfo('%s', 'main') WHERE name = '%s' AND hidden = "
             "0",
             table, column);
    return nrg_database_number(n->db, sql) > 0;
}

int nrg_nsys_scan(struct nrg_nsys *n, const char *table, const char *const *columns,
                  size_t n_columns, int (*each)(void *, sqlite3_stmt *), void *arg,
                  struct nrg_error *err)
{
    struct nrg_str sql = {0};
    bool any = false;
    if (!nrg_nsys_has(n, table))
        return 0;
    int rc = nrg_str_addf(&sql, "SELECT ");
    for (size_t i = 0; !rc && i < n_columns; i++) {
        bool there = has_column(n, table, columns[i]);
        any |= there;
        rc = there ? nrg_str_addf(&sql, "%s\"%s\"", i ? ", " : "", columns[i])
                   : nrg_str_addf(&sql, "%sNULL", i ? ", " : "");
    }
    if (!rc)
        rc = nrg_str_addf(&sql, " FROM main.\"%s\" NOT INDEXED", table);
    if (rc)
        nrg_fail(err, rc, n->path, "out of memory");
    else if (any && (rc = nrg_database_each(n->db, n->path, sql.text, each, arg, err)) == -EBADMSG)
        nrg_fail(err, rc, n->path, "is damaged, or not what nsys export writes: table %s: %s",
                 table, sqlite3_errmsg(n->db));
    nrg_str_release(&sql);
    return rc;
}

/* Keeps the text of a column under an id. Of an id that comes twice the first counts. */
static int keep_text(struct nrg_nsys *n, struct nrg_map *ids, int64_t id, sqlite3_stmt *row,
                     int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    size_t len = text ? (size_t)sqlite3_column_bytes(row, column) : 0;
    if (!len)
        return 0;
    len = len > NRG_SPAN_NAME_MAX ? NRG_SPAN_NAME_MAX : len;
    if (len > n->text_left || nrg_map_find_id(ids, (uint64_t)id))
        return 0;
    n->text_left -= len;
    char *copy = nrg_arena_alloc(&n->memory, len + 1);
    struct nrg_map_entry *entry = copy ? nrg_map_at_id(ids, (uint64_t)id) : NULL;
    if (!entry || nrg_append(&n->texts, &n->n_texts, &n->cap_texts, &copy, sizeof copy))
        return -ENOMEM;
    memcpy(copy, text, len);
    copy[len] = '\0';
    entry->number = (int64_t)n->n_texts;
    return 0;
}

const char *nrg_nsys_text(const struct nrg_nsys *n, const struct nrg_map *ids, int64_t id)
{
    const struct nrg_map_entry *entry = nrg_map_find_id(ids, (uint64_t)id);
    return entry && entry->number ? n->texts[entry->number - 1] : "";
}

static int take_string(void *arg, sqlite3_stmt *row)
{
    struct nrg_nsys *n = arg;
    return keep_text(n, &n->text_ids, sqlite3_column_int64(row, 0), row, 1);
}

static int take_gpu(void *arg, sqlite3_stmt *row)
{
    struct nrg_nsys *n = arg;
    struct nrg_nsys_gpu gpu = {.id = sqlite3_column_int64(row, 0)};
    nrg_database_text(row, 1, gpu.bus, sizeof gpu.bus);
    return nrg_append(&n->gpus, &n->n_gpus, &n->cap_gpus, &gpu, sizeof gpu);
}

static int take_device(void *arg, sqlite3_stmt *row)
{
    struct nrg_nsys *n = arg;
    const struct nrg_nsys_device device = {
        sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2)};
    return nrg_append(&n->devices, &n->n_devices, &n->cap_devices, &device, sizeof device);
}

static int take_start(void *arg, sqlite3_stmt *row)
{
    struct nrg_nsys *n = arg;
    n->start_ns = n->start_ns ? n->start_ns : sqlite3_column_int64(row, 0);
    return 0;
}

/* Names of threads refer to texts that are known already. */
static int take_thread(void *arg, sqlite3_stmt *row)
{
    struct nrg_nsys *n = arg;
    const struct nrg_map_entry *text =
        nrg_map_find_id(&n->text_ids, (uint64_t)sqlite3_column_int64(row, 0));
    struct nrg_map_entry *entry =
        text ? nrg_map_at_id(&n->thread_ids, (uint64_t)sqlite3_column_int64(row, 1)) : NULL;
    if (entry)
        entry->number = text->number;
    return text && !entry ? -ENOMEM : 0;
}

/* Rows of NVTX that name a domain or a category of one; the text is there, or an id of it. */
static int take_scope(void *arg, sqlite3_stmt *row)
{
    struct nrg_nsys *n = arg;
    int64_t type = sqlite3_column_int64(row, 0), domain = sqlite3_column_int64(row, 2);
    bool category = type == NVTX_CATEGORY;
    if (!category && type != NVTX_DOMAIN)
        return 0;
    int64_t scope = nrg_nsys_scope(sqlite3_column_int64(row, 1), domain,
                                   category ? sqlite3_column_int64(row, 3) : 0);
    struct nrg_map *ids = category ? &n->categories : &n->domains;
    if (sqlite3_column_type(row, 4) == SQLITE_TEXT)
        return keep_text(n, ids, scope, row, 4);
    const struct nrg_map_entry *text =
        nrg_map_find_id(&n->text_ids, (uint64_t)sqlite3_column_int64(row, 5));
    struct nrg_map_entry *entry = text ? nrg_map_at_id(ids, (uint64_t)scope) : NULL;
    if (entry)
        entry->number = text->number;
    return text && !entry ? -ENOMEM : 0;
}

static int by_bus(const void *a, const void *b)
{
    const struct nrg_nsys_gpu *x = a, *y = b;
    int order = strcmp(x->bus, y->bus);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

int nrg_nsys_load(struct nrg_nsys *n, struct nrg_error *err)
{
#define SCAN(table, take, ...)                                                                     \
    nrg_nsys_scan(n, table, (const char *const[]){__VA_ARGS__},                                    \
                  sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), take, n, err)
    const struct nrg_source_budget *budget = nrg_source_budget(n->db);
    n->text_left = budget ? (size_t)budget->bytes : (size_t)16 << 20;
    int rc = SCAN("StringIds", take_string, "id", "value");
    rc = rc ? rc : SCAN("TARGET_INFO_GPU", take_gpu, "id", "busLocation");
    rc = rc ? rc : SCAN("TARGET_INFO_CUDA_DEVICE", take_device, "gpuId", "cudaId", "pid");
    rc = rc ? rc : SCAN("TARGET_INFO_SESSION_START_TIME", take_start, "utcEpochNs");
    rc = rc ? rc : SCAN("ThreadNames", take_thread, "nameId", "globalTid");
    rc = rc ? rc
            : SCAN("NVTX_EVENTS", take_scope, "eventType", "globalTid", "domainId", "category",
                   "text", "textId");
#undef SCAN
    if (n->n_gpus)
        qsort(n->gpus, n->n_gpus, sizeof *n->gpus, by_bus);
    return rc;
}

void nrg_nsys_release(struct nrg_nsys *n)
{
    nrg_map_release(&n->text_ids);
    nrg_map_release(&n->thread_ids);
    nrg_map_release(&n->domains);
    nrg_map_release(&n->categories);
    nrg_arena_release(&n->memory);
    free(n->texts);
    free(n->gpus);
    free(n->devices);
}

/* CUDA_VISIBLE_DEVICES makes a process count the GPUs in its own way. */
int nrg_nsys_gpu(const struct nrg_nsys *n, int64_t pid, int64_t device)
{
    int64_t id = device;
    for (size_t i = 0; i < n->n_devices; i++)
        if (n->devices[i].cuda == device && (!n->devices[i].pid || n->devices[i].pid == pid)) {
            id = n->devices[i].gpu;
            break;
        }
    for (size_t i = 0; i < n->n_gpus; i++)
        if (n->gpus[i].id == id)
            return (int)i;
    return id >= 0 && id < 4096 ? (int)id : -1;
}
