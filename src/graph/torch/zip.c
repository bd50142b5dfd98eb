/*
 * See zip.h. Opening reads the end record (and its ZIP64 twin), then the central directory, and
 * checks three things before it gives anything out: every entry lies before the directory, no
 * two entries share a byte, no two share a name. With that a reader may trust offset and size.
 */
#include "graph/torch/zip.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/inflate.h"
#include "base/mem.h"
#include "graph/bytes.h"

#define SIG_LOCAL    0x04034b50u
#define SIG_CENTRAL  0x02014b50u
#define SIG_END      0x06054b50u
#define SIG_END64    0x06064b50u
#define SIG_LOCATOR  0x07064b50u
#define END_SIZE     22
#define LOCATOR_SIZE 20
#define END64_SIZE   56
#define CENTRAL_SIZE 46
#define LOCAL_SIZE   30
#define COMMENT_MAX  65535
#define EXTRA_ZIP64  1

struct directory {
    uint64_t at, size, n;
    uint64_t end; /* nothing of the entries may reach beyond */
};

int nrg_zip_looks_like(const uint8_t *bytes, size_t size)
{
    return size >= 4 && (nrg_le32(bytes) == SIG_LOCAL || nrg_le32(bytes) == SIG_END);
}

static int find_end(const struct nrg_zip *zip, size_t *at, struct nrg_error *err)
{
    if (zip->size >= END_SIZE) {
        size_t last = zip->size - END_SIZE;
        size_t first = last > COMMENT_MAX ? last - COMMENT_MAX : 0;
        for (size_t i = last + 1; i-- > first;) {
            const uint8_t *p = zip->bytes + i;
            if (nrg_le32(p) == SIG_END && i + END_SIZE + nrg_le16(p + 20) == zip->size) {
                *at = i;
                return 0;
            }
        }
    }
    return nrg_fail(err, -EBADMSG, zip->where,
                    "is a ZIP archive without its directory: cut off, or not fully copied");
}

/* The ZIP64 end record, when a locator precedes the plain one. */
static int find_end64(const struct nrg_zip *zip, size_t end_at, struct directory *dir,
                      struct nrg_error *err)
{
    if (end_at < LOCATOR_SIZE || nrg_le32(zip->bytes + end_at - LOCATOR_SIZE) != SIG_LOCATOR)
        return 0;
    uint64_t at = nrg_le64(zip->bytes + end_at - LOCATOR_SIZE + 8);
    if (end_at < LOCATOR_SIZE + END64_SIZE || at > end_at - LOCATOR_SIZE - END64_SIZE ||
        nrg_le32(zip->bytes + at) != SIG_END64)
        return nrg_fail_at(err, -EBADMSG, zip->where, (long long)end_at,
                           "the ZIP64 record is not where the locator says");
    const uint8_t *p = zip->bytes + at;
    *dir = (struct directory){
        .n = nrg_le64(p + 32), .size = nrg_le64(p + 40), .at = nrg_le64(p + 48), .end = at};
    return 0;
}

static int find_directory(const struct nrg_zip *zip, struct directory *dir, struct nrg_error *err)
{
    size_t end_at = 0;
    int rc = find_end(zip, &end_at, err);
    if (rc)
        return rc;
    const uint8_t *p = zip->bytes + end_at;
    *dir = (struct directory){
        .n = nrg_le16(p + 10), .size = nrg_le32(p + 12), .at = nrg_le32(p + 16), .end = end_at};
    if (nrg_le16(p + 4) || nrg_le16(p + 6))
        if (nrg_le16(p + 4) != 0xffff)
            return nrg_fail_at(err, -ENOTSUP, zip->where, (long long)end_at,
                               "is one volume of a ZIP archive in several");
    rc = find_end64(zip, end_at, dir, err);
    if (rc)
        return rc;
    if (dir->at > dir->end || dir->size > dir->end - dir->at || dir->n > dir->size / CENTRAL_SIZE)
        return nrg_fail_at(err, -EBADMSG, zip->where, (long long)end_at,
                           "the ZIP directory reaches beyond the file");
    return 0;
}

/* Fields that are all ones in the entry are in the ZIP64 extra field, in this order. */
static int read_zip64_extra(struct nrg_zip_entry *entry, const uint8_t *extra, size_t len)
{
    uint64_t *fields[] = {&entry->size, &entry->packed, &entry->header_at};
    while (len >= 4) {
        size_t n = nrg_le16(extra + 2), id = nrg_le16(extra);
        extra += 4;
        len -= 4;
        if (n > len)
            return -EBADMSG;
        for (size_t i = 0; id == EXTRA_ZIP64 && i < 3; i++) {
            if (*fields[i] != UINT32_MAX)
                continue;
            if (n < 8)
                return -EBADMSG;
            *fields[i] = nrg_le64(extra);
            extra += 8;
            n -= 8;
            len -= 8;
        }
        extra += n;
        len -= n;
    }
    return 0;
}

