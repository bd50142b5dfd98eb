/* See import_layers.h. */
#include "cli/import_layers.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "import/join.h"
#include "sensors/channel.h"

/* Progress, on a terminal and for work that takes long enough to wonder about. */
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

bool nrg_import_wants_layers(const struct nrg_import_layer_call *call)
{
    const struct nrg_import_layer_values *v = call->values;
    return v->into || v->power_log || v->times || v->offset || v->align || v->layout || v->domain ||
           call->n_files > 1 || nrg_import_is_layers(call->files[0]);
}

static int wrong(const char *option, const char *wants, const char *given)
{
    fprintf(stderr, "nrg import: --%s wants %s, not '%s'\n", option, wants, given);
    return 2;
}

static int read_align(const char *text, struct nrg_import_join_options *o)
{
    int64_t range_ns;
    if (!text)
        return 0;
    o->align = true;
    if (!strcmp(text, "-"))
        return 0;
    if (nrg_parse_duration_ns(text, &range_ns) || range_ns <= 0)
        return wrong("align", "how far to look, such as 5s", text);
    o->align_range_s = (double)range_ns / 1e9;
    return 0;
}

static int read_values(const struct nrg_import_layer_call *call, struct nrg_import_join_options *o)
{
    const struct nrg_import_layer_values *v = call->values;
    if (v->into && v->power_log) {
        fprintf(stderr, "nrg import: --into and --power-log are two ways to say where the power "
                        "is: give one\n");
        return 2;
    }
    if (v->offset && nrg_parse_scaled(v->offset, strlen(v->offset), 9, &o->offset_ns))
        return wrong("offset", "seconds, such as -0.25", v->offset);
    if (v->layout && strcmp(v->layout, "packed") != 0 && strcmp(v->layout, "recorded") != 0)
        return wrong("layout", "recorded or packed", v->layout);
    o->has_offset = v->offset != NULL;
    o->layout = v->layout && v->layout[0] == 'p' ? NRG_LAYOUT_PACKED : NRG_LAYOUT_RECORDED;
    o->power = v->into ? v->into : v->power_log;
    o->layers = (const char *const *)call->files;
    o->n_layers = (size_t)call->n_files;
    o->times = v->times;
    o->domain = v->domain;
    o->output = call->output;
    o->overwrite = call->force;
    o->zone_offset_ns = call->zone_offset_ns;
    o->idle_w = call->idle_w;
    return read_align(v->align, o);
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

static void say(const struct nrg_import_join_options *o, const struct nrg_import_join_result *r)
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

/* The last part of the path without its suffixes, in the working directory. */
void nrg_import_default_output(const char *path, char *out, size_t size)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    const char *slash = memrchr(path, '/', len);
    const char *name = slash && slash + 1 < path + len ? slash + 1 : path;
    size_t n = (size_t)(path + len - name);
    if (n > 3 && !memcmp(name + n - 3, ".gz", 3))
        n -= 3;
    const char *dot = memrchr(name, '.', n);
    if (dot && dot > name)
        n = (size_t)(dot - name);
    snprintf(out, size, "%.*s.nrg", (int)n, name);
}

int nrg_import_run_layers(struct nrg_cli *cli, const struct nrg_import_layer_call *call)
{
    struct nrg_import_join_options o = {0};
    struct nrg_import_join_result result;
    struct nrg_error err;
    struct progress progress = {.begin_ns = nrg_now_ns()};
    char output[4096];
    int code = read_values(call, &o);
    if (code)
        return code;
    if (!o.output) {
        nrg_import_default_output(call->files[0], output, sizeof output);
        o.output = output;
    }
    if (!cli->quiet && isatty(STDERR_FILENO)) {
        o.progress = show_progress;
        o.progress_arg = &progress;
    }
    int rc = nrg_import_join(&o, &result, &err);
    if (progress.any)
        fprintf(stderr, "\r\033[K");
    if (!rc && !cli->quiet)
        say(&o, &result);
    nrg_import_join_release(&result);
    return rc ? nrg_complain(&err, 1) : 0;
}
