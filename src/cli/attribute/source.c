/* See source.h. */
#include "cli/attribute/source.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/recorded_model.h"
#include "base/mem.h"
#include "cli/internal.h"
#include "record/read/span_catalog.h"

#define MAX_MODELS 64

static void say_files(const struct nrg_cli *cli, const struct nrg_import_join_result *joined)
{
    for (size_t i = 0; !cli->quiet && i < joined->n_files; i++) {
        const struct nrg_import_layers *f = &joined->files[i];
        nrg_say("%s: %s, %llu spans, offset %.6f s (%s)", f->path, f->format,
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
        nrg_analysis_release(&s->models[i]);
    free(s->models);
    if (s->from_logs)
        nrg_import_join_release(&s->joined);
    else
        nrg_recording_close(s->recording);
    *s = (struct nrg_attribute_source){0};
}

/* Notes of the import of a layer file: import.N.note. */
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

/* Whether there are backward passes, which sums over modules would include. */
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

static void join_model(struct nrg_attribute_source *s, struct nrg_attribution *a, bool in_sum)
{
    struct nrg_analysis *m = &s->models[s->n_models++];
    struct nrg_join_result r = nrg_attribution_join(a, m, in_sum);
    size_t rows = r.modules + r.operators + r.layers;
    if (!m->has_graph)
        nrg_attribution_note(a, m->name, "has parameters but no graph: no MACs");
    else if (!rows && in_sum)
        nrg_attribution_note(
            a, m->name,
            "modules include forward and backward passes: MACs of the forward pass "
            "alone would mislead (--by path separates them)");
    else if (!rows)
        nrg_attribution_note(a, m->name, "has no names in common with the spans: no MACs");
    else
        nrg_attribution_note(a, m->name,
                             "MACs and bytes of %zu rows are those of this graph, with the sizes "
                             "of inputs that it was made with",
                             rows);
}

static void join_recorded(struct nrg_attribute_source *s, struct nrg_attribution *a, bool in_sum)
{
    size_t n = nrg_recording_graphs(s->recording);
    struct nrg_error err;
    for (size_t i = 0; i < n && s->n_models < MAX_MODELS; i++) {
        struct nrg_analysis *m = &s->models[s->n_models];
        if (nrg_recorded_model(m, s->recording, i, NULL, &err))
            nrg_attribution_note(a, m->name, "%s", err.what);
        else
            join_model(s, a, in_sum);
    }
}

int nrg_attribute_source_models(struct nrg_attribute_source *s, const struct nrg_list *paths,
                                struct nrg_attribution *a, bool modules_in_sum)
{
    static const struct nrg_analysis_options how;
    struct nrg_error err;
    bool in_sum = modules_in_sum && has_backward(s->recording);
    s->models = nrg_calloc(MAX_MODELS, sizeof *s->models);
    if (!s->models)
        return nrg_out_of_memory();
    for (size_t i = 0; i < paths->n && s->n_models < MAX_MODELS; i++) {
        if (nrg_analyse(&s->models[s->n_models], paths->items[i], &how, &err))
            return nrg_complain(&err, 1);
        join_model(s, a, in_sum);
    }
    join_recorded(s, a, in_sum);
    return nrg_recording_check(s->recording, &err) ? nrg_complain(&err, 1) : 0;
}
