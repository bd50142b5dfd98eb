/* See recorded_model.h. A recording of several models has the counts of the first. */
#include "attribute/recorded_model.h"

#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "sensors/channel.h"

int nrg_recorded_model(struct nrg_analysis *a, struct nrg_recording *recording, size_t number,
                       const struct nrg_analysis_options *options, struct nrg_error *err)
{
    struct nrg_analysis_options how = options ? *options : (struct nrg_analysis_options){0};
    struct nrg_recorded_graph kept;
    *a = (struct nrg_analysis){0};
    nrg_copy(a->name, sizeof a->name, "model");
    int rc = nrg_recording_graph(recording, number, &kept, err);
    if (rc)
        return rc;
    const struct nrg_source source = {
        .bytes = kept.bytes, .size = kept.size, .name = kept.name[0] ? kept.name : "model"};
    how.format = kept.format[0] ? kept.format : NULL;
    rc = nrg_analyse_bytes(a, &source, &how, err);
    nrg_recording_note_failure(recording, rc);
    nrg_recorded_graph_release(&kept);
    return rc;
}

static void count_graph(struct nrg_recording *recording, struct nrg_model_counts *counts)
{
    struct nrg_analysis a;
    if (nrg_recorded_model(&a, recording, 0, NULL, NULL))
        return;
    const struct nrg_totals *t = &a.totals;
    if (counts->params == NRG_MISSING && t->n_params && !t->unknown_params)
        counts->params = t->params;
    if (counts->macs == NRG_MISSING && a.has_graph && !t->unknown_operators)
        counts->macs = t->cost.macs;
    nrg_analysis_release(&a);
}

static int64_t integer(const struct nrg_recording *recording, const char *key)
{
    int64_t n;
    return nrg_recording_integer(recording, key, &n) ? NRG_MISSING : n;
}

/* A program may note anything under that key. */
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
    if (counts.params != NRG_MISSING && counts.macs != NRG_MISSING)
        return counts;
    count_graph(recording, &counts);
    if (counts.params == NRG_MISSING)
        counts.params = noted(recording, "note.model_params");
    return counts;
}
