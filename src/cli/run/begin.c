/* See begin.h. */
#include "cli/run/begin.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/temp.h"
#include "cli/screen.h"
#include "cli/settings.h"
#include "net/fetch.h"

int nrg_store_note_option(const struct nrg_opt_type *type, void *field, const char *value)
{
    const char *equals = strchr(value, '=');
    bool fits =
        equals && (size_t)(equals - value) < NRG_NOTE_KEY; /* two notes must not become one */
    return fits && equals != value ? nrg_opt_list.store(type, field, value) : -EINVAL;
}

static int make_path(char *path, size_t size)
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &tm);
    const char *dir = "";
    if (access(".", W_OK)) {
        dir = nrg_temp_dir();
        nrg_say("this folder can't be written: the recording goes to %s", dir);
    }
    int n = snprintf(path, size, "%s%snrg-%s-%d.nrg", dir, *dir ? "/" : "", stamp, getpid());
    return n < (int)size ? 0 : -ENAMETOOLONG;
}

int nrg_run_output_path(const char *given, char *path, size_t size)
{
    if (given ? nrg_copy_whole(path, size, given) : make_path(path, size)) {
        nrg_say("%.60s...: the path of the recording is too long", given ? given : nrg_temp_dir());
        return 1;
    }
    return 0;
}

int nrg_run_add_load(struct nrg_list *sensors)
{
    for (size_t i = 0; i < sensors->n; i++)
        if (!strncmp(sensors->items[i], "machine", 7) || !strncmp(sensors->items[i], "replay", 6))
            return 0;
    if (!sensors->n)
        return 0;
    return nrg_opt_list.store(&nrg_opt_list, sensors, "machine");
}

static void write_settings(struct nrg_recorder *recorder, const struct nrg_cli *cli)
{
    static const char about_output[] = " output force json quiet verbose ";
    char key[64], value[4096];
    const struct nrg_settings *settings = cli->settings;
    for (size_t i = 0; i < settings->n; i++) {
        snprintf(key, sizeof key, " %.50s ", settings->used[i].opt->name);
        if (strstr(about_output, key))
            continue;
        snprintf(key, sizeof key, "option.%.50s", settings->used[i].opt->name);
        nrg_fetch_public_url(settings->used[i].value, value, sizeof value);
        nrg_recorder_text(recorder, key, value);
    }
}

void nrg_run_write_notes(struct nrg_recorder *recorder, const struct nrg_cli *cli,
                         const char *command_line, const struct nrg_list *notes)
{
    char clean[1024];
    nrg_copy_clean(clean, sizeof clean, command_line, strlen(command_line));
    nrg_recorder_text(recorder, "command_line", clean);
    write_settings(recorder, cli);
    for (size_t i = 0; i < notes->n; i++) {
        char key[sizeof "note." + NRG_NOTE_KEY];
        const char *note = notes->items[i], *equals = strchr(note, '=');
        snprintf(key, sizeof key, "note.%.*s", (int)(equals - note), note);
        nrg_recorder_text(recorder, key, equals + 1);
    }
}

struct nrg_run nrg_run_begin(struct nrg_recorder *recorder, int64_t id, const char *kind)
{
    struct nrg_run run = {.id = id, .exit_code = -1};
    nrg_copy(run.kind, sizeof run.kind, kind);
    run.begin_ns = nrg_recorder_read_begin(recorder);
    return run;
}

void nrg_run_end(struct nrg_recorder *recorder, struct nrg_run *run)
{
    run->end_ns = nrg_recorder_read_now(recorder);
    nrg_recorder_await_pushed(recorder, run->end_ns);
    nrg_recorder_run(recorder, run);
}
