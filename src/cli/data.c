/* See data.h. */
#include "cli/data.h"

#include <errno.h>
#include <stddef.h>

#include "base/parse.h"
#include "predict/physical/fit.h"
#include "report/prediction/report.h"

const struct nrg_choice nrg_data_layer_features[] = {
    {"corrected", false, "default"},
    {"original", true, "with the study's errors"},
    {0},
};

const struct nrg_choice nrg_data_idle_rules[] = {
    {"apart", NRG_IDLE_APART, "default"},
    {"share", NRG_IDLE_SHARE, NULL},
    {"none", NRG_IDLE_NONE, NULL},
    {0},
};

const struct nrg_choice nrg_feature_sets[] = {
    {"static", NRG_SET_STATIC, "default: known before anything runs"},
    {"all", NRG_SET_ALL, "with time and GPU energy"},
    {0},
};

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
                                       .original_layers = o->original_layers,
                                       .idle = (enum nrg_idle_mode)o->idle,
                                       .graph = o->graph,
                                       .tasks = o->tasks,
                                       .configs = o->configs.items,
                                       .exclude = o->exclude.items,
                                       .gpus = o->gpus};
    struct nrg_error err;
    nrg_dataset_init(set);
    int rc = 0;
    if (argc < 1)
        return nrg_usage(cli, "which data? nrg %s FILE or FOLDER", cli->command->name);
    for (int i = 0; !rc && i < argc; i++)
        rc = nrg_dataset_read(set, argv[i], &options, &err);
    if (!rc)
        rc = nrg_dataset_choose(set, &options, &err);
    if (!rc)
        rc = nrg_dataset_finish(set, &err);
    if (!rc && !any_devices)
        rc = one_device(set, &err);
    if (rc)
        return nrg_complain(&err, 1);
    say_notes(cli, set);
    return 0;
}

int nrg_data_write(const struct nrg_dataset *set, const char *path)
{
    if (nrg_ends_with(path, ".json"))
        return nrg_print_json_digits(nrg_dataset_json(set), path, 17);
    FILE *out = nrg_output_open(path);
    if (!out)
        return 1;
    nrg_dataset_write_csv(set, out);
    return nrg_output_close(out, path, 0);
}
