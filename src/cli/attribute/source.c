/* See attribute_source.h. */
#include "cli/attribute/source.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/read/graph.h"
#include "record/read/span_catalog.h"

#define MAX_MODELS 64

static void say_files(const struct nrg_cli *cli, const struct nrg_import_join_result *joined)
{
    for (size_t i = 0; !cli->quiet && i < joined->n_files; i++) {
        const struct nrg_import_layers *f = &joined->files[i];
        fprintf(stderr, "nrg: %s: %s, %llu spans, offset %.6f s (%s)\n", f->path, f->format,
                (unsigned long long)f->spans, (double)f->offset_ns / 1e9, f->placed);
    }
}

int nrg_attribute_source_open(struct nrg_attribute_source *s, const struct nrg_cli *cli,
                              const char *path, const struct nrg_import_join_options *logs)
{
    struct nrg_error err;
    *s = (struct nrg_attribute_source){.from_logs = !path};
    if (path)
        return nrg_recording_open(path, &s->recording, &err) ? nrg_complain(&err, 1) : 0;
    if (nrg_import_join(logs, &s->joined, &err)) {
        nrg_import_join_release(&s->joined);
        return nrg_complain(&err, 1);
    }
    s->recording = s->joined.recording;
    say_files(cli, &s->joined);
    return 0;
}

void nrg_attribute_source_close(struct nrg_attribute_source *s)
{
    for (size_t i = 0; i < s->n_models; i++)
        nrg_joined_model_close(&s->models[i]);
    free(s->models);
    if (s->from_logs)
        nrg_import_join_release(&s->joined);
    else
        nrg_recording_close(s->recording);
    *s = (struct nrg_attribute_source){0};
}

/* What the import had to say of a layer file: import.N.note, lines for people. */
static void add_note(void *arg, const char *key, const char *value)
{
    const char *end = strrchr(key, '.');
    if (!strncmp(key, "import.", 7) && end && !strcmp(end, ".note") && value[0])
        nrg_attribution_note(arg, "layer times", "%s", value);
}

void nrg_attribute_source_notes(const struct nrg_attribute_source *s, struct nrg_attribution *a)
{
    if (!s->from_logs)
        nrg_recording_each_text(s->recording, add_note, a);
    for (size_t i = 0; i < s->joined.n_files; i++)
        for (size_t k = 0; k < s->joined.files[i].n_notes; k++)
            nrg_attribution_note(a, s->joined.files[i].path, "%s", s->joined.files[i].notes[k]);
}

/* ---- models ---- */

/* Rows of modules in sum hold what runs backward too, where there is such a thing. */
static bool has_backward(struct nrg_recording *recording)
{
    struct nrg_span_catalog catalog;
    bool found = false;
    if (nrg_span_catalog_load(&catalog, recording, NULL))
        return true;
    for (size_t i = 0; i < catalog.n_names; i++)
        found |= !strcmp(catalog.names[i].kind, NRG_KIND_BACKWARD);
    nrg_span_catalog_release(&catalog);
    return found;
}

static void join(struct nrg_attribute_source *s, struct nrg_attribution *a, bool in_sum)
{
    struct nrg_joined_model *m = &s->models[s->n_models++];
    struct nrg_join_result r = nrg_attribution_join(a, m, in_sum);
    size_t rows = r.modules + r.operators + r.layers;
    if (!m->has_graph)
        nrg_attribution_note(a, m->name, "has parameters but no graph: no MACs");
    else if (!rows && in_sum)
        nrg_attribution_note(a, m->name,
                             "modules hold forward and backward in sum: MACs of the forward pass "
                             "alone would mislead (--by path tells them apart)");
    else if (!rows)
        nrg_attribution_note(a, m->name, "names nothing that the spans name: no MACs");
    else
        nrg_attribution_note(a, m->name,
                             "MACs and bytes of %zu rows are those of this graph, with the sizes "
                             "of inputs that it was made with",
                             rows);
}

static int join_recorded(struct nrg_attribute_source *s, struct nrg_attribution *a, bool in_sum)
{
    struct nrg_recorded_graph graph;
    struct nrg_error err;
    int rc;
    for (size_t i = 0; s->n_models < MAX_MODELS; i++) {
        rc = nrg_recording_graph(s->recording, i, &graph, &err);
        if (rc == -ENOENT)
            return 0;
        if (!rc)
            rc = nrg_joined_model_read(&s->models[s->n_models], graph.name, graph.format,
                                       graph.bytes, graph.size, &err);
        if (rc)
            nrg_attribution_note(a, graph.name[0] ? graph.name : "model", "%s", err.what);
        else
            join(s, a, in_sum);
        nrg_recorded_graph_release(&graph);
    }
    return 0;
}

int nrg_attribute_source_models(struct nrg_attribute_source *s, const struct nrg_list *paths,
                                struct nrg_attribution *a, bool modules_in_sum)
{
    struct nrg_error err;
    bool in_sum = modules_in_sum && has_backward(s->recording);
    s->models = calloc(MAX_MODELS, sizeof *s->models);
    if (!s->models)
        return 1;
    for (size_t i = 0; i < paths->n && s->n_models < MAX_MODELS; i++) {
        if (nrg_joined_model_open(&s->models[s->n_models], paths->items[i], &err))
            return nrg_complain(&err, 1);
        join(s, a, in_sum);
    }
    return join_recorded(s, a, in_sum);
}
