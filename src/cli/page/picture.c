/* See picture.h. A picture is made in memory first, so that a failure leaves no half of one. */
#include "cli/page/picture.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/page/machine.h"
#include "report/page/page.h"
#include "report/picture/picture.h"

const struct nrg_choice nrg_picture_choices[] = {
    {"timeline", NRG_PICTURE_TIMELINE, "power and spans over time"},
    {"flame", NRG_PICTURE_FLAME, "where the joules went"},
    {"roofline", NRG_PICTURE_ROOFLINE, "joules per MAC, with --profile the machine's line"},
    {0},
};

static int draw(const struct nrg_picture *picture, enum nrg_picture_what what, FILE *out)
{
    static const nrg_picture_fn draws[] = {[NRG_PICTURE_TIMELINE] = nrg_picture_timeline,
                                           [NRG_PICTURE_FLAME] = nrg_picture_flame,
                                           [NRG_PICTURE_ROOFLINE] = nrg_picture_roofline};
    struct nrg_error err;
    return draws[what](picture, out, &err) ? nrg_complain(&err, 1) : 0;
}

/* Attributes, joins the recorded models, draws. */
static int make(struct nrg_attribute_source *source, const struct nrg_page_machine *machine,
                enum nrg_picture_what what, FILE *out)
{
    const struct nrg_attribution_options how = {
        .idle_w = NAN, .by = NRG_BY_PATH, .confidence = 0.95, .buckets = NRG_PAGE_BUCKETS};
    struct nrg_attribution attribution;
    struct nrg_list no_graphs = {0};
    struct nrg_error err;
    if (nrg_attribution_make(&attribution, source->recording, &how, &err))
        return nrg_complain(&err, 1);
    int code = nrg_attribute_source_models(source, &no_graphs, &attribution, false);
    const struct nrg_picture picture = {source->recording, &attribution,
                                        machine->path ? &machine->price : NULL};
    if (!code)
        code = draw(&picture, what, out);
    nrg_attribution_release(&attribution);
    return code ? code : nrg_check_recording(source->recording);
}

static int put(const char *text, size_t size, const char *path)
{
    FILE *out = nrg_output_open(path);
    if (!out)
        return 1;
    int rc = fwrite(text, 1, size, out) < size ? -errno : 0;
    return nrg_output_close(out, path, rc);
}

int nrg_picture_write(const struct nrg_cli *cli, const struct nrg_page_options *o,
                      enum nrg_picture_what what, const char *recording, const char *path)
{
    struct nrg_attribute_source source = {0};
    const struct nrg_import_join_options no_logs = {0};
    struct nrg_page_machine machine;
    char *text = NULL;
    size_t size = 0;
    int code = nrg_page_machine_open(&machine, o->profile);
    if (code)
        return code;
    code = nrg_attribute_source_open(&source, cli, recording, &no_logs);
    if (!code) {
        FILE *made = open_memstream(&text, &size);
        code = made ? make(&source, &machine, what, made) : nrg_out_of_memory();
        if (made && fclose(made) && !code)
            code = nrg_out_of_memory();
        nrg_attribute_source_close(&source);
    }
    if (!code)
        code = put(text, size, path);
    free(text);
    nrg_page_machine_close(&machine);
    return code;
}
