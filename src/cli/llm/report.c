/* nrg llm report, and what nrg llm proxy shows at its end. */
#include <errno.h>

#include "cli/llm/actions.h"
#include "llm/share.h"
#include "report/requests/report.h"

#define LISTED 20

static int show_text(const struct nrg_llm_share *share, const struct nrg_llm_values *values,
                     FILE *to)
{
    struct nrg_fitted text;
    size_t most = values->requests ? (size_t)values->requests : LISTED;
    FILE *out = nrg_fitted_begin(&text, to);
    if (out)
        nrg_requests_print(share, most, out);
    return nrg_fitted_end(&text);
}

int nrg_llm_show(struct nrg_recording *recording, const struct nrg_llm_values *values,
                 FILE *text_out)
{
    struct nrg_llm_share share;
    struct nrg_error err;
    int code = 0;
    if (nrg_llm_share_make(&share, recording, &err))
        code = nrg_complain(&err, 1);
    else if (text_out)
        code = show_text(&share, values, text_out);
    if (!code && values->json)
        code = nrg_print_json_digits(nrg_requests_json(&share), values->json, 17);
    nrg_llm_share_release(&share);
    int checked = nrg_check_recording(recording);
    return code ? code : checked;
}

int nrg_llm_cmd_report(struct nrg_cli *cli, struct nrg_llm_values *values, const char *path)
{
    struct nrg_recording *recording;
    struct nrg_error err;
    if (nrg_recording_open(path, &recording, &err))
        return nrg_complain(&err, 1);
    bool text = !cli->quiet && !nrg_is_stdout(values->json);
    int code = nrg_llm_show(recording, values, text ? stdout : NULL);
    nrg_recording_close(recording);
    return code;
}
