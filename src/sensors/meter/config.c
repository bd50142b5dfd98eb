/* See meter/config.h. Line by line, with file and line in every message. */
#include "sensors/meter/config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/trust.h"
#include "sensors/meter/driver.h"

#define MAX_SIZE    (256 * 1024)
#define MAX_ENTRIES 256
#define BLANK       " \t\r"

static int add_entry(struct nrg_meter_entry **list, size_t *n, size_t *cap, const char *where,
                     const char *name, const char *text, struct nrg_error *err)
{
    if (*n >= MAX_ENTRIES)
        return nrg_fail(err, -E2BIG, where, "more than %d settings", MAX_ENTRIES);
    if (nrg_reserve(list, cap, *n + 1, sizeof **list))
        return nrg_fail(err, -ENOMEM, where, "out of memory");
    struct nrg_meter_entry *e = &(*list)[*n];
    *e = (struct nrg_meter_entry){.name = name ? strdup(name) : NULL, .text = strdup(text)};
    nrg_copy(e->where, sizeof e->where, where);
    ++*n; /* so that release frees what there is */
    return e->text && (e->name || !name) ? 0 : nrg_fail(err, -ENOMEM, where, "out of memory");
}

static char *cut_blanks(char *text)
{
    text += strspn(text, BLANK);
    size_t len = strlen(text);
    while (len && strchr(BLANK, text[len - 1]))
        text[--len] = '\0';
    return text;
}

static bool is_name(const char *text)
{
    return *text && text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789-_.")] == '\0';
}

static int keep_profile(struct nrg_meter_config *c, const char *where, const char *path,
                        struct nrg_error *err)
{
    if (!c->sensor_profile && !(c->sensor_profile = strdup(path)))
        return nrg_fail(err, -ENOMEM, where, "out of memory");
    return 0;
}

/* "layout desk" -> "desk"; NULL when the key does not begin with that word. */
static char *after_word(char *key, const char *word)
{
    size_t len = strlen(word);
    return strncmp(key, word, len) || !strchr(BLANK, key[len]) ? NULL : cut_blanks(key + len);
}

static int parse_line(struct nrg_meter_config *c, const char *where, char *line,
                      struct nrg_error *err)
{
    char *equals = strchr(line, '=');
    line = cut_blanks(line);
    if (!*line || *line == '#')
        return 0;
    if (!equals)
        return nrg_fail(err, -EINVAL, where, "wants NAME = VALUE, such as meter = URI");
    *equals = '\0';
    char *value = cut_blanks(equals + 1), *key = cut_blanks(line), *name;
    if (!*value)
        return nrg_fail(err, -EINVAL, where, "nothing stands after '%s ='", key);
    if (!strcmp(key, "meter"))
        return add_entry(&c->meters, &c->n_meters, &c->cap_meters, where, NULL, value, err);
    if (!strcmp(key, "sensor-profile"))
        return keep_profile(c, where, value, err);
    if ((name = after_word(key, "covers")) && !*name)
        return nrg_fail(err, -EINVAL, where, "wants 'covers RAIL = machine', cpu, part or none");
    if (name)
        return add_entry(&c->covers, &c->n_covers, &c->cap_covers, where, name, value, err);
    if (is_name(key) && strcmp(key, "layout") != 0)
        return add_entry(&c->options, &c->n_options, &c->cap_options, where, key, value, err);
    if (!(name = after_word(key, "layout")))
        return nrg_fail(err, -EINVAL, where,
                        "'%.40s' is not a setting: meter, layout NAME, covers RAIL, sensor-profile "
                        "and the names of options are",
                        key);
    if (!is_name(name))
        return nrg_fail(err, -EINVAL, where,
                        "a layout wants a name of letters, digits, - and _, not '%.40s'", name);
    return add_entry(&c->layouts, &c->n_layouts, &c->cap_layouts, where, name, value, err);
}

int nrg_meter_config_parse(struct nrg_meter_config *config, const char *file, const char *text,
                           size_t len, struct nrg_error *err)
{
    char line[2048], where[280];
    int rc = 0;
    const char *end = text + len;
    for (long number = 1; !rc && text < end; number++) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t n = (size_t)((stop ? stop : end) - text);
        snprintf(where, sizeof where, "%.250s:%ld", file, number);
        if (n >= sizeof line || memchr(text, '\0', n))
            return nrg_fail(err, -EINVAL, where, "this is not a line of text");
        memcpy(line, text, n);
        line[n] = '\0';
        rc = parse_line(config, where, line, err);
        text += n + 1;
    }
    return rc;
}

/* The first entry from number `first` on that names a program to run; NULL: none does. */
static const struct nrg_meter_entry *find_program(const struct nrg_meter_entry *list, size_t first,
                                                  size_t n)
{
    for (size_t i = first; i < n; i++)
        if (nrg_meter_runs_program(list[i].text))
            return &list[i];
    return NULL;
}

/*
 * A line that runs a program (meter = exec:, and any option that takes a meter) is a command of
 * whoever could write it, and nrg may be root.
 */
