/*
 * Recordings as measurements: the energy of module and operator spans, by `nrg attribute`'s own
 * rules, joined with the costs of the graph that the recording keeps.
 *
 * There are two kinds of recordings. Those of nrg.torch.measure have a note: each phase measures
 * one node, alone and repeatedly, and the note says where the model has equal nodes
 * (measure_plan.h). The others are of programs that ran (nrg run --torch, nrg.record), see
 * recording_run.c.
 *
 * Spans are left out, with a count and the reason, when the sensor can't resolve them, when they
 * always run together with others, when they were open at the end, and when they have no energy or
 * no place in the graph.
 */
#include <errno.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/module_path.h"
#include "base/mem.h"
#include "predict/dataset/internal.h"
#include "predict/dataset/measure_plan.h"

int nrg_reading_no_memory(const struct nrg_reading *r)
{
    return nrg_fail(r->err, -ENOMEM, r->path, "out of memory");
}

int nrg_reading_note(const struct nrg_reading *r, const char *text)
{
    return nrg_dataset_note(r->set, r->path, -1, text) ? nrg_reading_no_memory(r) : 0;
}

/* ---- the recording ---- */

static void close_recording(struct nrg_reading *r)
{
    if (r->has_attribution)
        nrg_attribution_release(&r->a);
    nrg_recording_close(r->recording);
    r->recording = NULL;
    r->has_attribution = false;
}

static int open_recording(struct nrg_reading *r, const char *path)
{
    const struct nrg_attribution_options how = {
        .by = NRG_BY_PATH, .idle = r->options->idle, .idle_w = NAN};
    r->path = path;
    int rc = nrg_recording_open(path, &r->recording, r->err);
    if (rc)
        return rc;
    rc = nrg_attribution_make(&r->a, r->recording, &how, r->err);
    r->has_attribution = !rc;
    return rc;
}

static bool is_gpu(const struct nrg_domain *d)
{
    return d->in_total && !strncmp(d->channel->channel.name, "gpu-", 4);
}

/* The GPU that the spans used energy of; else the processor. */
static void name_device(const struct nrg_reading *r, char *out, size_t size)
{
    const char *cpu = nrg_recording_text(r->recording, "cpu");
    nrg_copy(out, size, cpu && cpu[0] ? cpu : "unknown");
    for (size_t d = 0; d < r->a.n_domains; d++) {
        double energy_j = 0;
        for (size_t i = 0; i < r->a.n_rows; i++)
            if (r->a.rows[i].parent == SIZE_MAX && r->a.rows[i].domain_j)
                energy_j += r->a.rows[i].domain_j[d];
        if (is_gpu(r->a.domains[d].domain) && (energy_j > 0 || !r->a.spans)) {
            nrg_copy(out, size, r->a.domains[d].domain->channel->sensor);
            return;
        }
    }
}

/* The device's name. All recordings of a data set must be of one device. */
static int find_device(struct nrg_reading *r, const char **device)
{
    char name[256];
    if (r->options->device)
        nrg_copy(name, sizeof name, r->options->device);
    else
        name_device(r, name, sizeof name);
    *device = nrg_dataset_text(r->set, name, strlen(name));
    if (!*device)
        return nrg_reading_no_memory(r);
    if (r->set->n && r->set->rows[r->set->n - 1].device != *device)
        return nrg_fail(r->err, -EINVAL, r->path,
                        "was recorded on '%s', the data before it on '%s': energies of different "
                        "devices can't be mixed (--device NAME when they are one)",
                        name, r->set->rows[r->set->n - 1].device);
    return 0;
}

/* ---- its graph ---- */

/* The graph given by an option, else one that the recording keeps. */
static int read_graph(struct nrg_reading *r, size_t number, const char *hint)
{
    static const struct nrg_analysis_options how;
    const char *given = r->options->graph;
    char copy[PATH_MAX];
    int rc;
    if (given) {
        rc = nrg_analyse(&r->graph, given, &how, r->err);
        nrg_copy(copy, sizeof copy, given);
        nrg_copy(r->graph.name, sizeof r->graph.name, basename(copy));
    } else if (nrg_recording_graphs(r->recording)) {
        rc = nrg_recorded_model(&r->graph, r->recording, number, NULL, r->err);
    } else {
        return nrg_fail(r->err, -ENOENT, r->path, "keeps no graph of its model: %s", hint);
    }
    if (!rc && !r->graph.has_graph)
        rc = nrg_fail(r->err, -ENODATA, r->graph.name, "has parameters but no graph of operators");
    return rc;
}

