/*
 * The spans of a recording as JSON lines, for tests of the command line:
 *
 *   spans-dump FILE.nrg            {"series", "track", "track_kind", "domain", "pid", "tid",
 * "kind", "name", "detail", "begin_ns", "end_ns", "number", "duration_ns", "path": names from the
 * top, "depth"}
 *   spans-dump --runs FILE.nrg     layer executions in the file's order (record/read/layer_runs.h)
 *   spans-dump --counts FILE.nrg   what was counted and marked: {"kind", "name", "t_ns", "pid",
 * "tid", "amount", "open": names of the spans that were open, outermost first}
 *
 * Nesting is taken from the order of events alone, as a reader must.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/read/cursor.h"
#include "record/read/layer_runs.h"
#include "record/read/span_catalog.h"

#define MAX_DEPTH 4096

struct open_span {
    int64_t name, begin_ns, number, parent;
};

struct lane {
    struct open_span *stack;
    size_t n;
};

static json_t *names_of(const struct nrg_span_catalog *c, int64_t path)
{
    const struct nrg_span_path *p = nrg_span_catalog_path(c, path);
    if (!p)
        return json_array();
    json_t *names = names_of(c, p->parent);
    const struct nrg_span_name *name = nrg_span_catalog_name(c, p->name);
    json_array_append_new(names, json_string(name ? name->text : "?"));
    return names;
}

static void print_line(json_t *line)
{
    char *text = json_dumps(line, JSON_COMPACT);
    puts(text ? text : "?");
    free(text);
    json_decref(line);
}

static void print_span(const struct nrg_span_catalog *c, const struct nrg_cursor_row *row,
                       const struct open_span *span, size_t depth, bool closed)
{
    const struct nrg_span_name *name = nrg_span_catalog_name(c, span->name);
    const struct nrg_span_track *track = nrg_span_catalog_track(c, row->cells[NRG_S_TRACK]);
    json_t *line =
        json_pack("{s:i, s:s, s:s, s:s, s:i, s:i, s:s, s:s, s:s, s:I, s:i}", "series", row->series,
                  "track", track->name, "track_kind", track->kind, "domain", track->domain, "pid",
                  track->pid, "tid", track->tid, "kind", name->kind, "name", name->text, "detail",
                  name->detail, "begin_ns", (json_int_t)span->begin_ns, "depth", (int)depth);
    if (closed)
        json_object_set_new(line, "end_ns", json_integer(row->t_ns));
    if (closed && row->cells[NRG_S_VALUE] != NRG_MISSING)
        json_object_set_new(line, "duration_ns", json_integer(row->cells[NRG_S_VALUE]));
    if (span->number != NRG_MISSING)
        json_object_set_new(line, "number", json_integer(span->number));
    if (span->parent != NRG_MISSING)
        json_object_set_new(line, "path", names_of(c, span->parent));
    print_line(line);
}

static void print_count(const struct nrg_span_catalog *c, const struct nrg_cursor_row *row,
                        const struct lane *lane)
{
    const struct nrg_span_track *track = nrg_span_catalog_track(c, row->cells[NRG_S_TRACK]);
    const struct nrg_span_name *name = nrg_span_catalog_name(c, row->cells[NRG_S_NAME]);
    json_t *open = json_array();
    for (size_t i = 0; i < lane->n; i++)
        json_array_append_new(open,
                              json_string(nrg_span_catalog_name(c, lane->stack[i].name)->text));
    print_line(json_pack("{s:s, s:s, s:I, s:i, s:i, s:I, s:o}", "kind", name->kind, "name",
                         name->text, "t_ns", (json_int_t)row->t_ns, "pid", track->pid, "tid",
                         track->tid, "amount", (json_int_t)row->cells[NRG_S_VALUE], "open", open));
}

static int take_row(const struct nrg_span_catalog *c, struct lane *lanes,
                    const struct nrg_cursor_row *row, bool counts)
{
    const struct nrg_span_track *track = nrg_span_catalog_track(c, row->cells[NRG_S_TRACK]);
    bool nameless =
        row->cells[NRG_S_EVENT] == NRG_SPAN_END && row->cells[NRG_S_NAME] == NRG_MISSING;
    if (!track || (!nameless && !nrg_span_catalog_name(c, row->cells[NRG_S_NAME])))
        return 1;
    struct lane *lane = &lanes[track - c->tracks];
    if (!lane->stack)
        lane->stack = calloc(MAX_DEPTH, sizeof *lane->stack);
    if (!lane->stack || lane->n == MAX_DEPTH)
        return 1;
    if (row->cells[NRG_S_EVENT] == NRG_SPAN_BEGIN)
        lane->stack[lane->n++] = (struct open_span){
            row->cells[NRG_S_NAME], row->t_ns, row->cells[NRG_S_VALUE], row->cells[NRG_S_PARENT]};
    else if (counts && row->cells[NRG_S_EVENT] != NRG_SPAN_END)
        print_count(c, row, lane);
    if (row->cells[NRG_S_EVENT] != NRG_SPAN_END)
        return 0;
    if (!lane->n || (!nameless && lane->stack[lane->n - 1].name != row->cells[NRG_S_NAME]))
        return 1; /* does not nest */
    lane->n--;
    if (!counts)
        print_span(c, row, &lane->stack[lane->n], lane->n, true);
    return 0;
}

