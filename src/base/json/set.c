/* See set.h. */
#include "base/json/set.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "base/mem.h"

void nrg_json_real(json_t *o, const char *key, double value)
{
    if (isfinite(value))
        json_object_set_new(o, key, json_real(value));
}

void nrg_json_reals(json_t *o, const struct nrg_json_real *fields, size_t n)
{
    for (size_t i = 0; i < n; i++)
        nrg_json_real(o, fields[i].key, fields[i].value);
}

void nrg_json_count(json_t *o, const char *key, int64_t n)
{
    if (n >= 0)
        json_object_set_new(o, key, json_integer(n));
}

json_t *nrg_json_string(const char *text)
{
    struct nrg_str copy = {0};
    size_t len = strlen(text);
    json_t *value = json_stringn(text, len);
    if (value)
        return value;
    if (nrg_reserve(&copy.text, &copy.cap, len + 1, 1))
        return NULL;
    nrg_copy_clean(copy.text, len + 1, text, len);
    value = json_string(copy.text);
    nrg_str_release(&copy);
    return value;
}

json_t *nrg_json_strings(const char *const *texts, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, nrg_json_string(texts[i]));
    return list;
}

void nrg_json_text(json_t *o, const char *key, const char *text)
{
    if (text && text[0])
        json_object_set_new(o, key, nrg_json_string(text));
}

json_t *nrg_json_load_file(const char *path, size_t flags, json_error_t *why)
{
    struct stat st;
    struct nrg_error err;
    int fd = nrg_open_readable(path, &st, &err);
    if (fd < 0) {
        *why = (json_error_t){.line = -1, .column = -1};
        snprintf(why->text, sizeof why->text, "cannot open: %.100s", err.what);
        return NULL;
    }
    json_t *doc = json_loadfd(fd, flags, why);
    close(fd);
    return doc;
}
