/* See sides.h. */
#include "cli/page/sides.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "record/read/recording.h"
#include "report/compare/report.h"

/* A copy of the recording's command; "" where it has none. NULL with err. */
static char *command_of(const char *path, struct nrg_error *err)
{
    struct nrg_recording *recording;
    if (nrg_recording_open(path, &recording, err))
        return NULL;
    const char *text = nrg_recording_text(recording, "command_line");
    char *copy = strdup(text ? text : "");
    nrg_recording_close(recording);
    if (!copy)
        nrg_fail(err, -ENOMEM, path, "out of memory");
    return copy;
}

/* 0 or 1 for each, as a JSON array; NULL with err. */
static json_t *choose_sides(char *const *paths, int n, struct nrg_error *err)
{
    char *first = command_of(paths[0], err);
    json_t *sides = first ? json_array() : NULL;
    bool differ = false;
    for (int i = 0; sides && i < n; i++) {
        char *command = command_of(paths[i], err);
        if (!command) {
            json_decref(sides);
            sides = NULL;
            break;
        }
        bool other = strcmp(command, first) != 0;
        differ |= other;
        json_array_append_new(sides, json_integer(other));
        free(command);
    }
    for (int i = 1; sides && !differ && i < n; i++)
        json_array_set_new(sides, (size_t)i, json_integer(1));
    free(first);
    return sides;
}

static json_t *compare_sides(char *const *paths, int n, const json_t *which, struct nrg_error *err)
{
    struct nrg_compare_side sides[2] = {0};
    struct nrg_comparison comparison = {0};
    const struct nrg_compare_options how = {0};
    json_t *doc = NULL;
    int rc = 0;
    for (int i = 0; !rc && i < n; i++)
        rc = nrg_compare_side_add(&sides[json_integer_value(json_array_get(which, (size_t)i)) != 0],
                                  paths[i], err);
    if (rc) {
        nrg_compare_side_release(&sides[0]);
        nrg_compare_side_release(&sides[1]);
        return NULL;
    }
    if (!nrg_comparison_make(&comparison, sides, &how, err)) {
        const struct nrg_compare_report report = {.comparison = &comparison};
        doc = nrg_compare_json(&report);
    }
    nrg_comparison_release(&comparison);
    return doc;
}

json_t *nrg_page_compare(char *const *paths, int n, struct nrg_error *err)
{
    json_t *which = choose_sides(paths, n, err);
    json_t *doc = which ? compare_sides(paths, n, which, err) : NULL;
    if (doc)
        json_object_set(doc, "sides", which);
    json_decref(which);
    return doc;
}
