/*
 * See calibrate/gpu.h. A mean that is as long as an update as far as readings can tell leaves
 * nothing out and repeats nothing: the profile's window is the update then.
 */
#include "cli/calibrate/gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json/set.h"
#include "base/mem.h"
#include "base/temp.h"
#include "cli/again.h"
#include "cli/stop.h"
#include "energy/frame.h"
#include "energy/sensor_fit.h"
#include "sensors/sensor_profile.h"

#define RATE  "250Hz" /* several readings per update of 20 ms */
#define WHOLE 1.02    /* of an update: no mean is known better than that */

struct result {
    const struct nrg_recorded_channel *channel;
    struct nrg_sensor_fit fit;
    bool known;
    struct nrg_error err; /* why not */
};

/* Runs `nrg run` on the load, with the sensors of GPUs only. */
static int record_load(const char *path, char **command)
{
    /* As python3 -m nrg.gpu_load, but never out of the working folder, which may be anybody's. */
    static const char *const own[] = {
        "python3", "-c",
        "import sys; sys.path[:] = [p for p in sys.path if p]; import "
        "runpy; runpy.run_module('nrg.gpu_load', run_name='__main__')",
        NULL};
    static const char *const run[] = {"nrg",      "run",  "-q", "--rate", RATE,
                                      "--sensor", "nvml", "-o", NULL};
    const char *const *load = command[0] ? (const char *const *)command : own;
    size_t n = 0, more = 0;
    while (load[more])
        more++;
    const char **argv = nrg_calloc(sizeof run / sizeof *run + more + 2, sizeof *argv);
    for (size_t i = 0; argv && run[i]; i++)
        argv[n++] = run[i];
    if (argv) {
        argv[n++] = path;
        argv[n++] = "--";
        memcpy(argv + n, load, more * sizeof *argv); /* calloc has ended it */
    }
    int rc = argv ? nrg_again(argv, NULL) : -ENOMEM;
    free(argv);
    if (rc) {
        nrg_say("the load did not run: no sensor was calibrated");
        return 1;
    }
    return 0;
}

/* "NVIDIA L4" of "GPU 0 (NVIDIA L4)". */
static void board_name(const char *sensor, char *name, size_t size)
{
    const char *open = strchr(sensor, '('), *close = strrchr(sensor, ')');
    nrg_copy(name, size, open ? open + 1 : sensor);
    if (open && close > open && (size_t)(close - open - 1) < size)
        name[close - open - 1] = '\0';
}

/* Of a channel; longer than an update: a running mean. */
static double window_s(const struct nrg_sensor_fit *f)
{
    bool whole = f->window_low_s <= WHOLE * f->update_s && f->window_high_s >= f->update_s / WHOLE;
    return whole ? f->update_s : f->window_s;
}

static json_t *result_json(const struct result *r)
{
    const struct nrg_sensor_fit *f = &r->fit;
    char gpu[64];
    board_name(r->channel->sensor, gpu, sizeof gpu);
    json_t *o = json_pack("{s:s, s:s, s:s}", "schema", NRG_SENSOR_PROFILE_SCHEMA, "gpu", gpu,
                          "source", r->channel->channel.source);
    NRG_JSON_REALS(o, {"update_s", f->update_s}, {"window_s", window_s(f)}, {"lag_s", 0},
                   {"mean_s", f->window_s}, {"mean_low_s", f->window_low_s},
                   {"mean_high_s", f->window_high_s}, {"delay_s", f->delay_s},
                   {"delay_sd_s", f->delay_sd_s}, {"off_w", f->off_w}, {"on_w", f->on_w},
                   {"explained", f->explained});
    nrg_json_count(o, "updates", (int64_t)f->updates);
    return o;
}

static void print_result(const struct result *r)
{
    const struct nrg_sensor_fit *f = &r->fit;
    char why[512];
    if (!r->known) {
        nrg_say("%s: %s", r->channel->channel.name, nrg_error_text(&r->err, why, sizeof why));
        return;
    }
    printf("%s  %s\n", r->channel->channel.name, r->channel->sensor);
    printf("  updates every  %.4g ms\n", 1e3 * f->update_s);
    printf("  mean of        %.4g ms  (%.4g .. %.4g)\n", 1e3 * f->window_s, 1e3 * f->window_low_s,
           1e3 * f->window_high_s);
    printf("  shown after    %.3g ms  ± %.2g\n", 1e3 * f->delay_s, 1e3 * f->delay_sd_s);
    if (window_s(f) > f->update_s)
        printf("  is             a running mean: what lasts less is spread over it\n");
    if (window_s(f) < f->update_s)
        printf("  sees           %.0f %% of the time\n", 100 * f->window_s / f->update_s);
    printf("  load           %.4g W off, %.4g W on; explains %.1f %% of %zu updates\n", f->off_w,
           f->on_w, 100 * f->explained, f->updates);
}

