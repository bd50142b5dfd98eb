/* See layers.h. */
#include "cli/import/layers.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sensors/channel.h"

/* Progress, on a terminal and only for work that takes longer than a second. */
struct progress {
    int64_t begin_ns, shown_ns;
    bool any;
};

static void show_progress(void *arg, const char *path, uint64_t done_bytes, uint64_t all_bytes)
{
    struct progress *p = arg;
    int64_t now_ns = nrg_now_ns();
    if (now_ns - p->begin_ns < NRG_NS_PER_S || now_ns - p->shown_ns < NRG_NS_PER_S / 5)
        return;
    const char *slash = strrchr(path, '/');
    double elapsed_s = (double)(now_ns - p->begin_ns) / 1e9;
    fprintf(stderr, "\rnrg: %.40s: %.0f of %.0f MB (%d %%), %.0f MB/s ", slash ? slash + 1 : path,
            (double)done_bytes / 1e6, (double)all_bytes / 1e6,
            all_bytes ? (int)(100.0 * (double)done_bytes / (double)all_bytes) : 0,
            (double)done_bytes / 1e6 / elapsed_s);
    fflush(stderr);
    p->shown_ns = now_ns;
    p->any = true;
}

bool nrg_import_wants_layers(const struct nrg_import_layer_values *v)
{
    const struct nrg_import_join_options *o = &v->join;
    return v->into || v->power_log || o->times || v->offset.given || v->align.given ||
           v->layout >= 0 || o->domain || o->n_layers > 1 || nrg_import_is_layers(o->layers[0]);
}

void nrg_join_place(struct nrg_import_join_options *join, const struct nrg_given_ns *offset,
                    const struct nrg_given_ns *align)
{
    join->has_offset = offset->given;
    join->offset_ns = offset->ns;
    join->align = align->given;
    join->align_range_s = (double)align->ns / 1e9;
}

static void say_place(const struct nrg_import_layers *f)
{
    if (!strcmp(f->placed, "none"))
        fprintf(stderr, "  its times count from a start of its own\n");
    else if (!strcmp(f->placed, "clock") && f->offset_ns)
        fprintf(stderr, "  placed by the recording's clock: offset %.6f s\n",
                (double)f->offset_ns / 1e9);
    else if (!strcmp(f->placed, "offset"))
        fprintf(stderr, "  placed with the offset given: %.6f s\n", (double)f->offset_ns / 1e9);
}

static void say_imported(const struct nrg_import_join_options *o,
                         const struct nrg_import_join_result *r)
{
    for (size_t i = 0; i < r->n_files; i++) {
        const struct nrg_import_layers *f = &r->files[i];
        fprintf(stderr, "nrg: %s: %s, %llu spans", f->path, f->format,
                (unsigned long long)f->spans);
        if (f->cycles)
            fprintf(stderr, " in %llu %s", (unsigned long long)f->cycles,
                    f->cycles == 1 ? "cycle" : "cycles");
        fprintf(stderr, ", %.6g s\n", (double)(f->last_ns - f->first_ns) / 1e9);
        say_place(f);
        for (size_t k = 0; k < f->n_notes; k++)
            fprintf(stderr, "  %s\n", f->notes[k]);
    }
    fprintf(stderr, "recording: %s   (nrg attribute, nrg report, nrg export)\n", o->output);
}

int nrg_import_run_layers(struct nrg_cli *cli, struct nrg_import_layer_values *v)
{
    struct nrg_import_join_options o = v->join;
    struct nrg_import_join_result result;
    struct nrg_error err;
    struct progress progress = {.begin_ns = nrg_now_ns()};
    if (v->into && v->power_log)
        return nrg_usage(cli, "--into and --power-log are two ways to say where the power is: "
                              "give one");
    nrg_join_place(&o, &v->offset, &v->align);
    o.layout = v->layout == NRG_LAYOUT_PACKED ? NRG_LAYOUT_PACKED : NRG_LAYOUT_RECORDED;
    o.power = v->into ? v->into : v->power_log;
    if (!cli->quiet && isatty(STDERR_FILENO)) {
        o.progress = show_progress;
        o.progress_arg = &progress;
    }
    int rc = nrg_import_join(&o, &result, &err);
    if (progress.any)
        fprintf(stderr, "\r\033[K");
    if (!rc && !cli->quiet)
        say_imported(&o, &result);
    nrg_import_join_release(&result);
    return rc ? nrg_complain(&err, 1) : 0;
}
