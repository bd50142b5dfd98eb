/*
 * nrg meter calibrate: makes a load, records meter and reference, fits one to the other, and prints
 * the result as keys for the URI. The result includes the keys that the URI has already, so it
 * replaces them.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/temp.h"
#include "cli/meter/actions.h"
#include "cli/meter/load.h"
#include "cli/stop.h"
#include "energy/meter_fit.h"
#include "record/read/recording.h"
#include "record/sampler/recorder.h"
#include "sensors/meter/channels.h"

#define LENGTH_NS    (60 * NRG_NS_PER_S)
#define MAX_DELAY_NS (10 * NRG_NS_PER_S)
#define PHASE_NS     (3 * NRG_NS_PER_S / 2)
#define RATE_HZ      50
#define MAX_DRIVERS  16

struct calibration {
    struct nrg_cli *cli;
    struct nrg_meter_values *values;
    char *uri; /* own */
    char path[4096];
    bool temporary;
    struct nrg_meter_adjust before; /* the keys that the URI has already */
    int64_t period_ns;
    char names[256]; /* of the drivers; `only` points into it */
    const char *only[MAX_DRIVERS + 1];
};

/* "rapl+nvml": rapl stands for any of its three drivers. */
static int split_drivers(struct calibration *c)
{
    static const char *const rapl[] = {"rapl-perf", "rapl-powercap", "rapl-msr"};
    size_t n = 0;
    if (!c->values->against)
        return 0;
    bool fits = !nrg_copy_whole(c->names, sizeof c->names, c->values->against);
    for (char *save, *name = strtok_r(c->names, "+,", &save); name && fits;
         name = strtok_r(NULL, "+,", &save)) {
        bool all = !strcmp(name, "rapl");
        fits = n + (all ? 3 : 1) <= MAX_DRIVERS;
        for (size_t i = 0; fits && i < (all ? 3 : 1); i++)
            c->only[n++] = all ? rapl[i] : name;
    }
    if (n && fits)
        return 0;
    return nrg_usage(c->cli, "--against wants %sdrivers, such as rapl+nvml", fits ? "" : "fewer ");
}

static int read_uri(struct calibration *c, struct nrg_error *err)
{
    static const struct nrg_uri_key keys[] = {
        NRG_URI_DURATION("period", struct calibration, period_ns), {0}};
    struct nrg_uri uri;
    int rc = nrg_uri_parse(&uri, c->uri, err);
    if (!rc)
        rc = nrg_meter_adjust_read(&c->before, &uri, err);
    return rc ? rc : nrg_uri_read(&uri, keys, c, err);
}

static int choose_path(struct calibration *c)
{
    if (c->values->output)
        return nrg_copy_whole(c->path, sizeof c->path, c->values->output)
                   ? nrg_usage(c->cli, "--output: the path is too long")
                   : 0;
    snprintf(c->path, sizeof c->path, "%s/nrg-calibrate-XXXXXX", nrg_temp_dir());
    int fd = mkstemp(c->path);
    if (fd < 0) {
        fprintf(stderr, "nrg meter: %s: %s\n", c->path, strerror(errno));
        return 1;
    }
    close(fd);
    c->temporary = true;
    return 0;
}

/* The run lasts from the first reading to the last. */
static void make_load(struct calibration *c, struct nrg_recorder *recorder)
{
    int64_t length = c->values->for_ns ? c->values->for_ns : LENGTH_NS;
    int64_t phase = 3 * c->period_ns > PHASE_NS ? 3 * c->period_ns : PHASE_NS;
    if (phase > length / 12)
        phase = length / 12;
    struct nrg_run run = {.id = 1, .kind = "run", .exit_code = -1};
    run.begin_ns = nrg_recorder_read_begin(recorder);
    nrg_recorder_run(recorder, &run);
    nrg_meter_load(length, phase, (unsigned)c->values->seed, nrg_stop_asked);
    nrg_recorder_read_now(recorder);
    run.end_ns = nrg_now_ns();
    nrg_recorder_run(recorder, &run);
}

/* Checked first, so that the user need not wait a minute for it. */
static int check_reference(struct calibration *c)
{
    struct nrg_sensor_options options = {.only = c->only[0] ? c->only : NULL};
    struct nrg_probe probe;
    struct nrg_error err;
    bool any = false;
    if (nrg_probe_all(&probe, &c->cli->ctx, &options, &err))
        return nrg_complain(&err, 2);
    for (size_t f = 0; f < probe.n_found; f++)
        for (size_t i = 0; i < probe.found[f].n_channels; i++) {
            enum nrg_quantity quantity = probe.found[f].channels[i].quantity;
            any |= probe.found[f].wanted[i] && (quantity == NRG_POWER || quantity == NRG_ENERGY);
        }
    nrg_probe_release(&probe);
    if (any)
        return 0;
    fprintf(stderr, "nrg meter: %s: nothing of it measures energy here: see nrg sensors\n",
            c->values->against ? c->values->against : "this machine");
    return 1;
}

static int record_load(struct calibration *c)
{
    const char *const meters[] = {c->uri, NULL};
    struct nrg_recorder_options options = {
        .path = c->path, .overwrite = true, .rate_hz = RATE_HZ, .live_processes = true};
    struct nrg_recorder *recorder = NULL;
    struct nrg_error err;
    options.sensors.meters = meters;
    options.sensors.config = &c->values->desk.config;
    options.sensors.only = c->only[0] ? c->only : NULL;
    nrg_root_complete(&c->cli->ctx.root, NRG_PART_DEV);
    int rc = nrg_recorder_new(&c->cli->ctx, &options, &recorder, &err);
    if (!rc)
        rc = nrg_recorder_begin(recorder, &err);
    if (!rc) {
        nrg_recorder_text(recorder, "command_line", "(nrg meter calibrate)");
        if (!c->cli->quiet)
            fprintf(stderr, "nrg meter: making the machine busy and idle in turns; Ctrl-C ends\n");
        make_load(c, recorder);
        rc = nrg_recorder_end(recorder, NULL, NULL, &err);
    }
    nrg_recorder_free(recorder);
    return rc ? nrg_complain(&err, 1) : 0;
}

