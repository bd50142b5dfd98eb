/*
 * nrg doctor: what keeps nrg from measuring here, with the exact remedy for this system. With --fix
 * root does what it has shown, and looks again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nrg/nrg.h>

#include "base/json/set.h"
#include "base/output_file.h"
#include "cli/doctor/bundle.h"
#include "cli/doctor/diagnosis.h"
#include "cli/doctor/repair.h"
#include "cli/internal.h"
#include "sensors/machine/cpu_model.h"
#include "sensors/registry.h"

struct values {
    const char *json, *bundle, *user;
    bool fix;
};

static const struct nrg_opt options[] = {
    {"json", 'j', NRG_OPT_FILE, "FILE", "machine-readable, to stdout or FILE",
     offsetof(struct values, json)},
    {"fix", 0, NRG_OPT_FLAG, NULL,
     "as root: show each remedy, do it, and look again; nothing that opens a sensor to everybody",
     offsetof(struct values, fix)},
    {"user", 0, NRG_OPT_STRING, "NAME",
     "as root: whose view is looked at, and helped (default: who called sudo)",
     offsetof(struct values, user)},
    {"bundle", 0, NRG_OPT_STRING, "FILE",
     "write an archive for a bug report, without names of hosts, users and folders",
     offsetof(struct values, bundle)},
    {0},
};

/* One look: the sensors that were found, and what is wrong. */
struct look {
    struct nrg_probe probe;
    struct nrg_diagnosis diagnosis;
};

static int look_as(const struct nrg_cli *cli, const char *user, struct look *look,
                   struct nrg_error *err)
{
    struct nrg_guise guise;
    int rc = user ? nrg_guise_begin(&guise, user, err) : 0;
    if (rc)
        return rc;
    rc = nrg_probe_all(&look->probe, &cli->ctx, NULL, err);
    if (!rc && (rc = nrg_diagnose(&cli->ctx, &look->probe, &look->diagnosis))) {
        nrg_fail(err, rc, NULL, "out of memory");
        nrg_probe_release(&look->probe);
    }
    if (user)
        nrg_guise_end(&guise);
    return rc;
}

static void release_look(struct look *look)
{
    nrg_diagnosis_release(&look->diagnosis);
    nrg_probe_release(&look->probe);
}

static json_t *findings_json(const struct nrg_findings *list, bool problems)
{
    json_t *array = json_array();
    for (size_t i = 0; i < list->n; i++) {
        const struct nrg_finding *f = &list->items[i];
        json_t *o = json_object(), *others = json_array();
        nrg_json_text(o, "what", f->what);
        nrg_json_text(o, "why", f->why);
        for (size_t r = 0; r < f->n_remedies; r++) {
            json_t *remedy = r ? json_object() : json_incref(o);
            nrg_json_text(remedy, "fix", f->remedies[r].text);
            nrg_json_text(remedy, "command", f->remedies[r].command);
            json_object_set_new(remedy, "tried", json_boolean(f->remedies[r].tried));
            if (r)
                json_array_append_new(others, remedy);
            else
                json_decref(remedy);
        }
        if (problems && !f->n_remedies) {
            json_object_set_new(o, "fix", json_null());
            json_object_set_new(o, "tried", json_false());
        }
        if (json_array_size(others))
            json_object_set(o, "others", others);
        json_decref(others);
        json_array_append_new(array, o);
    }
    return array;
}

static json_t *channels_json(const struct nrg_probe *probe)
{
    json_t *array = json_array();
    for (size_t f = 0; f < probe->n_found; f++) {
        const struct nrg_found *found = &probe->found[f];
        for (size_t c = 0; c < found->n_channels; c++) {
            const struct nrg_channel *channel = &found->channels[c];
            if (found->wanted[c] &&
                (channel->quantity == NRG_ENERGY || channel->quantity == NRG_POWER) &&
                !nrg_channel_is_companion(channel))
                json_array_append_new(array, json_pack("{s:s, s:s, s:s}", "name", channel->name,
                                                       "driver", found->driver->name, "provenance",
                                                       nrg_provenance_name(channel->provenance)));
        }
    }
    return array;
}