static int begin_join(struct nrg_reading *r, const struct nrg_plan *plan)
{
    const struct nrg_module_tree *tree = &r->graph.tree;
    const char *device, *name = plan ? plan->model : r->graph.name;
    uint32_t *told = plan ? nrg_calloc(tree->n + 1, sizeof *told) : NULL;
    int rc = find_device(r, &device);
    if (rc || (plan && !told)) {
        free(told);
        return rc ? rc : nrg_reading_no_memory(r);
    }
    if (plan)
        nrg_plan_calls(plan, tree, told);
    rc = nrg_join_init(&r->join, r->set, &r->graph.reduced, tree, told, r->err);
    free(told);
    if (rc)
        return rc;
    r->join.device = device;
    r->join.model = nrg_dataset_text(r->set, name, strlen(name));
    r->join.where = nrg_dataset_text(r->set, r->path, strlen(r->path));
    rc = nrg_module_tree_index(tree, &r->nodes);
    return rc || !r->join.model || !r->join.where ? nrg_reading_no_memory(r) : 0;
}

static void end_join(struct nrg_reading *r)
{
    nrg_join_release(&r->join);
    nrg_map_release(&r->nodes);
    free(r->kinds);
    r->kinds = NULL;
    r->n_kinds = r->cap_kinds = r->joined = r->foreign = 0;
    nrg_analysis_release(&r->graph);
}

/* ---- spans ---- */

const char *nrg_reading_unusable(const struct nrg_attribution_row *row)
{
    if (row->flags & NRG_ROW_UNRESOLVED)
        return "spans too short for the sensor (not resolved): left out";
    if (row->flags & NRG_ROW_MERGED)
        return "spans that are always together with others, one energy for all: left out";
    if (row->flags & NRG_ROW_UNCLOSED)
        return "spans that were open when the recording ended: left out";
    if (row->flags & NRG_ROW_UNCOVERED)
        return "spans with time that no reading covers: left out";
    return isnan(row->energy_j) || !row->calls ? "spans without a known energy: left out" : NULL;
}

struct nrg_seen nrg_reading_seen(const struct nrg_reading *r, const struct nrg_attribution_row *row)
{
    enum nrg_provenance all = r->a.provenance;
    return (struct nrg_seen){.energy_j = row->energy_j,
                             .time_s = row->time_s,
                             .repeats = (double)row->calls,
                             .provenance = row->provenance > all ? row->provenance : all};
}

/* ---- rows ---- */

/* The most frequent note about this recording. */
static const char *main_reason(const struct nrg_reading *r)
{
    const struct nrg_note *most = NULL;
    for (size_t i = 0; i < r->set->n_notes; i++)
        if (!strcmp(r->set->notes[i].where, r->path) &&
            (!most || r->set->notes[i].count > most->count))
            most = &r->set->notes[i];
    return most ? most->text : "its names are those of another model";
}

static int finish_join(struct nrg_reading *r)
{
    size_t before = r->set->rows_read;
    int rc = nrg_join_rows(&r->join, r->err);
    if (!rc && r->joined && r->foreign)
        rc = nrg_reading_note(r, "spans of modules that the graph does not have: left out");
    if (rc || r->set->rows_read != before)
        return rc;
    if (r->several) /* the others may do */
        rc = nrg_dataset_note(r->set, r->join.where, -1,
                              "nothing could be joined with its graph: left out")
                 ? nrg_reading_no_memory(r)
                 : 0;
    else
        rc = nrg_fail(r->err, -ENODATA, r->path,
                      "nothing in it could be joined with the graph '%s': %s", r->graph.name,
                      main_reason(r));
    return rc;
}

static int join_graph(struct nrg_reading *r)
{
    int rc = begin_join(r, NULL);
    if (!rc)
        rc = nrg_reading_run_spans(r);
    return rc ? rc : finish_join(r);
}

/* The given graph, or one per model that the recording keeps: nothing says which sizes ran. */
static int read_run(struct nrg_reading *r)
{
    struct nrg_map roots = {0}; /* classes */
    size_t n = r->options->graph ? 0 : nrg_recording_graphs(r->recording), i = 0;
    int rc;
    do {
        rc = read_graph(r, i,
                        "call nrg.torch.trace(model, ...) in the program, or name a file with "
                        "--graph");
        const char *class_name = rc ? NULL : r->graph.tree.nodes[0].class_name;
        if (!rc && nrg_map_get(&roots, class_name))
            rc = nrg_reading_note(r, "further graphs of the same model: left out");
        else if (!rc && !(rc = join_graph(r))) {
            const char *kept = nrg_dataset_text(r->set, class_name, strlen(class_name));
            if (!kept || nrg_map_set(&roots, kept, r))
                rc = nrg_reading_no_memory(r);
        }
        end_join(r);
    } while (!rc && ++i < n);
    nrg_map_release(&roots);
    return rc;
}

