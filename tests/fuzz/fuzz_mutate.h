/* The mutator of fuzz_command.h: edits a recording through SQLite. Included by each target. */
#ifndef NRG_TESTS_FUZZ_MUTATE_H
#define NRG_TESTS_FUZZ_MUTATE_H

#include "fuzz_command.h"

#define MAX_BLOB 65536

static inline uint64_t next_random(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t x = *state;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static inline int64_t odd_integer(uint64_t *r, int64_t old)
{
    static const int64_t odd[] = {0,
                                  1,
                                  -1,
                                  2,
                                  16,
                                  63,
                                  64,
                                  255,
                                  65535,
                                  INT32_MAX,
                                  INT32_MAX - 1,
                                  INT64_C(1) << 31,
                                  INT64_C(1) << 32,
                                  INT64_C(1) << 40,
                                  INT64_C(1) << 52,
                                  INT64_C(1) << 61,
                                  INT64_C(1) << 62,
                                  INT64_MAX,
                                  INT64_MAX - 1,
                                  INT64_MIN,
                                  INT64_MIN + 1,
                                  INT32_MIN,
                                  NRG_MISSING};
    uint64_t pick = next_random(r);
    switch (pick % 4) {
    case 0:
        return (int64_t)((uint64_t)old + (pick >> 8) % 3 - 1);
    case 1:
        return (int64_t)((uint64_t)old << (pick >> 8) % 8);
    case 2:
        return (int64_t)next_random(r) >> (pick >> 8) % 64;
    default:
        return odd[(pick >> 8) % (sizeof odd / sizeof *odd)];
    }
}

static inline double odd_real(uint64_t *r, double old)
{
    static const double odd[] = {0,      -1,      1e-320, 1e308, -1e308, 8.9e24,
                                 9.3e18, -9.3e18, 4.3e9,  1e-9,  0.5};
    uint64_t pick = next_random(r);
    return pick % 2 ? odd[(pick >> 8) % (sizeof odd / sizeof *odd)]
                    : old * (pick % 4 ? 1e3 : -1e-3);
}

static inline char *first_text(sqlite3 *db, const char *sql, int64_t number)
{
    sqlite3_stmt *s = NULL;
    char *text = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(s, 1, number);
        if (sqlite3_step(s) == SQLITE_ROW && sqlite3_column_text(s, 0))
            text = strdup((const char *)sqlite3_column_text(s, 0));
    }
    sqlite3_finalize(s);
    return text;
}

static inline int64_t first_number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *s = NULL;
    int64_t n = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        n = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return n;
}

/* Whether an edit must be the same each time, as one that a target itself makes of its input. */
static bool edits_repeat;

/* Some bytes changed: by what the fuzzer has learned, or else one of them. */
static inline size_t change_bytes(uint8_t *bytes, size_t len, size_t room, uint64_t *r)
{
    if (!edits_repeat)
        return LLVMFuzzerMutate(bytes, len, room);
    uint64_t pick = next_random(r);
    if (len && pick % 4)
        bytes[(pick >> 8) % len] = (uint8_t)(pick >> 40);
    else if (len < room)
        bytes[len++] = (uint8_t)(pick >> 40);
    return len;
}

/* Another value of the same or of another kind. */
static inline void bind_other(sqlite3_stmt *to, sqlite3_value *old, uint64_t *r)
{
    uint64_t pick = next_random(r);
    uint8_t bytes[MAX_BLOB];
    size_t len = (size_t)sqlite3_value_bytes(old);
    if (pick % 16 == 0)
        sqlite3_bind_null(to, 1);
    else if (pick % 16 == 1 || sqlite3_value_type(old) == SQLITE_FLOAT)
        sqlite3_bind_double(to, 1, odd_real(r, sqlite3_value_double(old)));
    else if (sqlite3_value_type(old) == SQLITE_INTEGER || pick % 16 == 2)
        sqlite3_bind_int64(to, 1, odd_integer(r, sqlite3_value_int64(old)));
    else {
        len = len < sizeof bytes / 2 ? len : sizeof bytes / 2;
        if (len)
            memcpy(bytes, sqlite3_value_blob(old), len);
        len = change_bytes(bytes, len, sizeof bytes, r);
        if (sqlite3_value_type(old) == SQLITE_BLOB)
            sqlite3_bind_blob(to, 1, bytes, (int)len, SQLITE_TRANSIENT);
        else
            sqlite3_bind_text(to, 1, (const char *)bytes, (int)len, SQLITE_TRANSIENT);
    }
}