/* Makes the fit and the URI's own keys one adjustment. */
static void include_keys(struct nrg_meter_fit *fit, const struct nrg_meter_adjust *before)
{
    fit->offset_w = fit->scale * before->offset_w + fit->offset_w;
    fit->scale *= before->scale;
    fit->scale_sd *= fabs(before->scale);
    fit->delay_s = (double)before->delay_ns / 1e9 + fit->delay_s;
}

static int print_json(const struct nrg_meter_fit *fit)
{
    char keys[128];
    snprintf(keys, sizeof keys, "scale=%.5g&offset=%.5g&delay=%.0fms", fit->scale, fit->offset_w,
             fit->delay_s * 1e3);
    json_t *o =
        json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:s}", "schema",
                  "nrg.meter.calibration/1", "scale", fit->scale, "scale_sd", fit->scale_sd,
                  "offset_w", fit->offset_w, "offset_sd_w", fit->offset_sd_w, "delay_s",
                  fit->delay_s, "delay_sd_s", fit->delay_sd_s, "average_s", fit->average_s,
                  "residual_w", fit->residual_w, "spread_w", fit->spread_w, "correlation",
                  fit->correlation, "readings", (json_int_t)fit->n, "keys", keys);
    return nrg_print_json(o, "-");
}

static void print_text(const struct calibration *c, const struct nrg_meter_fit *fit)
{
    printf("reference = scale x meter + offset, the meter late by delay; %zu readings\n\n", fit->n);
    printf("scale        %.5g ± %.2g\n", fit->scale, fit->scale_sd);
    printf("offset       %.4g W ± %.2g W\n", fit->offset_w, fit->offset_sd_w);
    printf("delay        %.0f ms ± %.2g ms\n", fit->delay_s * 1e3, fit->delay_sd_s * 1e3);
    printf("left over    %.3g W rms, of a load that varied by %.3g W rms (correlation %.4f)\n",
           fit->residual_w, fit->spread_w, fit->correlation);
    printf("averages     over about %.3g s around that\n\n", fit->average_s);
    printf("If the reference sees all that the meter sees:\n    %s%sscale=%.5g&offset=%.5g"
           "&delay=%.0fms\n",
           c->uri, strchr(c->uri, '?') ? "&" : "?", fit->scale, fit->offset_w, fit->delay_s * 1e3);
    printf("If the meter sees more, as a plug does (1/scale is then what the supply takes, offset "
           "the rest of the machine):\n    %s%sdelay=%.0fms\n",
           c->uri, strchr(c->uri, '?') ? "&" : "?", fit->delay_s * 1e3);
    if (c->before.scale != 1 || c->before.offset_w != 0 || c->before.delay_ns)
        printf("The keys replace those that the URI has already.\n");
}

static int fit_recording(struct calibration *c, const char *path)
{
    int64_t max_ns = c->values->max_delay_ns ? c->values->max_delay_ns : MAX_DELAY_NS;
    struct nrg_recording *recording;
    struct nrg_meter_fit result;
    struct nrg_error err;
    if (nrg_recording_open(path, &recording, &err))
        return nrg_complain(&err, 1);
    int rc = nrg_meter_fit_recording(recording, max_ns, &result, &err);
    if (!rc)
        rc = nrg_recording_check(recording, &err);
    nrg_recording_close(recording);
    if (rc)
        return nrg_complain(&err, 1);
    include_keys(&result, &c->before);
    if (c->values->json)
        return print_json(&result);
    print_text(c, &result);
    return 0;
}

static int choose_meter(struct calibration *c, const char *uri)
{
    struct nrg_sensor_options options = {0};
    struct nrg_error err;
    const struct nrg_meter_config *config = &c->values->desk.config;
    if (nrg_desk_read(&c->values->desk, c->cli, &options, &err))
        return nrg_complain(&err, 1);
    if (!uri && !config->n_meters && !c->values->from)
        return nrg_usage(c->cli, NRG_METER_NO_URI);
    c->uri = strdup(uri ? uri : config->n_meters ? config->meters[0].text : "URI");
    if (!c->uri)
        return nrg_out_of_memory();
    nrg_meter_config_drop_meters(&c->values->desk.config);
    c->before.scale = 1;
    if ((uri || !c->values->from) && read_uri(c, &err))
        return nrg_complain(&err, 2);
    return 0;
}

/* The load, and what it says of the meter. */
static int measure(struct calibration *c)
{
    int code = check_reference(c);
    if (!code)
        code = choose_path(c);
    if (code)
        return code;
    nrg_stop_catch();
    signal(SIGPIPE, SIG_IGN);
    code = record_load(c);
    if (!code)
        code = fit_recording(c, c->path);
    if (c->temporary)
        unlink(c->path);
    return code;
}

int nrg_meter_cmd_calibrate(struct nrg_cli *cli, struct nrg_meter_values *values, const char *uri)
{
    struct calibration c = {.cli = cli, .values = values};
    int code = choose_meter(&c, uri);
    if (!code)
        code = split_drivers(&c);
    if (!code)
        code = values->from ? fit_recording(&c, values->from) : measure(&c);
    free(c.uri);
    return code;
}