static bool good_name(const char *name, size_t len)
{
    if (!len || name[0] == '/')
        return false;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == '\\')
            return false;
    for (size_t i = 0; i + 1 < len; i++)
        if (name[i] == '.' && name[i + 1] == '.' && (!i || name[i - 1] == '/') &&
            (i + 2 == len || name[i + 2] == '/'))
            return false;
    return true;
}

static int read_entry(struct nrg_zip *zip, const struct directory *dir, uint64_t *at,
                      struct nrg_error *err)
{
    uint64_t left = dir->at + dir->size - *at;
    const uint8_t *p = zip->bytes + *at;
    if (left < CENTRAL_SIZE || nrg_le32(p) != SIG_CENTRAL)
        return nrg_fail_at(err, -EBADMSG, zip->where, (long long)*at, "no ZIP directory entry");
    size_t name_len = nrg_le16(p + 28), extra_len = nrg_le16(p + 30);
    size_t whole = CENTRAL_SIZE + name_len + extra_len + nrg_le16(p + 32);
    if (whole > left)
        return nrg_fail_at(err, -EBADMSG, zip->where, (long long)*at,
                           "a ZIP directory entry reaches beyond the directory");
    struct nrg_zip_entry *entry = &zip->entries[zip->n_entries];
    const char *name = (const char *)p + CENTRAL_SIZE;
    *entry = (struct nrg_zip_entry){.flags = nrg_le16(p + 8),
                                    .method = nrg_le16(p + 10),
                                    .packed = nrg_le32(p + 20),
                                    .size = nrg_le32(p + 24),
                                    .header_at = nrg_le32(p + 42)};
    if (!good_name(name, name_len))
        return nrg_fail_at(err, -EBADMSG, zip->where, (long long)*at,
                           "a ZIP entry has a name that no model has ('..', '/', control codes)");
    if (read_zip64_extra(entry, p + CENTRAL_SIZE + name_len, extra_len))
        return nrg_fail_at(err, -EBADMSG, zip->where, (long long)*at, "bad ZIP64 field");
    entry->name = nrg_arena_copy(&zip->arena, name, name_len);
    if (!entry->name)
        return nrg_fail(err, -ENOMEM, zip->where, "out of memory");
    zip->n_entries++;
    *at += whole;
    return 0;
}

static int by_place(const void *a, const void *b)
{
    uint64_t x = ((const struct nrg_zip_entry *)a)->header_at;
    uint64_t y = ((const struct nrg_zip_entry *)b)->header_at;
    return x < y ? -1 : x > y;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct nrg_zip_entry *)a)->inside,
                  ((const struct nrg_zip_entry *)b)->inside);
}

static int check_places(struct nrg_zip *zip, const struct directory *dir, struct nrg_error *err)
{
    qsort(zip->entries, zip->n_entries, sizeof *zip->entries, by_place);
    for (size_t i = 0; i < zip->n_entries; i++) {
        struct nrg_zip_entry *entry = &zip->entries[i];
        uint64_t next = i + 1 < zip->n_entries ? entry[1].header_at : dir->at;
        entry->end_at = next;
        if (next > dir->at || entry->header_at > next ||
            next - entry->header_at < LOCAL_SIZE + strlen(entry->name) ||
            entry->packed > next - entry->header_at - LOCAL_SIZE - strlen(entry->name))
            return nrg_fail_at(err, -EBADMSG, zip->where, (long long)entry->header_at,
                               "ZIP entry '%s' overlaps what follows it", entry->name);
    }
    return 0;
}

/* The root folder is the first component of all names, when it is the same one. */
static void set_inside(struct nrg_zip *zip)
{
    const char *first = zip->n_entries ? zip->entries[0].name : "";
    const char *slash = strchr(first, '/');
    size_t len = slash ? (size_t)(slash - first) + 1 : 0;
    for (size_t i = 0; i < zip->n_entries; i++)
        if (strncmp(zip->entries[i].name, first, len) != 0)
            len = 0;
    for (size_t i = 0; i < zip->n_entries; i++)
        zip->entries[i].inside = zip->entries[i].name + len;
}

static int check_names(struct nrg_zip *zip, struct nrg_error *err)
{
    qsort(zip->entries, zip->n_entries, sizeof *zip->entries, by_name);
    for (size_t i = 1; i < zip->n_entries; i++)
        if (!strcmp(zip->entries[i - 1].name, zip->entries[i].name))
            return nrg_fail(err, -EBADMSG, zip->where, "has two ZIP entries named '%s'",
                            zip->entries[i].name);
    return 0;
}

