/* See data.h. */
#include "cli/data.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static bool original_features(const struct nrg_data_options *o)
{
    return o->layer_features && !strcmp(o->layer_features, "original");
}

/* -1: no such word. */
static int idle_mode(const struct nrg_data_options *o)
{
    static const char *const words[] = {"apart", "share", "none"};
    for (int i = 0; o->idle && i < 3; i++)
        if (!strcmp(words[i], o->idle))
            return i;
    return o->idle ? -1 : NRG_IDLE_APART;
}

static int check(const struct nrg_cli *cli, const struct nrg_data_options *o, int argc)
{
    const char *name = cli->command->name;
    if (argc < 1) {
        fprintf(stderr, "nrg %s: which data? nrg %s FILE or FOLDER\n", name, name);
        return 2;
    }
    if (o->layer_features && !original_features(o) && strcmp(o->layer_features, "corrected")) {
        fprintf(stderr, "nrg %s: --layer-features is corrected or original, not '%s'\n", name,
                o->layer_features);
        return 2;
    }
    if (idle_mode(o) < 0) {
        fprintf(stderr, "nrg %s: --idle is apart, share or none, not '%s'\n", name, o->idle);
        return 2;
    }
    return 0;
}

static void say_notes(struct nrg_cli *cli, const struct nrg_dataset *set)
{
    for (size_t i = 0; i < set->n_notes; i++) {
        const struct nrg_note *note = &set->notes[i];
        char line[32] = "", more[48] = "";
        if (note->line >= 0)
            snprintf(line, sizeof line, ":%lld", note->line);
        if (note->count > 1)
            snprintf(more, sizeof more, " (%zu times)", note->count);
        nrg_log(&cli->ctx, NRG_WARNING, "%s%s: %s%s", note->where, line, note->text, more);
    }
}

/* Several devices in one file: the user has to say which. */
static int one_device(const struct nrg_dataset *set, struct nrg_error *err)
{
    struct nrg_name_list devices;
    int rc = nrg_dataset_list(set, offsetof(struct nrg_row, device), &devices);
    if (rc)
        return nrg_fail(err, rc, NULL, "out of memory");
    if (devices.n > 1)
        rc = nrg_fail(err, -EINVAL, NULL,
                      "the data are of %zu devices (%s, %s%s): energies of different devices can't "
                      "be mixed",
                      devices.n, devices.names[0], devices.names[1], devices.n > 2 ? ", …" : "");
    nrg_name_list_release(&devices);
    return rc;
}

int nrg_data_read(struct nrg_cli *cli, const struct nrg_data_options *o, int argc, char **argv,
                  bool any_devices, struct nrg_dataset *set)
{
    struct nrg_read_options options = {.device = o->device,
                                       .layers = o->layers,
                                       .original_layers = original_features(o),
                                       .graph = o->graph};
    struct nrg_error err;
    nrg_dataset_init(set);
    int code = check(cli, o, argc), rc = 0;
    if (code)
        return code;
    options.idle = (enum nrg_idle_mode)idle_mode(o);
    for (int i = 0; !rc && i < argc; i++)
        rc = nrg_dataset_read(set, argv[i], &options, &err);
    if (!rc)
        rc = nrg_dataset_finish(set, &err);
    if (!rc && !any_devices)
        rc = one_device(set, &err);
    if (rc)
        return nrg_complain(&err, 1);
    say_notes(cli, set);
    return 0;
}
