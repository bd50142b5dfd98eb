/* What the outputs of an attribution share: labels of rows, flags in words, ratios. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/attribution/report.h"

const char nrg_attribution_scale_why[] = "the estimate's scale, common to all rows";

static bool is_module(const struct nrg_attribution_row *row)
{
    return !strcmp(row->kind, NRG_KIND_MODULE) || !strcmp(row->kind, NRG_KIND_BACKWARD);
}

/* The name of the innermost module around a row; NULL: there is none. */
static const char *module_around(const struct nrg_attribution *a, size_t row)
{
    for (size_t at = a->rows[row].parent; at < a->n_rows; at = a->rows[at].parent)
        if (is_module(&a->rows[at]))
            return a->rows[at].name;
    return NULL;
}

/* "layer1.0.conv1" inside "layer1.0" is "conv1". */
static const char *without_prefix(const char *name, const char *around)
{
    size_t len = around ? strlen(around) : 0;
    return len && !strncmp(name, around, len) && name[len] == '.' && name[len + 1] ? name + len + 1
                                                                                   : name;
}

static int add_clean(struct nrg_str *out, const char *text)
{
    size_t len = strlen(text), cap = out->cap;
    int rc = nrg_reserve(&out->text, &cap, out->len + len + 1, 1);
    if (rc)
        return rc;
    out->cap = cap;
    nrg_copy_clean(out->text + out->len, len + 1, text, len);
    out->len += strlen(out->text + out->len);
    return 0;
}

int nrg_attribution_label(const struct nrg_attribution *a, size_t i, bool local,
                          struct nrg_str *out)
{
    const struct nrg_attribution_row *row = &a->rows[i];
    bool module = is_module(row);
    const char *name = row->name;
    if (local && module)
        name = without_prefix(name, module_around(a, i));
    out->len = 0;
    int rc = add_clean(out, name[0] ? name : module && row->detail[0] ? row->detail : "(no name)");
    if (!rc && row->number != NRG_MISSING)
        rc = nrg_str_addf(out, " %" PRId64, row->number);
    if (!rc && !strcmp(row->kind, NRG_KIND_BACKWARD))
        rc = nrg_str_addf(out, " (backward)");
    return rc;
}

const char *nrg_attribution_flag(unsigned flags, size_t word)
{
    static const struct {
        unsigned flag;
        const char *text;
    } words[NRG_ROW_FLAG_WORDS] = {
        {NRG_ROW_UNRESOLVED, "not resolved"}, {NRG_ROW_MERGED, "together"},
        {NRG_ROW_UNCLOSED, "not closed"},     {NRG_ROW_UNCOVERED, "not covered"},
        {NRG_ROW_CLOCK, "cut to nest"},
    };
    if (word >= NRG_ROW_FLAG_WORDS)
        return NULL;
    return flags & words[word].flag ? words[word].text : "";
}

const char *nrg_attribution_domain_name(const struct nrg_attribution_domain *d)
{
    return d->domain && d->domain->channel ? d->domain->channel->channel.name : "energy";
}

json_t *nrg_attribution_flags_json(unsigned flags)
{
    json_t *list = json_array();
    for (size_t w = 0; w < NRG_ROW_FLAG_WORDS; w++)
        if (*nrg_attribution_flag(flags, w))
            json_array_append_new(list, json_string(nrg_attribution_flag(flags, w)));
    return list;
}

const char *nrg_attribution_idle_word(enum nrg_idle_mode idle)
{
    static const char *const words[] = {"apart", "share", "none"};
    return words[idle];
}

double nrg_row_pj_per_mac(const struct nrg_attribution_row *row)
{
    double macs = row->macs * (double)row->calls;
    return macs > 0 ? row->energy_j / macs * 1e12 : NAN;
}

double nrg_row_j_per_byte(const struct nrg_attribution_row *row)
{
    double bytes = (row->read_bytes + row->written_bytes) * (double)row->calls;
    return bytes > 0 ? row->energy_j / bytes : NAN;
}

const struct nrg_execution *nrg_cycle_of_row(const struct nrg_cycles *cycles, size_t row)
{
    return cycles && cycles->of_row[row] < cycles->n ? &cycles->executions[cycles->of_row[row]]
                                                     : NULL;
}

bool nrg_row_left_out(const struct nrg_attribution_report *report, size_t row)
{
    const struct nrg_execution *execution = nrg_cycle_of_row(report->cycles, row);
    return execution && execution->left_out;
}
