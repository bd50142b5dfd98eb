/* See span_texts.h. */
#include "record/spans/texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sensors/channel.h"

#define MAX_KEPT_BYTES (2 * (size_t)NRG_RING_NAMES_BYTES)
#define MAX_NUMBERS    (NRG_RING_NAMES_BYTES / 32) /* more than fit side by side */
#define BUFFER_BYTES   (NRG_SPAN_NAME_MAX + 512)
#define FIRST_CAP      256

struct nrg_text_number {
    uint32_t number; /* 0: free */
    uint32_t id;
};

void nrg_span_texts_init(struct nrg_span_texts *t, const struct nrg_span_segment *segment,
                         struct nrg_queue *queue)
{
    *t = (struct nrg_span_texts){.segment = segment, .queue = queue};
}

void nrg_span_texts_release(struct nrg_span_texts *t)
{
    for (size_t i = 0; i < t->n_names; i++)
        free(t->names[i].text);
    free(t->names);
    free(t->hashes);
    free(t->by_number);
    free(t->by_text);
    free(t->buffer);
    *t = (struct nrg_span_texts){0};
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    do
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    while (*text++);
    return hash;
}

static uint64_t hash_name(const struct nrg_span_name *n)
{
    return hash_text(hash_text(hash_text(UINT64_C(0xcbf29ce484222325), n->kind), n->detail),
                     n->text);
}

/* Copies an entry of the shared memory into the buffer, then looks at it. */
static int read_entry(struct nrg_span_texts *t, uint32_t number, struct nrg_ring_name *head)
{
    size_t at = (size_t)number * NRG_RING_NAME_UNIT;
    const size_t before = offsetof(struct nrg_ring_name, bytes);
    if (!t->buffer && !(t->buffer = malloc(BUFFER_BYTES)))
        return -ENOMEM;
    if (!number || at + sizeof *head > NRG_RING_NAMES_BYTES ||
        nrg_span_segment_read(t->segment, NRG_RING_NAMES_AT + at, head, sizeof *head))
        return -EBADMSG;
    size_t bytes = (size_t)head->kind_bytes + head->detail_bytes + 3;
    if (head->number != number || head->text_bytes > NRG_SPAN_NAME_MAX)
        return -EBADMSG;
    bytes += head->text_bytes;
    if (bytes > BUFFER_BYTES || at + before + bytes > NRG_RING_NAMES_BYTES)
        return -EBADMSG;
    return nrg_span_segment_read(t->segment, NRG_RING_NAMES_AT + at + before, t->buffer, bytes);
}

/* `text` of the name points to `clean`, which has room for the longest. */
static int read_name(struct nrg_span_texts *t, uint32_t number, struct nrg_span_name *name,
                     char *clean)
{
    struct nrg_ring_name head;
    int rc = read_entry(t, number, &head);
    if (rc)
        return rc;
    const char *detail = t->buffer + head.kind_bytes + 1;
    nrg_copy_clean(name->kind, sizeof name->kind, t->buffer, head.kind_bytes);
    nrg_copy_clean(name->detail, sizeof name->detail, detail, head.detail_bytes);
    nrg_copy_clean(clean, NRG_SPAN_NAME_MAX + 1, detail + head.detail_bytes + 1, head.text_bytes);
    name->text = clean;
    return 0;
}

static void tell_writer(struct nrg_span_texts *t, const struct nrg_span_name *name)
{
    char *text = strdup(name->text);
    struct nrg_message *m = text ? nrg_message_new(t->queue, NRG_MSG_SPAN_NAME) : NULL;
    if (!m) {
        free(text);
        return;
    }
    m->span_name = *name;
    m->span_name.text = text;
    nrg_queue_push(t->queue, m);
}

static bool is_equal(const struct nrg_span_name *a, const struct nrg_span_name *b)
{
    return !strcmp(a->kind, b->kind) && !strcmp(a->detail, b->detail) && !strcmp(a->text, b->text);
}

/* Where the id of that name is, or belongs. */
static uint32_t *find_text(struct nrg_span_texts *t, const struct nrg_span_name *name,
                           uint64_t hash)
{
    size_t at = (size_t)hash & (t->cap_texts - 1);
    for (; t->by_text[at]; at = (at + 1) & (t->cap_texts - 1)) {
        size_t i = t->by_text[at] - 1;
        if (t->hashes[i] == hash && is_equal(&t->names[i], name))
            break;
    }
    return &t->by_text[at];
}

