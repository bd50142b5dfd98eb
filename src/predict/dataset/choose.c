/*
 * See read.h: which of the rows that were read are meant. A filter that matches nothing is an error
 * that names what there is: a typing error would otherwise look like a result.
 *
 * A model may be named as nrg calls it (row.model) or as the file has it (row.node of a whole
 * model, such as the variant that a leaderboard measured). Variants of one architecture are one
 * model, so that leaving one of them out leaves out all: the others would tell what it uses.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/words.h"
#include "predict/dataset/internal.h"

#define NAMES_SHOWN 12 /* of those that there are: about two lines of a terminal */

static int no_memory(struct nrg_error *err)
{
    return nrg_fail(err, -ENOMEM, NULL, "out of memory");
}

/* "--task: there is no 'gpqs': did you mean 'gpqa'? There are gpqa, …"; returns -EINVAL. */
static int no_such(const struct nrg_dataset *set, size_t member, const char *option,
                   const char *typed, struct nrg_error *err)
{
    struct nrg_guess guess = {.typed = typed};
    struct nrg_name_list list;
    struct nrg_str known = {0};
    if (nrg_dataset_list(set, member, &list))
        return no_memory(err);
    int rc = 0;
    for (size_t i = 0; i < list.n; i++) {
        nrg_guess_offer(&guess, list.names[i]);
        if (!rc && i < NAMES_SHOWN)
            rc = nrg_str_addf(&known, "%s%s", i ? ", " : "", list.names[i]);
    }
    if (!rc)
        nrg_fail(err, -EINVAL, option, "nothing in the data is called '%s'%s%s%s: there are %s%s",
                 typed, guess.best ? ", did you mean '" : "", guess.best ? guess.best : "",
                 guess.best ? "'" : "", known.text ? known.text : "none",
                 list.n > NAMES_SHOWN ? ", …" : "");
    nrg_str_release(&known);
    nrg_name_list_release(&list);
    return rc ? no_memory(err) : -EINVAL;
}

const char *nrg_dataset_model(const struct nrg_dataset *set, const char *name)
{
    for (size_t i = 0; i < set->n; i++) {
        const struct nrg_row *row = &set->rows[i];
        if (!strcasecmp(row->model, name) ||
            (row->level == NRG_NODE_MODEL && !strcasecmp(row->node, name)))
            return row->model;
    }
    return NULL;
}

static int note_name(struct nrg_dataset *set, const char *own, const char *device)
{
    char text[200];
    snprintf(text, sizeof text, "the device is called '%.60s' here, the data call it '%.60s'",
             device, own);
    return nrg_dataset_note(set, "--device", -1, text);
}

/* Rows of the device that is meant; of data of one device, its name. */
static int choose_device(struct nrg_dataset *set, const char *device, bool *keep,
                         struct nrg_error *err)
{
    struct nrg_name_list list;
    size_t meant = 0;
    if (!device)
        return 0;
    if (nrg_dataset_list(set, offsetof(struct nrg_row, device), &list))
        return no_memory(err);
    while (meant < list.n && strcasecmp(list.names[meant], device) != 0)
        meant++;
    const char *name = nrg_dataset_text(set, device, strlen(device));
    int rc = !name ? no_memory(err)
             : meant == list.n && list.n > 1
                 ? no_such(set, offsetof(struct nrg_row, device), "--device", device, err)
                 : 0;
    if (!rc && list.n == 1 && meant)
        rc = note_name(set, list.names[0], device) ? no_memory(err) : 0;
    for (size_t i = 0; !rc && i < set->n; i++) {
        if (list.n == 1)
            set->rows[i].device = name;
        keep[i] &= list.n == 1 || list.of_row[i] == meant;
    }
    nrg_name_list_release(&list);
    return rc;
}

static int exclude_model(struct nrg_dataset *set, const char *name, bool *keep,
                         struct nrg_error *err)
{
    const char *model = nrg_dataset_model(set, name);
    if (!model)
        return no_such(set, offsetof(struct nrg_row, model), "--exclude", name, err);
    for (size_t i = 0; i < set->n; i++)
        keep[i] &= set->rows[i].model != model;
    if (!strcasecmp(model, name))
        return 0;
    char text[200];
    snprintf(text, sizeof text, "'%.60s' is a variant of %.60s: all rows of that are left out",
             name, model);
    return nrg_dataset_note(set, "--exclude", -1, text) ? no_memory(err) : 0;
}

/* Every task of the list must have rows: readers took those alone. */
static int check_tasks(const struct nrg_dataset *set, const char *tasks, struct nrg_error *err)
{
    for (const char *p = tasks; p;) {
        size_t n = strcspn(p, ","), i = 0;
        char task[80];
        nrg_copy_clean(task, sizeof task, p, n);
        while (i < set->n &&
               (set->rows[i].level != NRG_NODE_MODEL || strcmp(set->rows[i].kind, task) != 0))
            i++;
        if (i == set->n)
            return nrg_fail(err, -EINVAL, "--task",
                            "no row that can be used is of the task '%s': nrg dataset lists what "
                            "there is as kinds",
                            task);
        p = p[n] ? p + n + 1 : NULL;
    }
    return 0;
}

/* Every MODEL=FILE must be of a row. */
static int check_configs(const struct nrg_dataset *set, const char *const *configs,
                         struct nrg_error *err)
{
    for (size_t c = 0; configs && configs[c]; c++) {
        const char *equals = strrchr(configs[c], '=');
        char model[200];
        size_t i = 0;
        nrg_copy_clean(model, sizeof model, configs[c], equals ? (size_t)(equals - configs[c]) : 0);
        while (i < set->n &&
               (set->rows[i].level != NRG_NODE_MODEL ||
                (!strstr(set->rows[i].node, model) && !strstr(set->rows[i].model, model))))
            i++;
        if (i == set->n)
            return no_such(set, offsetof(struct nrg_row, model), "--config", model, err);
    }
    return 0;
}

/* What only recordings have a use for. */
static int check_recordings(const struct nrg_dataset *set, const struct nrg_read_options *options,
                            struct nrg_error *err)
{
    const char *option = options->graph ? "--graph" : options->gpus > 0 ? "--gpus" : NULL;
    return option && !set->recordings
               ? nrg_fail(err, -EINVAL, option, "goes with recordings, and the data hold none")
               : 0;
}

int nrg_dataset_choose(struct nrg_dataset *set, const struct nrg_read_options *options,
                       struct nrg_error *err)
{
    const char *const *exclude = options->exclude;
    bool *keep = nrg_calloc(set->n + 1, sizeof *keep);
    if (!keep)
        return no_memory(err);
    for (size_t i = 0; i < set->n; i++)
        keep[i] = true;
    int rc = check_tasks(set, options->tasks, err);
    if (!rc)
        rc = check_recordings(set, options, err);
    if (!rc && set->n)
        rc = choose_device(set, options->device, keep, err);
    if (!rc && set->n)
        rc = check_configs(set, options->configs, err);
    for (size_t i = 0; !rc && set->n && exclude && exclude[i]; i++)
        rc = exclude_model(set, exclude[i], keep, err);
    size_t before = set->n;
    if (!rc && nrg_dataset_keep(set, keep))
        rc = no_memory(err);
    if (!rc && before && !set->n)
        rc = nrg_fail(err, -ENODATA, "--exclude", "leaves nothing of the data");
    free(keep);
    return rc;
}
