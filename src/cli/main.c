/* The program: finds the command in the table, parses its options, runs it. See cli.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/memory.h"
#include "base/mem.h"
#include "cli/internal.h"
#include "cli/privilege.h"
#include "cli/settings.h"
#include "record/read/replay.h"

/* One line each, so that branches that add one do not conflict. */
/* clang-format off */
const struct nrg_command *const nrg_commands[] = {
    &nrg_cmd_sensors,
    &nrg_cmd_doctor,
    &nrg_cmd_run,
    &nrg_cmd_meter,
    &nrg_cmd_report,
    &nrg_cmd_view,
    &nrg_cmd_compare,
    &nrg_cmd_attribute,
    &nrg_cmd_export,
    &nrg_cmd_import,
    &nrg_cmd_graph,
    &nrg_cmd_predict,
    &nrg_cmd_train,
    &nrg_cmd_evaluate,
    &nrg_cmd_calibrate,
    &nrg_cmd_dataset,
    &nrg_cmd_profile,
    &nrg_cmd_llm,
    NULL,
};
/* clang-format on */

static void print_log_line(void *arg, enum nrg_level level, const char *line)
{
    const struct nrg_cli *cli = arg;
    if (level >= NRG_ERROR || (!cli->quiet && (level >= NRG_INFO || cli->verbose)))
        nrg_say("%s", line);
}

static int run_command(struct nrg_cli *cli, int argc, char **argv)
{
    struct nrg_error err;
    void *values = calloc(1, cli->command->values_size + 1);
    int first = values ? nrg_options_parse(cli, values, argc, argv) : -ENOMEM, code = 2;
    if ((first == -EBADMSG || first == -ENOMEM) && cli->command->not_started_code)
        code = cli->command->not_started_code;
    if (first == -ENOMEM)
        nrg_out_of_memory();
    if (first >= 0 && cli->help) {
        nrg_help_command(cli->command);
        code = 0;
    } else if (first >= 0) {
        const char *root = cli->root ? cli->root : getenv("NRG_ROOT");
        cli->ctx.log_arg = cli;
        if (nrg_root_init(&cli->ctx.root, root, &err))
            code = nrg_complain(&err, 2);
        else
            code = cli->command->run(cli, values, argc - first, argv + first);
        /* The net below everything that drops an error; a measured command's code is its own. */
        if (!code && nrg_memory_is_lacking() && !cli->ran_command)
            code = nrg_out_of_memory();
        nrg_root_release(&cli->ctx.root);
    }
    if (values)
        nrg_options_release(cli->command, values);
    free(values);
    nrg_settings_release(cli->settings);
    return code;
}

static int dispatch(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "help";
    if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h"))
        return nrg_output_finish(nrg_help_generate(argc - 1, argv + 1));
    if (!strcmp(name, "--version") || !strcmp(name, "version"))
        return nrg_output_finish(nrg_print_version(argc - 2, argv + 2));
    struct nrg_settings settings = {0};
    struct nrg_cli cli = {
        .settings = &settings,
        .command = nrg_find_command(name),
        .ctx = {.log = print_log_line, .open_recording = nrg_replay_recording_open}};
    if (!cli.command)
        return 2;
    if (!cli.command->opens_sensors)
        nrg_privilege_drop();
    int code = run_command(&cli, argc - 1, argv + 1);
    /* The exit code of a command that was measured is the command's own. */
    int written = nrg_output_finish(cli.ran_command ? 0 : code);
    return cli.ran_command ? code : written;
}

int main(int argc, char **argv)
{
    nrg_occupy_standard_streams();
    nrg_screen_guard();
    nrg_json_watch_memory();
    nrg_survive_file_limit();
    return dispatch(argc, argv);
}
