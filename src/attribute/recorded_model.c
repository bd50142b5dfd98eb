/* See model_counts.h. A recording of several models has the counts of the first. */
#include "attribute/recorded_model.h"

#include <string.h>

#include "base/parse.h"
#include "graph/reader.h"
#include "graph/reduce.h"
#include "record/read/graph.h"
#include "sensors/channel.h"

static void count_graph(const struct nrg_recorded_graph *graph, struct nrg_model_counts *counts)
{
    struct nrg_source source = {.bytes = graph->bytes, .size = graph->size, .name = graph->name};
    struct nrg_model model;
    struct nrg_totals t;
    if (nrg_model_read_bytes(&source, graph->format[0] ? graph->format : NULL, &model, NULL))
        return;
    if (!nrg_totals_of_model(&model, NULL, &t, NULL)) {
        if (counts->params == NRG_MISSING && t.n_params && !t.unknown_params)
            counts->params = t.params;
        if (counts->macs == NRG_MISSING && model.n_graphs && !t.unknown_operators)
            counts->macs = t.cost.macs;
    }
    nrg_model_release(&model);
}

static int64_t integer(const struct nrg_recording *recording, const char *key)
{
    int64_t n;
    return nrg_recording_integer(recording, key, &n) ? NRG_MISSING : n;
}

/* Anybody may note anything under that key. */
static int64_t noted(const struct nrg_recording *recording, const char *key)
{
    const char *text = nrg_recording_text(recording, key);
    int64_t n;
    return text && !nrg_parse_i64(text, strlen(text), &n) && n >= 0 ? n : NRG_MISSING;
}

struct nrg_model_counts nrg_model_counts_of(struct nrg_recording *recording)
{
    struct nrg_model_counts counts = {integer(recording, "model_params"),
                                      integer(recording, "model_macs")};
    struct nrg_recorded_graph graph;
    if (counts.params != NRG_MISSING && counts.macs != NRG_MISSING)
        return counts;
    if (!nrg_recording_graph(recording, 0, &graph, NULL)) {
        count_graph(&graph, &counts);
        nrg_recorded_graph_release(&graph);
    }
    if (counts.params == NRG_MISSING)
        counts.params = noted(recording, "note.model_params");
    return counts;
}
