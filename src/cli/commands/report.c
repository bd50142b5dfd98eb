/* nrg report: the table of a run again, from its recording alone; or the page, or a picture. */
#include "cli/page/picture.h"
#include "cli/show.h"

struct values {
    struct nrg_page_options page;
    const char *html, *output;
    int svg;
};

static const struct nrg_opt options[] = {
    NRG_SHOW_OPTIONS(struct values, page.show),
    {"html", 0, NRG_OPT_STRING, "FILE",
     "a page to look at and to send on, one file that needs no network; with several recordings, "
     "all of them; - is stdout",
     offsetof(struct values, html)},
    {"redact", 0, NRG_OPT_FLAG, NULL,
     "leave arguments, paths, names of hosts and users out of the page",
     offsetof(struct values, page.redact)},
    {"svg", 0, NRG_OPT_CHOICE(nrg_picture_choices), "PICTURE",
     "a picture instead: ", offsetof(struct values, svg)},
    {"output", 'o', NRG_OPT_STRING, "FILE", "of --svg; default: stdout",
     offsetof(struct values, output)},
    {"profile", 0, NRG_OPT_STRING, "FILE",
     "what the machine charges per MAC and byte: a profile of nrg train, which is also held "
     "against the run, or what nrg calibrate --json wrote",
     offsetof(struct values, page.profile)},
    {0},
};

static int write_page(const struct nrg_cli *cli, const struct values *v, int argc, char **argv)
{
    if (argc < 1)
        return nrg_usage(cli, "wants a recording: nrg report FILE.nrg --html FILE.html");
    if (v->page.show.json || v->page.show.print)
        return nrg_usage(cli, "--html does not go with --json and --print");
    int code = nrg_page_write(cli, &v->page, argv, argc, v->html);
    if (!code && !cli->quiet && !nrg_is_stdout(v->html))
        fprintf(stderr, "nrg: wrote %s\n", v->html);
    return code;
}

static int write_picture(const struct nrg_cli *cli, const struct values *v, int argc, char **argv)
{
    const char *path = v->output ? v->output : "-";
    if (argc != 1)
        return nrg_usage(cli, "wants one recording: nrg report FILE.nrg --svg flame -o FILE.svg");
    if (v->page.show.json || v->page.show.print || v->html)
        return nrg_usage(cli, "--svg does not go with --html, --json and --print");
    int code = nrg_picture_write(cli, &v->page, (enum nrg_picture_what)v->svg, argv[0], path);
    if (!code && !cli->quiet && !nrg_is_stdout(path))
        fprintf(stderr, "nrg: wrote %s\n", path);
    return code;
}

static int run_report(struct nrg_cli *cli, void *v, int argc, char **argv)
{
    struct values *values = v;
    const struct nrg_show_options *show = &values->page.show;
    struct nrg_recording *recording;
    struct nrg_error err;
    if (values->svg)
        return write_picture(cli, values, argc, argv);
    if (values->output)
        return nrg_usage(cli, "--output is for --svg");
    if (values->html)
        return write_page(cli, values, argc, argv);
    if (values->page.redact)
        return nrg_usage(cli, "--redact is for --html");
    if (values->page.profile)
        return nrg_usage(cli, "--profile is for --html and --svg");
    if (argc != 1)
        return nrg_usage(cli, "wants one recording: nrg report FILE.nrg");
    if (!nrg_show_fits(show))
        return nrg_usage(cli, "--print and --json both want stdout: give --json=FILE");
    if (nrg_recording_open(argv[0], &recording, &err))
        return nrg_complain(&err, 1);
    /* JSON or a number on stdout is the only output there, so that it can be piped. */
    bool text = !nrg_is_stdout(show->json) && !show->print && !cli->quiet;
    int code = nrg_show(recording, show, text ? stdout : NULL);
    nrg_recording_close(recording);
    return code;
}

const struct nrg_command nrg_cmd_report = {
    .name = "report",
    .summary = "the results of a recording",
    .synopsis = "[OPTIONS] FILE.nrg [FILE.nrg... --html FILE.html]",
    .about =
        "Prints what nrg run printed at the end of the run, computed again from the recording.\n"
        "A recording whose recorder was killed is read up to its last second.\n"
        "\n"
        "With --html it writes a page instead: power over time, where the joules went, and the\n"
        "joules of any range that is selected. It is one file, opens from disk and asks the\n"
        "network for nothing. With --svg it writes one picture, for a paper or for CI.",
    .examples =
        "  nrg report run.nrg\n"
        "  nrg report run.nrg --html run.html\n"
        "  nrg report run.nrg --svg flame -o flame.svg\n"
        "  nrg report --json run.nrg | jq .program_j\n"
        "  nrg report --print energy run.nrg\n"
        "  nrg report --split busy-time run.nrg   # idle power charged to the busy processes\n",
    .options = options,
    .values_size = sizeof(struct values),
    .run = run_report,
};
