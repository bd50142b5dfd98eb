/* See llm.h. One load, or a table over one or two of its sizes. */
#include "cli/predict/llm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/prediction/report.h"
#include "report/units.h"

static int say_misfit(const struct nrg_llm_request *r, const struct nrg_llm_forecast *f)
{
    char fit[200];
    struct nrg_error err;
    nrg_fail(&err, -ENOSPC, r->config,
             "does not fit: %s on each GPU, which has %s; what fits: %s; --force prices it anyway",
             nrg_show_bytes(f->work.gpu_bytes).text, nrg_show_bytes(f->memory_bytes).text,
             nrg_llm_fit_text(&f->fit, fit, sizeof fit));
    return nrg_complain(&err, 1);
}

static int predict_one(const struct nrg_llm_request *r, const struct nrg_llm_config *config)
{
    struct nrg_llm_forecast forecast;
    struct nrg_error err;
    if (nrg_llm_forecast(&forecast, config, &r->load, r->profile, &r->how, &err)) {
        if (!err.where[0])
            nrg_copy(err.where, sizeof err.where, r->config);
        return nrg_complain(&err, 1);
    }
    const struct nrg_llm_report report = {.name = r->config,
                                          .profile = r->profile,
                                          .profile_name = r->profile_name,
                                          .config = config,
                                          .load = &r->load,
                                          .forecast = &forecast,
                                          .gpu = r->how.gpu};
    struct nrg_fitted shown;
    bool text = !nrg_is_stdout(r->json);
    FILE *out = text ? nrg_fitted_begin(&shown, stdout) : NULL;
    if (out)
        nrg_llm_text(&report, out);
    int code = text ? nrg_fitted_end(&shown) : 0;
    if (!code && r->json)
        code = nrg_print_json(nrg_llm_json(&report), r->json);
    return code || forecast.priced ? code : say_misfit(r, &forecast);
}

/* The size of a load that a table's dimension names; NULL: none. */
static double *size_of(struct nrg_llm_load *load, const char *name)
{
    return !strcmp(name, "batch")                                ? &load->batch
           : !strcmp(name, "prompt") || !strcmp(name, "context") ? &load->prompt
           : !strcmp(name, "output")                             ? &load->output
                                                                 : NULL;
}

static int show_table(const struct nrg_llm_request *r, const struct nrg_llm_what_if *rows, size_t n)
{
    struct nrg_fitted shown;
    bool text = !nrg_is_stdout(r->json);
    FILE *out = text ? nrg_fitted_begin(&shown, stdout) : NULL;
    if (out)
        nrg_llm_what_if_text(rows, n, out);
    int code = text ? nrg_fitted_end(&shown) : 0;
    return code || !r->json ? code : nrg_print_json(nrg_llm_what_if_json(rows, n), r->json);
}

static int predict_table(const struct nrg_llm_request *r, const struct nrg_llm_config *config)
{
    const struct nrg_llm_sizes *a = &r->tables[0], *b = &r->tables[1];
    size_t columns = r->n_tables > 1 ? b->n : 1, n = a->n * columns;
    struct nrg_llm_what_if *rows = nrg_calloc(n, sizeof *rows);
    struct nrg_error err;
    int rc = 0;
    if (!rows)
        return nrg_out_of_memory();
    for (size_t i = 0; !rc && i < n; i++) {
        rows[i].load = r->load;
        *size_of(&rows[i].load, a->name) = (double)a->sizes[i / columns];
        if (r->n_tables > 1)
            *size_of(&rows[i].load, b->name) = (double)b->sizes[i % columns];
        rc = nrg_llm_forecast(&rows[i].forecast, config, &rows[i].load, r->profile, &r->how, &err);
    }
    int code = rc ? nrg_complain(&err, 1) : show_table(r, rows, n);
    size_t priced = 0;
    for (size_t i = 0; !rc && i < n; i++)
        priced += rows[i].forecast.priced;
    if (!code && !priced)
        code = say_misfit(r, &rows[0].forecast);
    free(rows);
    return code;
}

int nrg_predict_llm(const struct nrg_cli *cli, struct nrg_llm_request *r)
{
    struct nrg_llm_config config;
    struct nrg_error err;
    for (size_t i = 0; i < r->n_tables; i++)
        if (!size_of(&r->load, r->tables[i].name))
            return nrg_usage(cli,
                             "--what-if with --llm varies batch, prompt (context) or output, "
                             "not '%s'",
                             r->tables[i].name);
    if (r->n_tables > 1 &&
        size_of(&r->load, r->tables[0].name) == size_of(&r->load, r->tables[1].name))
        return nrg_usage(cli,
                         "--what-if names '%s' twice: its sizes belong into one, such as %s=1,2",
                         r->tables[0].name, r->tables[0].name);
    if (nrg_llm_config_read(&config, r->config, &err))
        return nrg_complain(&err, 1);
    if (!(r->load.tp > 0)) /* not given */
        r->load.tp = nrg_llm_default_tp(&config, r->load.gpus);
    if (r->load.output < 0)
        r->load.output = config.encoder ? 0 : 256;
    return r->n_tables ? predict_table(r, &config) : predict_one(r, &config);
}