static int dump_spans(struct nrg_recording *recording, bool counts)
{
    struct nrg_span_catalog c = {0};
    struct nrg_cursor *cursor = NULL;
    struct nrg_cursor_row row = {0};
    struct nrg_error err;
    int rc = nrg_span_catalog_load(&c, recording, &err) != 0;
    struct lane *lanes = calloc(c.n_tracks + 1, sizeof *lanes);
    rc = rc || !lanes || nrg_cursor_open(recording, 1u << NRG_SPANS, &cursor);
    while (!rc && nrg_cursor_next(cursor, &row) > 0)
        rc = take_row(&c, lanes, &row, counts);
    for (size_t i = 0; lanes && i < c.n_tracks; i++) {
        int64_t cells[NRG_S_COLUMNS] = {c.tracks[i].id};
        const struct nrg_cursor_row end = {.cells = cells};
        while (!counts && lanes[i].n--)
            print_span(&c, &end, &lanes[i].stack[lanes[i].n], lanes[i].n, false);
        free(lanes[i].stack);
    }
    nrg_cursor_free(cursor);
    free(lanes);
    nrg_span_catalog_release(&c);
    return rc;
}

static int dump_runs(struct nrg_recording *recording)
{
    struct nrg_span_catalog c = {0};
    struct nrg_layer_run *runs = NULL;
    struct nrg_error err;
    size_t n = 0;
    int rc = nrg_span_catalog_load(&c, recording, &err) ||
             nrg_layer_runs_load(recording, &runs, &n, &err);
    for (size_t i = 0; !rc && i < n; i++)
        print_line(json_pack(
            "{s:s, s:I, s:I, s:I, s:I}", "name", nrg_span_catalog_name(&c, runs[i].name)->text,
            "cycle", (json_int_t)runs[i].cycle, "begin_ns", (json_int_t)runs[i].begin_ns, "end_ns",
            (json_int_t)runs[i].end_ns, "duration_ns", (json_int_t)runs[i].duration_ns));
    free(runs);
    nrg_span_catalog_release(&c);
    return rc;
}

int main(int argc, char **argv)
{
    struct nrg_recording *recording;
    struct nrg_error err;
    bool runs = argc == 3 && !strcmp(argv[1], "--runs");
    bool counts = argc == 3 && !strcmp(argv[1], "--counts");
    if (argc != 2 && !runs && !counts) {
        fprintf(stderr, "usage: spans-dump [--runs | --counts] FILE.nrg\n");
        return 2;
    }
    if (nrg_recording_open(argv[argc - 1], &recording, &err)) {
        fprintf(stderr, "%s\n", err.what);
        return 1;
    }
    int rc = runs ? dump_runs(recording) : dump_spans(recording, counts);
    nrg_recording_close(recording);
    return rc;
}