static json_t *machine_json(const struct nrg_root *root)
{
    static const struct {
        const char *key, *path;
    } labels[] = {
        {"kernel", "/proc/sys/kernel/osrelease"},
        {"clock_source", "/sys/devices/system/clocksource/clocksource0/current_clocksource"},
        {"governor", "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor"},
        {"perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid"},
    };
    struct nrg_cpu_model cpu;
    char text[4096];
    json_t *o = json_object();
    if (!nrg_cpu_model_identify(root, &cpu)) {
        nrg_json_text(o, "cpu", cpu.name[0] ? cpu.name : cpu.board);
        json_object_set_new(o, "virtual_machine", json_boolean(cpu.virtual_machine));
    }
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        if (!nrg_root_read_label(root, labels[i].path, text, 128))
            nrg_json_text(o, labels[i].key, text);
    if (nrg_root_read_head(root, "/etc/os-release", text, sizeof text) > 0) {
        char *name = strstr(text, "PRETTY_NAME=\"");
        if (name) {
            name += strlen("PRETTY_NAME=\"");
            name[strcspn(name, "\"\n")] = '\0';
            nrg_json_text(o, "system", name);
        }
    }
    return o;
}

static json_t *to_json(const struct nrg_cli *cli, const struct look *look)
{
    json_t *doc = json_pack("{s:s, s:s}", "schema", "nrg.doctor/1", "version", NRG_VERSION);
    json_object_set_new(doc, "machine", machine_json(&cli->ctx.root));
    json_object_set_new(doc, "channels", channels_json(&look->probe));
    json_object_set_new(doc, "problems", findings_json(&look->diagnosis.problems, true));
    json_object_set_new(doc, "notes", findings_json(&look->diagnosis.notes, false));
    return doc;
}

static void print_measured(json_t *channels)
{
    size_t i;
    json_t *channel;
    bool first = true;
    json_array_foreach(channels, i, channel)
    {
        const char *how = json_string_value(json_object_get(channel, "provenance"));
        printf("%s%s (%s%s%s)", first ? "energy: " : ", ",
               json_string_value(json_object_get(channel, "name")),
               json_string_value(json_object_get(channel, "driver")),
               how && strcmp(how, "measured") ? ", " : "",
               how && strcmp(how, "measured") ? how : "");
        first = false;
    }
    printf("%s\n", first ? "energy: nothing" : "");
    json_decref(channels);
}

static void print_look(const struct look *look)
{
    const struct nrg_diagnosis *d = &look->diagnosis;
    print_measured(channels_json(&look->probe));
    for (size_t i = 0; i < d->problems.n; i++) {
        const struct nrg_finding *f = &d->problems.items[i];
        printf("\nproblem: %s\n  %s\n", f->what, f->why);
        for (size_t r = 0; r < f->n_remedies; r++)
            printf("  %s %s%s\n", r ? "or: " : "fix:", f->remedies[r].text,
                   f->remedies[r].command[0] && !f->remedies[r].tried ? "   [untried]" : "");
    }
    for (size_t i = 0; i < d->notes.n; i++)
        printf("%snote: %s: %s\n", i ? "" : "\n", d->notes.items[i].what, d->notes.items[i].why);
    if (d->problems.n)
        printf("\n%zu %s. [untried]: nrg's tests could not run it; the others they ran.\n",
               d->problems.n, d->problems.n == 1 ? "problem" : "problems");
    else
        printf("\nno problem\n");
}

