/*
 * nrg meter calibrate: a load of its own, a recording of meter and reference, the fit, and the
 * result as keys for the URI. Keys that the URI has already are taken into account: what is
 * suggested replaces them.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "energy/meter_fit.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cli/meter/actions.h"
#include "cli/meter/load.h"
#include "record/sampler/recorder.h"
#include "record/read/recording.h"
#include "sensors/meter/driver.h"

#define LENGTH_NS    (60 * NRG_NS_PER_S)
#define MAX_DELAY_NS (10 * NRG_NS_PER_S)
#define PHASE_NS     (3 * NRG_NS_PER_S / 2)
#define RATE_HZ      50
#define MAX_DRIVERS  16

struct calibration {
    struct nrg_cli *cli;
    struct nrg_meter_values *values;
    char uri[NRG_URI_TEXT];
    char path[4096];
    bool temporary;
    struct nrg_meter_adjust before; /* what the URI says already */
    int64_t period_ns;
    char names[256]; /* of the drivers; `only` points into it */
    const char *only[MAX_DRIVERS + 1];
};

/* "rapl+nvml": rapl is whichever way to it works. */
static int split_drivers(struct calibration *c)
{
    static const char *const rapl[] = {"rapl-perf", "rapl-powercap", "rapl-msr"};
    size_t n = 0;
    if (!c->values->against)
        return 0;
    nrg_copy(c->names, sizeof c->names, c->values->against);
    for (char *save, *name = strtok_r(c->names, "+,", &save); name;
         name = strtok_r(NULL, "+,", &save)) {
        bool all = !strcmp(name, "rapl");
        for (size_t i = 0; n < MAX_DRIVERS && i < (all ? 3 : 1); i++)
            c->only[n++] = all ? rapl[i] : name;
    }
    if (n)
        return 0;
    fprintf(stderr, "nrg meter: --against wants drivers, such as rapl+nvml\n");
    return 2;
}

static int read_uri(struct calibration *c, struct nrg_error *err)
{
    struct nrg_uri uri;
    int rc = nrg_uri_parse(&uri, c->uri, err);
    if (!rc)
        rc = nrg_meter_adjust_read(&c->before, &uri, err);
    return rc ? rc : nrg_uri_duration(&uri, "period", &c->period_ns, err);
}

static int choose_path(struct calibration *c)
{
    const char *folder = getenv("TMPDIR");
    if (c->values->output) {
        nrg_copy(c->path, sizeof c->path, c->values->output);
        return 0;
    }
    snprintf(c->path, sizeof c->path, "%s/nrg-calibrate-XXXXXX", folder ? folder : "/tmp");
    int fd = mkstemp(c->path);
    if (fd < 0) {
        fprintf(stderr, "nrg meter: %s: %s\n", c->path, strerror(errno));
        return 1;
    }
    close(fd);
    c->temporary = true;
    return 0;
}

/* From the first reading to the last is the run. */
static void make_load(struct calibration *c, struct nrg_recorder *recorder)
{
    int64_t length = c->values->for_ns ? c->values->for_ns : LENGTH_NS;
    int64_t phase = 3 * c->period_ns > PHASE_NS ? 3 * c->period_ns : PHASE_NS;
    if (phase > length / 12)
        phase = length / 12;
    struct nrg_run run = {.id = 1, .kind = "run", .exit_code = -1};
    nrg_recorder_read_now(recorder);
    run.begin_ns = nrg_now_ns();
    nrg_recorder_run(recorder, &run);
    nrg_meter_load(length, phase, (unsigned)c->values->seed, nrg_meter_stopped);
    nrg_recorder_read_now(recorder);
    run.end_ns = nrg_now_ns();
    nrg_recorder_run(recorder, &run);
}

/* Known before a minute has gone by. */
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

static int record(struct calibration *c)
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

/* The keys that replace what the URI has. */
static void compose(const struct calibration *c, const struct nrg_meter_fit *fit, double *scale,
                    double *offset_w, double *delay_s)
{
    *scale = fit->scale * c->before.scale;
    *offset_w = fit->scale * c->before.offset_w + fit->offset_w;
    *delay_s = (double)c->before.delay_ns / 1e9 + fit->delay_s;
}

