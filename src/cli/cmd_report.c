/* nrg report: the table of a run again, from its recording alone. */
#include "cli/show.h"

struct values {
    struct nrg_show_options show;
};

static const struct nrg_opt options[] = {
    NRG_SHOW_OPTIONS(struct values, show),
    {0},
};

static int run_report(struct nrg_cli *cli, void *v, int argc, char **argv)
{
    struct values *values = v;
    struct nrg_recording *recording;
    struct nrg_error err;
    if (argc != 1)
        return nrg_usage(cli, "wants one recording: nrg report FILE.nrg");
    if (!nrg_show_fits(&values->show))
        return nrg_usage(cli, "--print and --json both want stdout: give --json=FILE");
    if (nrg_recording_open(argv[0], &recording, &err))
        return nrg_complain(&err, 1);
    /* JSON or a number on stdout is the only output there, so that it can be piped. */
    bool text = !nrg_is_stdout(values->show.json) && !values->show.print && !cli->quiet;
    int code = nrg_show(recording, &values->show, text ? stdout : NULL);
    nrg_recording_close(recording);
    return code;
}

const struct nrg_command nrg_cmd_report = {
    .name = "report",
    .summary = "the results of a recording",
    .synopsis = "[OPTIONS] FILE.nrg",
    .about =
        "Prints what nrg run printed at the end of the run, computed again from the recording.\n"
        "A recording whose recorder was killed is read up to its last second.",
    .examples =
        "  nrg report run.nrg\n"
        "  nrg report --json run.nrg | jq .program_j\n"
        "  nrg report --print energy run.nrg\n"
        "  nrg report --split busy-time run.nrg   # idle power charged to the busy processes\n",
    .options = options,
    .values_size = sizeof(struct values),
    .run = run_report,
};