int nrg_zip_open(struct nrg_zip *zip, const uint8_t *bytes, size_t size, const char *where,
                 struct nrg_error *err)
{
    struct directory dir;
    *zip = (struct nrg_zip){.bytes = bytes, .size = size, .where = where};
    int rc = find_directory(zip, &dir, err);
    if (rc)
        return rc;
    zip->entries = nrg_arena_array(&zip->arena, dir.n, sizeof *zip->entries);
    if (!zip->entries)
        return nrg_fail(err, -ENOMEM, where, "out of memory");
    uint64_t at = dir.at;
    for (uint64_t i = 0; !rc && i < dir.n; i++)
        rc = read_entry(zip, &dir, &at, err);
    if (!rc)
        rc = check_places(zip, &dir, err);
    if (rc)
        return rc;
    set_inside(zip);
    return check_names(zip, err);
}

void nrg_zip_release(struct nrg_zip *zip)
{
    nrg_inflate_unload(zip->zlib);
    nrg_arena_release(&zip->arena);
    *zip = (struct nrg_zip){0};
}

const struct nrg_zip_entry *nrg_zip_first(const struct nrg_zip *zip, const char *prefix)
{
    size_t low = 0, high = zip->n_entries;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(zip->entries[mid].inside, prefix) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    bool found = low < zip->n_entries && !strncmp(zip->entries[low].inside, prefix, strlen(prefix));
    return found ? &zip->entries[low] : NULL;
}

const struct nrg_zip_entry *nrg_zip_find(const struct nrg_zip *zip, const char *inside)
{
    const struct nrg_zip_entry *entry = nrg_zip_first(zip, inside);
    return entry && !strcmp(entry->inside, inside) ? entry : NULL;
}

static int locate_entry(const struct nrg_zip *zip, const struct nrg_zip_entry *entry, uint64_t *at,
                        struct nrg_error *err)
{
    const uint8_t *p = zip->bytes + entry->header_at;
    uint64_t data_at = entry->header_at + LOCAL_SIZE;
    if (nrg_le32(p) == SIG_LOCAL)
        data_at += (uint64_t)nrg_le16(p + 26) + nrg_le16(p + 28);
    if (nrg_le32(p) != SIG_LOCAL || data_at > entry->end_at ||
        entry->packed > entry->end_at - data_at)
        return nrg_fail_at(err, -EBADMSG, zip->where, (long long)entry->header_at,
                           "ZIP entry '%s' is not where the directory says", entry->name);
    if (entry->flags & 1)
        return nrg_fail(err, -ENOTSUP, zip->where, "ZIP entry '%s' is encrypted", entry->name);
    if (!entry->method && entry->packed != entry->size)
        return nrg_fail(err, -EBADMSG, zip->where, "ZIP entry '%s' has two sizes", entry->name);
    *at = data_at;
    return 0;
}

static int check_bomb(const struct nrg_zip *zip, const struct nrg_zip_entry *entry,
                      struct nrg_error *err)
{
    bool dense = entry->size > (1 << 20) && entry->size / NRG_ZIP_RATIO > entry->packed;
    if (!dense && entry->size <= NRG_ZIP_ENTRY_MAX &&
        entry->size <= NRG_ZIP_TOTAL_MAX - zip->unpacked)
        return 0;
    return nrg_fail(err, -EFBIG, zip->where,
                    "ZIP entry '%s' would unpack from %llu to %llu bytes: refused", entry->name,
                    (unsigned long long)entry->packed, (unsigned long long)entry->size);
}

int nrg_zip_read(struct nrg_zip *zip, const struct nrg_zip_entry *entry, const uint8_t **bytes,
                 size_t *size, struct nrg_error *err)
{
    uint64_t at = 0;
    int rc = locate_entry(zip, entry, &at, err);
    if (rc)
        return rc;
    *bytes = zip->bytes + at;
    *size = (size_t)entry->size;
    if (!entry->method)
        return 0;
    if (entry->method != 8)
        return nrg_fail(err, -ENOTSUP, zip->where, "ZIP entry '%s' is packed by method %u",
                        entry->name, entry->method);
    if ((rc = check_bomb(zip, entry, err)))
        return rc;
    uint8_t *out = nrg_arena_alloc(&zip->arena, (size_t)entry->size + 1);
    if (!out)
        return nrg_fail(err, -ENOMEM, zip->where, "out of memory");
    zip->unpacked += entry->size;
    if (!zip->zlib && !(zip->zlib = nrg_inflate_load()))
        return nrg_fail(err, -ENOENT, zip->where, "needs libz.so.1 to unpack '%s': install zlib1g",
                        entry->name);
    if (nrg_inflate(zip->zlib, *bytes, (size_t)entry->packed, out, (size_t)entry->size))
        return nrg_fail_at(err, -EBADMSG, zip->where, (long long)at,
                           "ZIP entry '%s' does not unpack to its stated size", entry->name);
    *bytes = out;
    return 0;
}
