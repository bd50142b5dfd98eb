/*
 * See spans/texts.h. An entry is copied out of the shared memory before it is checked, because the
 * program may change it at any time.
 */
#include "record/spans/texts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sensors/channel.h"

#define MAX_KEPT_BYTES (2 * (size_t)NRG_RING_NAMES_BYTES)
#define MAX_NUMBERS    (NRG_RING_NAMES_BYTES / 32) /* more than can fit */
#define BUFFER_BYTES   (NRG_SPAN_NAME_MAX + 512)

void nrg_span_texts_init(struct nrg_span_texts *t, const struct nrg_span_segment *segment,
                         struct nrg_queue *queue)
{
    *t = (struct nrg_span_texts){.segment = segment, .queue = queue};
}

void nrg_span_texts_release(struct nrg_span_texts *t)
{
    nrg_map_release(&t->by_number);
    nrg_map_release(&t->by_text);
    free(t->buffer);
    *t = (struct nrg_span_texts){0};
}

/* Copies the texts of an entry into the buffer, each with a NUL behind it. -EBADMSG: no entry. */
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

/* The writer gets a copy of the text. */
static int send_name(struct nrg_span_texts *t, const struct nrg_span_name *name)
{
    struct nrg_message m = {.kind = NRG_MSG_SPAN_NAME, .span_name = *name};
    m.span_name.text = strdup(name->text);
    return m.span_name.text ? nrg_queue_push(t->queue, &m) : -ENOMEM;
}

/* Equal names are equal in kind, detail and text. 0: no memory, or no room for more. */
static int64_t id_of_name(struct nrg_span_texts *t, struct nrg_span_name *name)
{
    char key[NRG_SPAN_NAME_MAX + 512];
    size_t len =
        (size_t)snprintf(key, sizeof key, "%s%c%s%c%s", name->kind, 0, name->detail, 0, name->text);
    int64_t id = nrg_map_known(&t->by_text, key, len);
    size_t bytes = strlen(name->text) + 1;
    if (id || t->bytes + bytes > MAX_KEPT_BYTES)
        return id;
    name->id = nrg_map_intern(&t->by_text, key, len);
    if (name->id < 0)
        return 0;
    t->bytes += bytes;
    send_name(t, name);
    return name->id;
}

static int64_t id_of_lost_name(struct nrg_span_texts *t)
{
    char text[] = "(name lost)";
    return id_of_name(t, &(struct nrg_span_name){.kind = NRG_KIND_SPAN, .text = text});
}

static int64_t read_name(struct nrg_span_texts *t, uint32_t number)
{
    struct nrg_ring_name head;
    struct nrg_span_name name = {0};
    char text[NRG_SPAN_NAME_MAX + 1];
    if (!number || read_entry(t, number, &head))
        return id_of_lost_name(t);
    const char *detail = t->buffer + head.kind_bytes + 1;
    nrg_copy_clean(name.kind, sizeof name.kind, t->buffer, head.kind_bytes);
    nrg_copy_clean(name.detail, sizeof name.detail, detail, head.detail_bytes);
    nrg_copy_clean(text, sizeof text, detail + head.detail_bytes + 1, head.text_bytes);
    name.text = text;
    int64_t id = id_of_name(t, &name);
    return id ? id : id_of_lost_name(t);
}

int64_t nrg_span_texts_id(struct nrg_span_texts *t, uint32_t number)
{
    const struct nrg_map_entry *known = nrg_map_find_id(&t->by_number, number);
    if (known)
        return known->number;
    int64_t id = read_name(t, number);
    struct nrg_map_entry *made = NULL;
    if (id && number && t->by_number.n < MAX_NUMBERS)
        made = nrg_map_at_id(&t->by_number, number);
    if (made)
        made->number = id;
    return id ? id : NRG_MISSING;
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