/* Of gpu-N, and of gpu-N.polled: samples of the driver's buffer, which gpu-N may be, come once per
 * update, and do not show when that was. */
static bool is_gpu_power(const struct nrg_channel *c)
{
    char name[sizeof c->name];
    nrg_copy(name, sizeof name, c->name);
    char *dot = strchr(name, '.');
    if (dot && !strcmp(dot, NRG_POLLED_SUFFIX))
        *dot = '\0';
    return c->quantity == NRG_POWER && nrg_gpu_number(name) >= 0;
}

/* Results of all GPUs; how many were found out. */
static size_t fit_channels(struct nrg_recording *recording, struct result *results, size_t *n,
                           size_t max)
{
    size_t n_channels, known = 0;
    const struct nrg_recorded_channel *channels = nrg_recording_channels(recording, &n_channels);
    *n = 0;
    for (size_t i = 0; i < n_channels && *n < max; i++) {
        struct result *r = &results[*n];
        if (!is_gpu_power(&channels[i].channel))
            continue;
        *r = (struct result){.channel = &channels[i]};
        r->known = !nrg_sensor_fit(recording, &channels[i], &r->fit, &r->err);
        known += r->known;
        ++*n;
    }
    return known;
}

/* The profile is the first GPU's that could be told; --json has all. */
static int write_results(const struct nrg_gpu_calibration *o, const struct result *results,
                         size_t n)
{
    int code = 0;
    json_t *all = json_array();
    const struct result *first = NULL;
    for (size_t i = n; i-- > 0;)
        if (results[i].known)
            first = &results[i];
    for (size_t i = 0; i < n; i++) {
        if (results[i].known)
            json_array_append_new(all, result_json(&results[i]));
        if (!results[i].known || !nrg_is_stdout(o->json))
            print_result(&results[i]);
    }
    if (o->json)
        code = nrg_print_json(json_pack("{s:s, s:O}", "schema", "nrg.sensors/1", "sensors", all),
                              o->json);
    json_decref(all);
    if (!code && o->output && first)
        code = nrg_print_json(result_json(first), o->output);
    return code;
}

static int fit_recording(const struct nrg_gpu_calibration *o, const char *path)
{
    static struct result results[16];
    struct nrg_recording *recording;
    struct nrg_error err;
    size_t n;
    if (nrg_recording_open(path, &recording, &err))
        return nrg_complain(&err, 1);
    size_t known = fit_channels(recording, results, &n, sizeof results / sizeof *results);
    if (!n)
        nrg_say("%s: has no power of a GPU", path);
    int code =
        nrg_recording_check(recording, &err) ? nrg_complain(&err, 1) : write_results(o, results, n);
    nrg_recording_close(recording);
    return code ? code : !known;
}

/* In a folder of its own: in the common one somebody could have put a link of that name. */
static int record_and_fit(const struct nrg_gpu_calibration *o)
{
    char folder[4000], path[4096];
    struct nrg_error err;
    int rc = nrg_temp_folder(folder, sizeof folder, "nrg-gpu");
    if (rc) {
        nrg_fail(&err, rc, nrg_temp_dir(), "cannot make a folder: %s", strerror(-rc));
        return nrg_complain(&err, 1);
    }
    snprintf(path, sizeof path, "%s/load.nrg", folder);
    nrg_stop_catch(); /* it reaches the load, too; then the folder is removed */
    int code = record_load(path, o->command);
    if (!code)
        code = fit_recording(o, path);
    unlink(path);
    rmdir(folder);
    return code;
}

int nrg_calibrate_gpu(struct nrg_cli *cli, const struct nrg_gpu_calibration *o)
{
    if (o->from && o->command[0])
        return nrg_usage(cli, "--from can't be combined with a command: nothing is run");
    return o->from ? fit_recording(o, o->from) : record_and_fit(o);
}
