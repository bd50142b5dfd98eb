/* See settings.h. */
#include "cli/settings.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "cli/internal.h"

const char *nrg_settings_folder(char *buf, size_t size)
{
    const char *given = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (given && *given == '/')
        return given;
    if (!home || !*home || snprintf(buf, size, "%s/.config", home) >= (int)size)
        return NULL;
    return buf;
}

/* The option that an entry's name means for a command; NULL: none of its options. */
static const struct nrg_opt *find_option(const struct nrg_opt *opts, const char *name)
{
    for (; opts && opts->name; opts++)
        if (!strcmp(opts->name, name))
            return opts;
    return NULL;
}

/* "run.rate" for the command run is "rate"; NULL: the entry is for another command. */
static const char *name_for(const struct nrg_command *command, const char *name)
{
    const char *dot = strchr(name, '.');
    size_t len = strlen(command->name);
    if (!dot)
        return name;
    return (size_t)(dot - name) == len && !strncmp(name, command->name, len) ? dot + 1 : NULL;
}

/* Options that every command has: help is no setting, and a root would be another machine's. */
static const struct nrg_opt *find_common(const char *name)
{
    if (!strcmp(name, "help") || !strcmp(name, "root"))
        return NULL;
    return find_option(nrg_common_options, name);
}

/* Guesses after a "run." are of that command's options. */
static bool is_known(const char *name, struct nrg_guess *guess)
{
    bool known = find_common(name) != NULL;
    for (size_t i = 0; nrg_commands[i] && !known; i++) {
        const char *own = name_for(nrg_commands[i], name);
        known = own && find_option(nrg_commands[i]->options, own);
        if (own)
            guess->typed = own;
        for (const struct nrg_opt *o = nrg_commands[i]->options; own && o && o->name; o++)
            nrg_guess_offer(guess, o->name);
    }
    return known;
}

static int say_unknown(const struct nrg_meter_entry *entry, const struct nrg_guess *guess)
{
    if (guess->best)
        nrg_say("%s: there is no option '%s': did you mean '%s'?", entry->where, entry->name,
                guess->best);
    else
        nrg_say("%s: '%s' is not a setting: meter, layout NAME, covers RAIL, sensor-profile "
                "and the names of options are (COMMAND.OPTION for one command)",
                entry->where, entry->name);
    return -EINVAL;
}

/* 1: yes, 0: no, negative: neither. */
static int yes_or_no(const char *text)
{
    static const char *const words[] = {"no", "yes", "off", "on", "false", "true", "0", "1"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i], text))
            return i % 2;
    return -EINVAL;
}

/* `json = yes` is --json without its value; `json = no` leaves the default. */
static int store_value(const struct nrg_opt *opt, void *field, const char *text)
{
    int yes = yes_or_no(text);
    if (opt->type->takes == NRG_TAKES_NOTHING && yes >= 0)
        *(bool *)field = yes;
    if (opt->type->takes == NRG_TAKES_NOTHING)
        return yes < 0 ? yes : 0;
    if (opt->type->takes == NRG_TAKES_OPTIONAL && yes >= 0)
        return yes ? opt->type->store(opt->type, field, NULL) : 0;
    return opt->type->store(opt->type, field, text);
}

static int store_entry(struct nrg_cli *cli, void *values, const struct nrg_meter_entry *entry)
{
    char words[256];
    const char *name = name_for(cli->command, entry->name);
    const struct nrg_opt *opt = name ? find_option(cli->command->options, name) : NULL;
    char *base = values;
    if (!opt && (opt = find_common(entry->name)))
        base = (char *)cli;
    if (!opt)
        return 0; /* of another command */
    int rc = store_value(opt, base + opt->offset, entry->text);
    if (!rc)
        nrg_settings_given(cli->settings, opt, entry->text);
    if (!rc || rc == -ENOMEM)
        return rc;
    nrg_say("%s: %s wants %s, not '%s'", entry->where, entry->name,
            nrg_option_wants(opt, words, sizeof words), entry->text);
    return -EINVAL;
}

int nrg_settings_apply(struct nrg_cli *cli, void *values)
{
    char folder[PATH_MAX];
    struct nrg_error err;
    struct nrg_meter_config *config = &cli->settings->config;
    if (nrg_meter_config_read(config, nrg_settings_folder(folder, sizeof folder), &err)) {
        nrg_complain(&err, 2);
        return -EBADMSG;
    }
    int rc = 0;
    /* The user's file is read first: backwards, so that it has the last word. */
    for (size_t i = config->n_options; !rc && i-- > 0;) {
        struct nrg_guess guess = {.typed = config->options[i].name};
        rc = is_known(config->options[i].name, &guess)
                 ? store_entry(cli, values, &config->options[i])
                 : say_unknown(&config->options[i], &guess);
    }
    return rc ? -EBADMSG : 0;
}

void nrg_settings_given(struct nrg_settings *settings, const struct nrg_opt *opt, const char *value)
{
    size_t i = 0;
    if (opt->type->is_list)
        return;
    while (i < settings->n && settings->used[i].opt != opt)
        i++;
    if (i == NRG_SETTINGS_USED)
        return;
    settings->n += i == settings->n;
    settings->used[i] = (struct nrg_setting){opt, value ? value : "yes"};
}

void nrg_settings_release(struct nrg_settings *settings)
{
    nrg_meter_config_release(&settings->config);
}