static int check_programs(const struct nrg_meter_config *c, const struct nrg_meter_config *before,
                          const char *path, struct nrg_error *err)
{
    struct nrg_error why;
    const struct nrg_meter_entry *entry = find_program(c->meters, before->n_meters, c->n_meters);
    if (!entry)
        entry = find_program(c->options, before->n_options, c->n_options);
    if (!entry || !nrg_trust_file(path, &why))
        return 0;
    return nrg_fail(err, -EPERM, entry->where,
                    "runs a program, which only a file that nobody else can write may do: %.200s "
                    "%.100s",
                    why.where, why.what);
}

/* In a folder that the user can't enter, as the home of who called sudo, nothing is his. */
static bool is_out_of_reach(const char *path)
{
    return access(path, F_OK) && errno == EACCES;
}

static int read_file(struct nrg_meter_config *c, const char *path, struct nrg_error *err)
{
    /* Of this machine, whatever tree the sensors are looked for in: a tree that somebody sent
     * decides nothing. */
    const struct nrg_root here = {.fd = -1, .live = NRG_PART_ALL};
    const struct nrg_meter_config before = *c;
    char *text;
    ssize_t len = nrg_root_read_all(&here, path, MAX_SIZE, &text);
    if (len == -ENOENT || len == -ENOTDIR || is_out_of_reach(path))
        return 0;
    if (len < 0)
        return nrg_fail(err, (int)len, path, "cannot be read: %s",
                        len == -EINVAL ? "it is not a regular file" : strerror((int)-len));
    int rc = nrg_meter_config_parse(c, path, text, (size_t)len, err);
    free(text);
    return rc ? rc : check_programs(c, &before, path, err);
}

int nrg_meter_config_read(struct nrg_meter_config *config, const char *home_config,
                          struct nrg_error *err)
{
    char path[PATH_MAX]; /* no file has a longer one */
    int rc = 0;
    *config = (struct nrg_meter_config){0};
    if (home_config &&
        snprintf(path, sizeof path, "%s/nrg/nrg.conf", home_config) < (int)sizeof path)
        rc = read_file(config, path, err);
    if (!rc)
        rc = read_file(config, "/etc/nrg.conf", err);
    if (rc)
        nrg_meter_config_release(config);
    return rc;
}

static void release_list(struct nrg_meter_entry *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(list[i].name);
        free(list[i].text);
    }
    free(list);
}

void nrg_meter_config_release(struct nrg_meter_config *config)
{
    nrg_meter_config_drop_meters(config);
    release_list(config->layouts, config->n_layouts);
    release_list(config->covers, config->n_covers);
    release_list(config->options, config->n_options);
    free(config->sensor_profile);
    *config = (struct nrg_meter_config){0};
}

void nrg_meter_config_drop_meters(struct nrg_meter_config *config)
{
    release_list(config->meters, config->n_meters);
    config->meters = NULL;
    config->n_meters = config->cap_meters = 0;
}

const char *nrg_meter_config_layout(const struct nrg_meter_config *config, const char *name)
{
    for (size_t i = 0; config && i < config->n_layouts; i++)
        if (!strcmp(config->layouts[i].name, name))
            return config->layouts[i].text;
    return NULL;
}

static int add_escaped(struct nrg_str *s, const char *text)
{
    int rc = 0;
    for (; !rc && *text; text++)
        rc = strchr("%&?", *text) || (unsigned char)*text < 33
                 ? nrg_str_addf(s, "%%%02X", (unsigned char)*text)
                 : nrg_str_add(s, text, 1);
    return rc;
}

static bool is_layout_key(const char *key)
{
    return !strncmp(key, "layout", 6) && (!key[6] || key[6] == '.');
}

static int write_uri(struct nrg_str *s, const struct nrg_uri *uri,
                     const struct nrg_meter_config *config)
{
    int rc = nrg_str_addf(s, "%s:%s", uri->scheme, uri->place);
    for (unsigned i = 0; !rc && i < uri->n_query; i++) {
        const char *key = uri->query[i].key, *value = uri->query[i].value;
        const char *own = is_layout_key(key) ? nrg_meter_config_layout(config, value) : NULL;
        rc = nrg_str_addf(s, "%c%s=", i ? '&' : '?', key);
        if (!rc)
            rc = add_escaped(s, own ? own : value);
    }
    return rc;
}

int nrg_meter_expand(struct nrg_uri *uri, const struct nrg_meter_config *config,
                     struct nrg_error *err)
{
    struct nrg_str text = {0};
    bool any = false;
    for (unsigned i = 0; i < uri->n_query; i++)
        any |= is_layout_key(uri->query[i].key) &&
               nrg_meter_config_layout(config, uri->query[i].value);
    if (!any)
        return 0;
    int rc = write_uri(&text, uri, config);
    rc = rc ? nrg_fail(err, rc, uri->text, "out of memory") : nrg_uri_parse(uri, text.text, err);
    nrg_str_release(&text);
    return rc;
}