/* ---- of nrg.torch.measure ---- */

static double counter_of(const struct nrg_attribution_row *row, const char *name)
{
    for (size_t i = 0; i < row->n_counts; i++)
        if (!strcmp(row->counts[i].name, name))
            return row->counts[i].amount;
    return 0;
}

static int add_rounds(struct nrg_reading *r, const struct nrg_plan *plan)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < r->a.n_rows; i++) {
        const struct nrg_attribution_row *row = &r->a.rows[i], *phase = nrg_row_above(&r->a, row);
        struct nrg_plan_node *node =
            phase && nrg_row_is(phase, NRG_KIND_PHASE) ? nrg_plan_find(plan, phase->name) : NULL;
        if (!node || (!nrg_row_is(row, NRG_KIND_MODULE) && !nrg_row_is(row, NRG_KIND_OPERATOR)))
            continue;
        struct nrg_seen seen = nrg_reading_seen(r, row);
        const char *why = nrg_reading_unusable(row);
        seen.repeats = counter_of(row, "calls");
        if (!why && counter_of(row, "interrupted") > 0)
            why = "nodes whose measurement was interrupted: left out";
        if (!why && !(seen.repeats > 0))
            why = "rounds without a count of their calls: left out";
        if (why)
            rc = nrg_reading_note(r, why);
        else
            nrg_seen_add(&node->seen, &seen);
        r->joined++;
    }
    return rc;
}

/* Reads the sessions of one measurement. paths[0] is open; *used: how many belong together. */
static int read_measured(struct nrg_reading *r, const char *const *paths, size_t n, size_t *used)
{
    char *text = strdup(nrg_recording_text(r->recording, NRG_PLAN_NOTE));
    struct nrg_plan plan;
    int rc = text ? nrg_plan_read(&plan, text, r->path, r->err) : nrg_reading_no_memory(r);
    if (rc) {
        free(text);
        return rc;
    }
    rc = read_graph(r, 0, "name one with --graph");
    if (!rc)
        rc = begin_join(r, &plan);
    while (!rc && !(rc = add_rounds(r, &plan)) && ++*used < n) {
        close_recording(r);
        rc = open_recording(r, paths[*used]);
        const char *other = rc ? NULL : nrg_recording_text(r->recording, NRG_PLAN_NOTE);
        if (rc || !other || strcmp(other, text) != 0)
            break;
    }
    if (!rc && nrg_plan_apply(&plan, &r->join))
        rc = nrg_reading_no_memory(r);
    if (!rc)
        rc = finish_join(r);
    end_join(r);
    nrg_plan_release(&plan);
    free(text);
    return rc;
}

/* Of a server, or, with spans, of a program that ran. */
static int read_other(struct nrg_reading *r)
{
    const char *device;
    bool relay = nrg_reading_is_relay(r), served = false;
    int rc = find_device(r, &device);
    if (!rc && nrg_reading_is_generation(r))
        return nrg_reading_generation(r, device);
    if (!rc && (relay || !r->a.spans))
        rc = nrg_reading_serving(r, device, relay, &served);
    if (rc || served)
        return rc;
    if (!r->a.spans)
        return nrg_fail(r->err, -ENODATA, r->path,
                        "holds no spans, so nothing says what used the energy: record with nrg run "
                        "--torch, nrg run --llm, nrg.torch.watch or nrg.torch.measure");
    return read_run(r);
}

int nrg_dataset_read_recordings(struct nrg_dataset *set, const char *const *paths, size_t n,
                                const struct nrg_read_options *options, struct nrg_error *err)
{
    struct nrg_reading r = {.set = set, .options = options, .err = err, .several = n > 1};
    int rc = 0;
    set->recordings |= n > 0;
    for (size_t i = 0, used; !rc && i < n; i += used) {
        used = 1;
        rc = open_recording(&r, paths[i]);
        if (!rc && nrg_recording_text(r.recording, NRG_PLAN_NOTE)) {
            used = 0;
            rc = read_measured(&r, paths + i, n - i, &used);
        } else if (!rc) {
            rc = read_other(&r);
        }
        if (!rc)
            rc = nrg_recording_check(r.recording, err);
        close_recording(&r);
    }
    return rc;
}