static int write_bundle(const struct nrg_cli *cli, const struct look *look, const char *path)
{
    struct nrg_error err;
    FILE *out = nrg_is_stdout(path) ? stdout : nrg_output_private(path, &err);
    if (!out)
        return nrg_complain(&err, 1);
    json_t *doc = to_json(cli, look);
    int rc = nrg_bundle_write(&cli->ctx, doc, out, &err);
    json_decref(doc);
    int code = nrg_output_close(out, path, rc);
    return rc ? nrg_complain(&err, 1) : code;
}

/* Until there is no problem, or nothing left that helps. What one remedy has changed decides about
 * the next, so there is a look after each. 0, or negative without a look. */
static int repair_all(const struct nrg_cli *cli, const char *guise, const char *user,
                      struct look *look, struct nrg_error *err)
{
    struct nrg_repairs repairs = {0};
    bool looked = true;
    int rc = 1;
    while (looked && (rc = nrg_repair(&repairs, &look->diagnosis.problems, user)) > 0) {
        release_look(look);
        looked = !(rc = look_as(cli, guise, look, err));
    }
    if (!rc && !repairs.n)
        printf("there is nothing that a command could do here\n");
    nrg_repairs_release(&repairs);
    if (rc && looked) {
        release_look(look);
        nrg_fail(err, rc, NULL, "out of memory");
    }
    return rc;
}

static int show(const struct nrg_cli *cli, const struct values *v, const struct look *look)
{
    int code = 0;
    if (v->bundle)
        code = write_bundle(cli, look, v->bundle);
    if (!code && v->json)
        code = nrg_print_json(to_json(cli, look), v->json);
    else if (!code && !nrg_is_stdout(v->bundle))
        print_look(look);
    return code ? code : look->diagnosis.problems.n ? 1 : 0;
}

static int run_doctor(struct nrg_cli *cli, void *values, int argc, char **argv)
{
    const struct values *v = values;
    const char *user = v->user ? v->user : getenv("SUDO_USER");
    struct look look;
    struct nrg_error err;
    if (argc)
        return nrg_usage(cli, "takes no arguments, but was given '%s'", argv[0]);
    if ((v->fix || v->user) && geteuid())
        return nrg_usage(cli, "--fix and --user want root: sudo nrg doctor --fix");
    if (v->fix && !nrg_root_is_live(&cli->ctx.root))
        return nrg_usage(cli, "--fix is for this machine, not for a captured one");
    if (v->fix && !user)
        return nrg_usage(cli, "--fix wants to know for whom: --user NAME");
    const char *guise = geteuid() ? NULL : user;
    if (look_as(cli, guise, &look, &err))
        return nrg_complain(&err, 1);
    if (v->fix && repair_all(cli, guise, user, &look, &err))
        return nrg_complain(&err, 1);
    int code = show(cli, v, &look);
    release_look(&look);
    return code;
}

const struct nrg_command nrg_cmd_doctor = {
    .name = "doctor",
    .summary = "what keeps nrg from measuring here, and the remedy",
    .synopsis = "[--json] [--bundle FILE] [--fix [--user NAME]]",
    .about =
        "Looks at sensors, permissions, kernel settings, container, virtual machine, clock,\n"
        "governor, other profilers and disk. Each problem comes with what helps on this system, "
        "the\n"
        "least harmful first. The exit code is 0 when there is none, 1 when there are some.\n"
        "\n"
        "--fix runs remedies as root, for the user who called sudo, after showing each, and looks\n"
        "again. The archive of --bundle holds what was found and a fixed list of small files of\n"
        "/proc, /sys and /etc; names of the host, the user and folders, and long identifiers, are\n"
        "replaced. Look at it before you send it: tar tvf FILE.",
    .examples = "  nrg doctor\n"
                "  sudo nrg doctor --fix\n"
                "  nrg doctor --json | jq '.problems[] | .what, .fix'\n"
                "  nrg doctor --bundle report.tar\n",
    .options = options,
    .values_size = sizeof(struct values),
    .opens_sensors = true,
    .run = run_doctor,
};
