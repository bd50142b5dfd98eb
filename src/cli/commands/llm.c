/* nrg llm: joules of requests to a language model. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "cli/llm/actions.h"
#include "cli/run/begin.h"

#define MOST_GATHER_NS (50 * NRG_NS_PER_MS) /* a slot, the shortest that is looked at */

static const struct nrg_llm_values defaults = {.gather_ns = 20 * NRG_NS_PER_MS};

static int store_gather(const struct nrg_opt_type *type, void *field, const char *value)
{
    int64_t *gather_ns = field;
    (void)type;
    int rc = nrg_parse_duration_ns(value, gather_ns);
    return rc ? rc : *gather_ns <= MOST_GATHER_NS ? 0 : -ERANGE;
}

static const struct nrg_opt options[] = {
    {"upstream", 'u', NRG_OPT_STRING, "URL", "proxy: the server, http://HOST:PORT or https://HOST",
     offsetof(struct nrg_llm_values, upstream)},
    {"listen", 'l', NRG_OPT_STRING, "ADDRESS:PORT",
     "proxy: where clients connect, 127.0.0.1:8081 unless given; port 0: any",
     offsetof(struct nrg_llm_values, listen)},
    {"header", 0, NRG_OPT_FLAG, NULL,
     "proxy: x-nrg-joules in every answer; else where a request has that field",
     offsetof(struct nrg_llm_values, header)},
    {"ask-usage", 0, NRG_OPT_FLAG, NULL,
     "proxy: asks for the usage of streams whose clients don't, and takes it out of the answers",
     offsetof(struct nrg_llm_values, ask_usage)},
    {"output", 'o', NRG_OPT_STRING, "FILE", "proxy: the recording (nrg-DATE-TIME-PID.nrg)",
     offsetof(struct nrg_llm_values, output)},
    {"force", 'f', NRG_OPT_FLAG, NULL, "proxy: overwrite the recording",
     offsetof(struct nrg_llm_values, force)},
    {"rate", 'r', NRG_OPT_RATE, "RATE", "proxy: readings per second, 10Hz unless given",
     offsetof(struct nrg_llm_values, rate_hz)},
    {"baseline", 'b', NRG_OPT_DURATION, "TIME",
     "proxy: measure the machine without requests for TIME before",
     offsetof(struct nrg_llm_values, baseline_ns)},
    {"for", 't', NRG_OPT_DURATION, "TIME", "proxy: stop after TIME",
     offsetof(struct nrg_llm_values, for_ns)},
    {"pid", 'p', NRG_OPT_PIDS, "PID", "proxy: also record the server's process and descendants",
     offsetof(struct nrg_llm_values, given)},
    {"connections", 0, NRG_OPT_COUNT_IN(1, 16384, "a count from 1 to 16384"), "N",
     "proxy: clients at a time, 1024 unless given", offsetof(struct nrg_llm_values, connections)},
    {"gather", 0, NRG_OPT_OWN(store_gather, "0, or a duration up to 50ms"), "TIME",
     "proxy: with 8 streams or more, quick texts after the first wait up to TIME, 20ms unless "
     "given, for others: less CPU time; 0: none waits",
     offsetof(struct nrg_llm_values, gather_ns)},
    {"allow-host", 0, NRG_OPT_LIST, "NAME",
     "proxy: a name that clients may call it by, or the origin of a page in a browser; may be "
     "repeated; '*': any",
     offsetof(struct nrg_llm_values, allowed)},
    {"note", 0, NRG_OPT_NOTES, "KEY=VALUE", "proxy: keep a note in the recording; may be repeated",
     offsetof(struct nrg_llm_values, notes)},
    {"sensor", 's', NRG_OPT_LIST, "DRIVER[:ARG]",
     "proxy: only these drivers, and the machine's load; may be repeated",
     offsetof(struct nrg_llm_values, sensors)},
    NRG_DESK_OPTIONS(struct nrg_llm_values, desk),
    {"cpu-watts", 0, NRG_OPT_WATTS, "IDLE:FULL", "this machine's power, for the estimate",
     offsetof(struct nrg_llm_values, cpu_watts)},
    {"requests", 'n', NRG_OPT_COUNT, "N", "how many requests the table lists, 20 unless given",
     offsetof(struct nrg_llm_values, requests)},
    {"json", 'j', NRG_OPT_FILE, "FILE", "all results as JSON, to stdout or FILE",
     offsetof(struct nrg_llm_values, json)},
    {0},
};

static int run_llm(struct nrg_cli *cli, void *v, int argc, char **argv)
{
    struct nrg_llm_values *values = v;
    int code = 2;
    if (argc == 1 && !strcmp(argv[0], "proxy"))
        code = nrg_llm_cmd_proxy(cli, values);
    else if (argc == 2 && !strcmp(argv[0], "report"))
        code = nrg_llm_cmd_report(cli, values, argv[1]);
    else
        nrg_usage(cli, "wants proxy --upstream URL, or report FILE.nrg");
    nrg_desk_release(&values->desk);
    return code;
}

const struct nrg_command nrg_cmd_llm = {
    .name = "llm",
    .summary = "joules of requests to a language model's server",
    .synopsis = "proxy --upstream URL [OPTIONS] | report [OPTIONS] FILE.nrg",
    .about =
        "proxy passes HTTP requests on to a server with an OpenAI-compatible, Anthropic or Ollama\n"
        "API, and records the machine meanwhile: when requests begin, give their first text and\n"
        "end, and what tokens they used. Point clients at it instead of the server; it must run on "
        "the\n"
        "server's machine. Ctrl-C ends it: requests that run are waited for, after a second "
        "Ctrl-C\n"
        "they are not; then the joules of each request and model are printed, which with the idle\n"
        "machine and what belongs to no request add up to the machine's. Prompts, answers, keys\n"
        "and query strings are never kept.\n\n"
        "report shows the same from the recording. docs/llm-requests.md has the rules.",
    .examples = "  nrg llm proxy --upstream http://127.0.0.1:8000 --listen 127.0.0.1:8081\n"
                "  nrg llm proxy --upstream http://127.0.0.1:11434 --baseline 10s -o ollama.nrg\n"
                "  nrg llm proxy --upstream https://llm.example.org --header\n"
                "  nrg llm report ollama.nrg\n"
                "  nrg llm report --json ollama.nrg | jq '.requests[].energy_j'\n",
    .actions = "proxy report",
    .options = options,
    .values_size = sizeof(struct nrg_llm_values),
    .defaults = &defaults,
    .opens_sensors = true,
    .run = run_llm,
};
