/*
 * Our own data sets as JSON: {"schema": "nrg.dataset/1", "counts": "nrg", "rows": [{…}]}, a row
 * with the keys that are CSV's columns; parts are [{"id": "3", "count": 12}]. Missing values are
 * absent.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "predict/dataset/form.h"
#include "predict/dataset/internal.h"

static struct nrg_cell text_cell(const json_t *value)
{
    return (struct nrg_cell){json_string_value(value), json_string_length(value)};
}

static int read_parts(struct nrg_form *form, const json_t *parts, long long line,
                      struct nrg_error *err)
{
    size_t i;
    json_t *part;
    int rc = 0;
    if (!json_is_array(parts))
        return nrg_fail_at(err, -EBADMSG, form->name, line, "parts is not a list");
    json_array_foreach(parts, i, part)
    {
        const json_t *id = json_object_get(part, "id"), *count = json_object_get(part, "count");
        if (!json_is_string(id) || (count && !json_is_number(count)))
            return nrg_fail_at(err, -EBADMSG, form->name, line, "a part has no id or count");
        rc = nrg_form_part(form, text_cell(id), count ? json_number_value(count) : 1, line, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int read_member(struct nrg_form *form, struct nrg_record *record, const char *key,
                       const json_t *value, long long line, struct nrg_error *err)
{
    double unit;
    int number = nrg_form_number(key, strlen(key), &unit);
    if (!strcmp(key, "parts"))
        return read_parts(form, value, line, err);
    int text_at = nrg_name_find(nrg_form_texts, NRG_FORM_TEXTS, key, strlen(key));
    if (text_at >= 0 && !json_is_string(value))
        return nrg_fail_at(err, -EBADMSG, form->name, line, "%s is not a text", key);
    if (text_at >= 0) {
        record->texts[text_at] = text_cell(value);
        return 0;
    }
    if (number < 0) {
        char text[120];
        snprintf(text, sizeof text, "key '%.60s' is not used", key);
        return nrg_dataset_note(form->set, form->name, line, text);
    }
    if (!json_is_number(value))
        return nrg_fail_at(err, -EBADMSG, form->name, line, "%s is not a number", key);
    if (!isnan(record->numbers[number]))
        return nrg_fail_at(err, -EBADMSG, form->name, line, "%s is there in two units", key);
    record->numbers[number] = json_number_value(value) * unit;
    return 0;
}

static int read_row(struct nrg_form *form, json_t *row, const json_t *counts, long long line,
                    struct nrg_error *err)
{
    struct nrg_record record;
    const char *key;
    json_t *value;
    nrg_form_clear(form, &record);
    if (!json_is_object(row))
        return nrg_fail_at(err, -EBADMSG, form->name, line, "a row is not an object");
    if (json_is_string(counts))
        record.texts[NRG_FORM_COUNTS] = text_cell(counts);
    json_object_foreach(row, key, value)
    {
        int rc = read_member(form, &record, key, value, line, err);
        if (rc)
            return rc;
    }
    return nrg_form_add(form, &record, line, err);
}

int nrg_dataset_read_json(struct nrg_dataset *set, const char *text, size_t size, const char *name,
                          const struct nrg_read_options *options, struct nrg_error *err)
{
    json_error_t why;
    struct nrg_form form;
    size_t i;
    json_t *row, *doc = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
    if (!doc)
        return nrg_fail_at(err, -EBADMSG, name, why.line, "%s", why.text);
    const char *schema = json_string_value(json_object_get(doc, "schema"));
    json_t *rows = json_object_get(doc, "rows");
    int rc = 0;
    if (!schema || strcmp(schema, "nrg.dataset/1"))
        rc = nrg_fail(err, -EBADMSG, name, "is not a data set: its schema is not nrg.dataset/1");
    else if (!json_is_array(rows))
        rc = nrg_fail(err, -EBADMSG, name, "has no list 'rows'");
    nrg_form_init(&form, set, name, options);
    if (!rc)
        json_array_foreach(rows, i, row)
        {
            rc = read_row(&form, row, json_object_get(doc, "counts"), (long long)i + 1, err);
            if (rc)
                break;
        }
    nrg_form_release(&form);
    json_decref(doc);
    return rc;
}