static int grow_texts(struct nrg_span_texts *t)
{
    size_t cap = t->cap_texts ? t->cap_texts * 2 : FIRST_CAP;
    uint32_t *ids = calloc(cap, sizeof *ids);
    if (!ids)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_names; i++) {
        size_t at = (size_t)t->hashes[i] & (cap - 1);
        while (ids[at])
            at = (at + 1) & (cap - 1);
        ids[at] = (uint32_t)i + 1;
    }
    free(t->by_text);
    t->by_text = ids;
    t->cap_texts = cap;
    return 0;
}

static int append_name(struct nrg_span_texts *t, const struct nrg_span_name *name, uint64_t hash)
{
    size_t bytes = strlen(name->text) + 1;
    int rc = t->bytes + bytes > MAX_KEPT_BYTES ? -ENOSPC : 0;
    if (!rc)
        rc = nrg_reserve(&t->names, &t->cap_names, t->n_names + 1, sizeof *t->names);
    if (!rc)
        rc = nrg_reserve(&t->hashes, &t->cap_hashes, t->n_names + 1, sizeof *t->hashes);
    char *text = rc ? NULL : strdup(name->text);
    if (!text)
        return rc ? rc : -ENOMEM;
    struct nrg_span_name *kept = &t->names[t->n_names];
    *kept = *name;
    kept->text = text;
    kept->id = (int64_t)t->n_names + 1;
    t->hashes[t->n_names++] = hash;
    t->bytes += bytes;
    tell_writer(t, kept);
    return 0;
}

/* 0: no memory, or no room for more. */
static uint32_t id_of_name(struct nrg_span_texts *t, const struct nrg_span_name *name)
{
    uint64_t hash = hash_name(name);
    if (2 * (t->n_names + 1) > t->cap_texts && grow_texts(t))
        return 0;
    uint32_t *id = find_text(t, name, hash);
    if (!*id && !append_name(t, name, hash))
        *id = (uint32_t)t->n_names;
    return *id;
}

static uint32_t id_of_unknown(struct nrg_span_texts *t)
{
    char text[] = "(name lost)";
    struct nrg_span_name name = {.kind = NRG_KIND_SPAN, .text = text};
    return id_of_name(t, &name);
}

static uint32_t look_up(struct nrg_span_texts *t, uint32_t number)
{
    struct nrg_span_name name = {0};
    char *clean = malloc(NRG_SPAN_NAME_MAX + 1);
    uint32_t id = clean && !read_name(t, number, &name, clean) ? id_of_name(t, &name) : 0;
    free(clean);
    return id ? id : id_of_unknown(t);
}

static struct nrg_text_number *find_number(struct nrg_text_number *table, size_t cap,
                                           uint32_t number)
{
    size_t at = (number * UINT32_C(2654435761)) & (cap - 1);
    while (table[at].number && table[at].number != number)
        at = (at + 1) & (cap - 1);
    return &table[at];
}

static int grow_numbers(struct nrg_span_texts *t)
{
    size_t cap = t->cap_numbers ? t->cap_numbers * 2 : FIRST_CAP;
    struct nrg_text_number *table = calloc(cap, sizeof *table);
    if (!table)
        return -ENOMEM;
    for (size_t i = 0; i < t->cap_numbers; i++)
        if (t->by_number[i].number)
            *find_number(table, cap, t->by_number[i].number) = t->by_number[i];
    free(t->by_number);
    t->by_number = table;
    t->cap_numbers = cap;
    return 0;
}

int64_t nrg_span_texts_id(struct nrg_span_texts *t, uint32_t number)
{
    struct nrg_text_number *place = NULL;
    if (2 * (t->n_numbers + 1) > t->cap_numbers && grow_numbers(t))
        return NRG_MISSING;
    if (number)
        place = find_number(t->by_number, t->cap_numbers, number);
    if (place && place->number)
        return place->id;
    uint32_t id = number ? look_up(t, number) : id_of_unknown(t);
    if (id && place && t->n_numbers < MAX_NUMBERS) {
        *place = (struct nrg_text_number){number, id};
        t->n_numbers++;
    }
    return id ? (int64_t)id : NRG_MISSING;
}

int nrg_span_texts_track(struct nrg_span_texts *t, uint32_t number, struct nrg_span_track *track)
{
    struct nrg_ring_name head;
    int rc = read_entry(t, number, &head);
    if (rc)
        return rc;
    const char *domain = t->buffer + head.kind_bytes + 1;
    nrg_copy_clean(track->domain, sizeof track->domain, domain, head.detail_bytes);
    nrg_copy_clean(track->name, sizeof track->name, domain + head.detail_bytes + 1,
                   head.text_bytes);
    return 0;
}