static inline void edit_value(sqlite3 *db, const char *table, const char *column, int64_t row,
                              uint64_t *r)
{
    sqlite3_stmt *read = NULL, *set = NULL;
    bool meta = !strcmp(table, "meta");
    const char *key = meta ? "key" : "rowid";
    char *get = sqlite3_mprintf("SELECT \"%w\", %s FROM \"%w\" LIMIT 1 OFFSET %lld", column, key,
                                table, (long long)row);
    char *put =
        sqlite3_mprintf("UPDATE OR REPLACE \"%w\" SET \"%w\"=? WHERE %s=?", table, column, key);
    if (sqlite3_prepare_v2(db, get, -1, &read, NULL) == SQLITE_OK &&
        sqlite3_step(read) == SQLITE_ROW &&
        sqlite3_prepare_v2(db, put, -1, &set, NULL) == SQLITE_OK) {
        bind_other(set, sqlite3_column_value(read, 0), r);
        sqlite3_bind_value(set, 2, sqlite3_column_value(read, 1));
        sqlite3_reset(read);
        sqlite3_step(set);
    }
    sqlite3_finalize(read);
    sqlite3_finalize(set);
    sqlite3_free(get);
    sqlite3_free(put);
}

/* Cells of a chunk, decoded, a few changed, coded again. */
static inline void edit_cells(int64_t **columns, size_t n_columns, size_t n, uint64_t *r)
{
    for (uint64_t k = 1 + next_random(r) % 4; k > 0; k--) {
        size_t c = next_random(r) % n_columns, i = next_random(r) % n;
        int64_t value = odd_integer(r, columns[c][i]);
        size_t upto = next_random(r) % 4 ? i + 1 : n;
        for (; i < upto; i++)
            columns[c][i] = value;
    }
}

static inline void edit_chunk(sqlite3 *db, uint64_t *r)
{
    sqlite3_stmt *s = NULL, *set = NULL;
    int64_t row =
        (int64_t)(next_random(r) % 1024) % (first_number(db, "SELECT count(*) FROM chunk") + 1);
    char *get =
        sqlite3_mprintf("SELECT c.id, c.n, c.data, s.n_columns FROM chunk c JOIN series s ON"
                        " s.id = c.series LIMIT 1 OFFSET %lld",
                        (long long)row);
    if (sqlite3_prepare_v2(db, get, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW) {
        int64_t n = sqlite3_column_int64(s, 1), wide = sqlite3_column_int64(s, 3) + 1;
        struct nrg_codec *codec = nrg_codec_new();
        int64_t *columns[64] = {0};
        const uint8_t *bytes;
        size_t len;
        bool fits = codec && n > 0 && n <= 4096 && wide > 1 && wide <= 64;
        for (int64_t c = 0; fits && c < wide; c++)
            columns[c] = calloc((size_t)n, sizeof(int64_t));
        if (fits && !nrg_columns_decode(codec, sqlite3_column_blob(s, 2),
                                        (size_t)sqlite3_column_bytes(s, 2), columns, (size_t)wide,
                                        (size_t)n)) {
            edit_cells(columns, (size_t)wide, (size_t)n, r);
            if (!nrg_columns_encode(codec, (const int64_t *const *)columns, (size_t)wide, (size_t)n,
                                    &bytes, &len) &&
                sqlite3_prepare_v2(db, "UPDATE chunk SET data=? WHERE id=?", -1, &set, NULL) ==
                    SQLITE_OK) {
                sqlite3_bind_blob(set, 1, bytes, (int)len, SQLITE_TRANSIENT);
                sqlite3_bind_int64(set, 2, sqlite3_column_int64(s, 0));
                sqlite3_reset(s);
                sqlite3_step(set);
            }
        }
        for (int64_t c = 0; fits && c < wide; c++)
            free(columns[c]);
        nrg_codec_free(codec);
    }
    sqlite3_finalize(s);
    sqlite3_finalize(set);
    sqlite3_free(get);
}

/* Rows and tables. `column` may be NULL. */
static inline void edit_structure(sqlite3 *db, const char *table, const char *column, uint64_t *r)
{
    static const char *const forms[] = {
        "DELETE FROM \"%w\" WHERE rowid = (SELECT rowid FROM \"%w\" LIMIT 1 OFFSET 1)",
        "UPDATE OR IGNORE \"%w\" SET rowid = rowid + 1073741824 * 4",
        "UPDATE OR IGNORE \"%w\" SET rowid = -rowid",
        "DELETE FROM \"%w\"",
        "DROP TABLE \"%w\"",
        "CREATE TEMP TABLE two AS SELECT * FROM \"%w\"",
        "CREATE TRIGGER t AFTER INSERT ON \"%w\" BEGIN SELECT 1; END",
        "PRAGMA user_version=%d",
    };
    uint64_t pick = next_random(r);
    char *sql = sqlite3_mprintf(forms[pick % (sizeof forms / sizeof *forms)], table, table);
    if (pick % 8 == 0 && column) {
        sqlite3_free(sql);
        sql = sqlite3_mprintf(pick % 16 ? "ALTER TABLE \"%w\" DROP COLUMN \"%w\""
                                        : "ALTER TABLE \"%w\" RENAME COLUMN \"%w\" TO other",
                              table, column);
    }
    sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
}

static inline void edit_once(sqlite3 *db, uint64_t *r)
{
    static const char tables[] =
        "SELECT name FROM sqlite_master WHERE type='table' LIMIT 1 OFFSET ?";
    int64_t n = first_number(db, "SELECT count(*) FROM sqlite_master WHERE type='table'");
    if (n < 1 || next_random(r) % 3 == 0) {
        edit_chunk(db, r);
        return;
    }
    char *table = first_text(db, tables, (int64_t)(next_random(r) % (uint64_t)n));
    char *count = sqlite3_mprintf("SELECT count(*) FROM \"%w\"", table ? table : "");
    char *info = sqlite3_mprintf("SELECT name FROM pragma_table_info('%q') LIMIT 1 OFFSET ?",
                                 table ? table : "");
    char *wide =
        sqlite3_mprintf("SELECT count(*) FROM pragma_table_info('%q')", table ? table : "");
    int64_t rows = first_number(db, count), columns = first_number(db, wide);
    char *column =
        first_text(db, info, columns > 0 ? (int64_t)(next_random(r) % (uint64_t)columns) : 0);
    if (table && column && rows > 0 && next_random(r) % 12)
        edit_value(db, table, column, (int64_t)(next_random(r) % (uint64_t)rows), r);
    else if (table)
        edit_structure(db, table, column, r);
    free(table);
    free(column);
    sqlite3_free(count);
    sqlite3_free(info);
    sqlite3_free(wide);
}

/* Edits the database in data[0..size), which has room for max_size. 0 when it is none. */
static inline size_t mutate_database(uint8_t *data, size_t size, size_t max_size, uint64_t *r)
{
    sqlite3 *db = NULL;
    sqlite3_int64 len = 0;
    size_t made = 0;
    unsigned char *copy = size > 100 ? sqlite3_malloc64(size) : NULL;
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    uint8_t mode = copy[18];
    copy[18] = copy[19] = 1; /* the log's mode can't be had in memory */
    if (sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        sqlite3_deserialize(db, "main", copy, (sqlite3_int64)size, (sqlite3_int64)size,
                            SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE) ==
            SQLITE_OK) {
        sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1 << 20);
        for (uint64_t i = 1 + next_random(r) % 3; i > 0; i--)
            edit_once(db, r);
        unsigned char *out = sqlite3_serialize(db, "main", &len, 0);
        if (out && len > 100 && (size_t)len <= max_size) {
            made = (size_t)len;
            memcpy(data, out, made);
            data[18] = data[19] = mode;
        }
        sqlite3_free(out);
    }
    sqlite3_close(db);
    return made;
}

