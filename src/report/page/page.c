/*
 * See page.h. The frame has a comment where data belongs; what stands before and after it is copied
 * as it is. It is the same for all recordings, so its policy can name its scripts by their hashes.
 */
#include "report/page/page.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/memory.h"
#include "base/json/set.h"
#include "report/page/internal.h"

#if __BYTE_ORDER != __LITTLE_ENDIAN
#error "arrays are written as they lie in memory: little endian"
#endif

#define PLACE "<!--nrg-data-->"

extern const unsigned char nrg_page_template[];
extern const size_t nrg_page_template_size;

static const unsigned char *find_place(void)
{
    return memmem(nrg_page_template, nrg_page_template_size, PLACE, strlen(PLACE));
}

int nrg_page_begin(FILE *out, struct nrg_error *err)
{
    const unsigned char *place = find_place();
    if (!place)
        return nrg_fail(err, -EBADMSG, NULL, "the page's frame has no place for data");
    fwrite(nrg_page_template, 1, (size_t)(place - nrg_page_template), out);
    return 0;
}

int nrg_page_end(FILE *out)
{
    const unsigned char *rest = find_place() + strlen(PLACE);
    fwrite(rest, 1, (size_t)(nrg_page_template + nrg_page_template_size - rest), out);
    return 0;
}

void nrg_page_array(struct nrg_page_data *d, const char *name, const char *type, const void *items,
                    size_t n)
{
    if (d->n_arrays < NRG_PAGE_ARRAYS)
        d->arrays[d->n_arrays++] = (struct nrg_page_array){name, type, items, n};
}

static void list_arrays(struct nrg_page_data *d)
{
    json_t *list = json_array();
    for (size_t i = 0; i < d->n_arrays; i++)
        json_array_append_new(list, json_pack("[s, s, I]", d->arrays[i].name, d->arrays[i].type,
                                              (json_int_t)d->arrays[i].n));
    json_object_set_new(d->head, "arrays", list);
    json_t *strings = json_pack("[s]", "");
    for (size_t i = 1; i <= d->strings.n; i++)
        json_array_append_new(strings,
                              nrg_json_string(nrg_map_text(&d->strings, (int64_t)i, NULL)));
    json_object_set_new(d->head, "strings", strings);
}

uint32_t nrg_page_string(struct nrg_page_data *d, const char *text)
{
    int64_t number = text && text[0] ? nrg_map_intern(&d->strings, text, strlen(text)) : 0;
    return number > 0 ? (uint32_t)number : 0;
}

static int put_head(struct nrg_page_blob *blob, const struct nrg_page_data *d)
{
    char *text = json_dumps(d->head, JSON_COMPACT | JSON_REAL_PRECISION(17));
    uint32_t size[2] = {text ? (uint32_t)strlen(text) : 0};
    int rc = text ? nrg_page_blob_put(blob, size, sizeof size) : -ENOMEM;
    if (!rc)
        rc = nrg_page_blob_put(blob, text, size[0]);
    nrg_json_free(text);
    return rc ? rc : nrg_page_blob_align(blob);
}

static int put_data(FILE *out, struct nrg_page_data *d, struct nrg_error *err)
{
    struct nrg_page_blob blob;
    int rc = nrg_page_blob_open(&blob, out, err);
    if (rc)
        return rc;
    fputs("<script type=\"application/octet-stream\" class=\"nrg-run\">", out);
    rc = put_head(&blob, d);
    for (size_t i = 0; !rc && i < d->n_arrays; i++) {
        size_t size = (size_t)(d->arrays[i].type[1] - '0');
        rc = nrg_page_blob_put(&blob, d->arrays[i].data, d->arrays[i].n * size);
        if (!rc)
            rc = nrg_page_blob_align(&blob);
    }
    int closed = nrg_page_blob_close(&blob);
    fputs("</script>\n", out);
    rc = rc ? rc : closed;
    return rc ? nrg_fail(err, rc, NULL, "the page cannot be packed: %s", strerror(-rc)) : 0;
}

int nrg_page_add(FILE *out, const struct nrg_page_run *run, struct nrg_error *err)
{
    struct nrg_page_data d = {.run = run, .head = json_object()};
    struct nrg_error why = {0};
    int rc = d.head ? nrg_page_head(&d) : -ENOMEM;
    if (!rc)
        rc = nrg_page_tables(&d);
    if (!rc)
        rc = nrg_page_series(&d, &why);
    if (!rc)
        rc = nrg_page_lanes(&d, &why);
    if (rc && !why.code)
        nrg_fail(&why, rc, nrg_recording_path(run->recording), "cannot be shown: %s",
                 strerror(-rc));
    if (!rc) {
        list_arrays(&d);
        rc = put_data(out, &d, &why);
    }
    if (rc && err)
        *err = why;
    nrg_page_lanes_release(&d);
    json_decref(d.head);
    nrg_map_release(&d.strings);
    nrg_arena_release(&d.memory);
    return rc;
}