static int print_json(const struct calibration *c, const struct nrg_meter_fit *fit)
{
    double scale, offset_w, delay_s;
    char keys[128];
    compose(c, fit, &scale, &offset_w, &delay_s);
    snprintf(keys, sizeof keys, "scale=%.5g&offset=%.5g&delay=%.0fms", scale, offset_w,
             delay_s * 1e3);
    json_t *o =
        json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:s}", "schema",
                  "nrg.meter.calibration/1", "scale", scale, "scale_sd",
                  fit->scale_sd * fabs(c->before.scale), "offset_w", offset_w, "offset_sd_w",
                  fit->offset_sd_w, "delay_s", delay_s, "delay_sd_s", fit->delay_sd_s, "average_s",
                  fit->average_s, "residual_w", fit->residual_w, "spread_w", fit->spread_w,
                  "correlation", fit->correlation, "readings", (json_int_t)fit->n, "keys", keys);
    return nrg_print_json(o, "-");
}

static void print_text(const struct calibration *c, const struct nrg_meter_fit *fit)
{
    double scale, offset_w, delay_s;
    compose(c, fit, &scale, &offset_w, &delay_s);
    printf("reference = scale x meter + offset, the meter late by delay; %zu readings\n\n", fit->n);
    printf("scale        %.5g ± %.2g\n", scale, fit->scale_sd * fabs(c->before.scale));
    printf("offset       %.4g W ± %.2g W\n", offset_w, fit->offset_sd_w);
    printf("delay        %.0f ms ± %.2g ms\n", delay_s * 1e3, fit->delay_sd_s * 1e3);
    printf("left over    %.3g W rms, of a load that varied by %.3g W rms (correlation %.4f)\n",
           fit->residual_w, fit->spread_w, fit->correlation);
    printf("averages     over about %.3g s around that\n\n", fit->average_s);
    printf("If the reference sees all that the meter sees:\n    %s%sscale=%.5g&offset=%.5g"
           "&delay=%.0fms\n",
           c->uri, strchr(c->uri, '?') ? "&" : "?", scale, offset_w, delay_s * 1e3);
    printf("If the meter sees more, as a plug does (1/scale is then what the supply takes, offset "
           "the rest of the machine):\n    %s%sdelay=%.0fms\n",
           c->uri, strchr(c->uri, '?') ? "&" : "?", delay_s * 1e3);
    if (c->before.scale != 1 || c->before.offset_w != 0 || c->before.delay_ns)
        printf("The keys replace those that the URI has already.\n");
}

static int fit(struct calibration *c, const char *path)
{
    int64_t max_ns = c->values->max_delay_ns ? c->values->max_delay_ns : MAX_DELAY_NS;
    struct nrg_recording *recording;
    struct nrg_meter_fit result;
    struct nrg_error err;
    if (nrg_recording_open(path, &recording, &err))
        return nrg_complain(&err, 1);
    int rc = nrg_meter_fit_recording(recording, max_ns, &result, &err);
    nrg_recording_close(recording);
    if (rc)
        return nrg_complain(&err, 1);
    if (c->values->json)
        return print_json(c, &result);
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
    if (!uri && !config->n_meters && !c->values->from) {
        fprintf(stderr, "nrg meter: wants a URI: nrg.conf names no meter (nrg meter list)\n");
        return 2;
    }
    nrg_copy(c->uri, sizeof c->uri, uri ? uri : config->n_meters ? config->meters[0].text : "URI");
    nrg_meter_config_drop_meters(&c->values->desk.config);
    c->before.scale = 1;
    if ((uri || !c->values->from) && read_uri(c, &err))
        return nrg_complain(&err, 2);
    return 0;
}

int nrg_meter_cmd_calibrate(struct nrg_cli *cli, struct nrg_meter_values *values, const char *uri)
{
    struct calibration c = {.cli = cli, .values = values};
    int code = choose_meter(&c, uri);
    if (!code)
        code = split_drivers(&c);
    if (code || values->from)
        return code ? code : fit(&c, values->from);
    code = check_reference(&c);
    if (!code)
        code = choose_path(&c);
    if (code)
        return code;
    nrg_meter_stop_on_signals();
    code = record(&c);
    if (!code)
        code = fit(&c, c.path);
    if (c.temporary)
        unlink(c.path);
    return code;
}