/* other.nrg: the same recording with a few edits, which follow from the input. */
static inline void lay_other(const uint8_t *data, size_t size)
{
    struct parts p = split_input(data, size);
    uint64_t r = sum_input(data, size);
    size_t room = 2 * p.file_len + 65536;
    uint8_t *other = malloc(room);
    if (!other)
        return;
    if (p.file_len)
        memcpy(other, p.file, p.file_len);
    edits_repeat = true;
    size_t made = mutate_database(other, p.file_len, room, &r);
    edits_repeat = false;
    write_file("other.nrg", other, made ? made : p.file_len);
    free(other);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    uint64_t r = seed;
    bool parts = size >= HEAD_SIZE && !memcmp(data, "NRGW", 4);
    if (next_random(&r) % 16 == 0 || size < 100)
        return LLVMFuzzerMutate(data, size, max_size);
    if (!parts) {
        size_t made = mutate_database(data, size, max_size, &r);
        return made ? made : LLVMFuzzerMutate(data, size, max_size);
    }
    /* With parts: the file in place if it keeps its size, else a byte somewhere in log or journal.
     */
    struct parts p = split_input(data, size);
    if (next_random(&r) % 2 == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    uint8_t *file = malloc(p.file_len + 1);
    if (!file)
        return size;
    memcpy(file, p.file, p.file_len);
    if (mutate_database(file, p.file_len, p.file_len, &r) == p.file_len)
        memcpy(data + HEAD_SIZE, file, p.file_len);
    else
        data[HEAD_SIZE + p.file_len + next_random(&r) % (size - HEAD_SIZE - p.file_len + 1) - 1] ^=
            (uint8_t)(1 << next_random(&r) % 8);
    free(file);
    return size;
}

#endif
