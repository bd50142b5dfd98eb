/*
 * nrgd: opens what needs a privilege and hands it, read-only, to who may have it (docs/nrgd.md).
 * Started by its socket, it ends by itself when nobody is connected. What it says goes to stderr,
 * which systemd keeps: one line at the start, one when something is wrong, none per client.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include <nrg/nrg.h>

#include "base/clock.h"
#include "base/parse.h"
#include "daemon/guard.h"
#include "daemon/listen.h"
#include "daemon/places.h"
#include "daemon/server.h"

struct settings {
    const char *socket, *root, *group;
    double idle_s;
    bool refuses_others, no_filter;
};

static const char usage[] =
    "usage: nrgd [--socket PATH] [--group NAME] [--others coarse|none] [--idle SECONDS]\n"
    "            [--root FOLDER] [--no-filter]\n"
    "\n"
    "Gives members of a group (nrg) read-only descriptors of the energy counters that only root\n"
    "may open, and everybody else one reading a second in whole joules. systemd starts it by its\n"
    "socket, nrgd.socket; without systemd, --socket makes one.\n"
    "\n"
    "  --socket PATH         listen here instead of on the socket that was handed over\n"
    "  --group NAME          who gets the full view (default nrg)\n"
    "  --others coarse|none  what everybody else gets (default coarse)\n"
    "  --idle SECONDS        end after so long without a connection; 0: never (default 30)\n"
    "  --root FOLDER         a captured /sys and /proc instead of this machine's\n"
    "  --no-filter           leave system calls unfiltered, for debuggers and sanitizers\n"
    "  --version, --help\n"
    "\n"
    "  nrgd --socket /run/nrg/nrgd.sock --idle 0     # in a container, say\n";

static int complain(const struct nrg_error *err)
{
    char text[700];
    fprintf(stderr, "nrgd: %s\n", nrg_error_text(err, text, sizeof text));
    return 1;
}

static int misused(const char *text)
{
    fprintf(stderr, "nrgd: %s (see nrgd --help)\n", text);
    return 2;
}

/* -1: go on; else the exit code. */
static int take_option(struct settings *s, int option)
{
    switch (option) {
    case 's':
        s->socket = optarg;
        return -1;
    case 'g':
        s->group = optarg;
        return -1;
    case 'r':
        s->root = optarg;
        return -1;
    case 'f':
        s->no_filter = true;
        return -1;
    case 'o':
        s->refuses_others = !strcmp(optarg, "none");
        return s->refuses_others || !strcmp(optarg, "coarse")
                   ? -1
                   : misused("--others wants coarse or none");
    case 'i':
        return !nrg_parse_double(optarg, strlen(optarg), &s->idle_s) && s->idle_s >= 0 &&
                       s->idle_s < 1e9
                   ? -1
                   : misused("--idle wants seconds");
    case 'v':
        puts("nrgd " NRG_VERSION);
        return 0;
    case 'h':
        fputs(usage, stdout);
        return 0;
    default:
        return misused("wrong usage");
    }
}

static int parse(struct settings *s, int argc, char **argv)
{
    static const struct option options[] = {{"socket", required_argument, NULL, 's'},
                                            {"group", required_argument, NULL, 'g'},
                                            {"others", required_argument, NULL, 'o'},
                                            {"idle", required_argument, NULL, 'i'},
                                            {"root", required_argument, NULL, 'r'},
                                            {"no-filter", no_argument, NULL, 'f'},
                                            {"version", no_argument, NULL, 'v'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        int code = take_option(s, option);
        if (code >= 0)
            return code;
    }
    return optind < argc ? misused("takes no arguments") : -1;
}

static int watch_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* The limit that holds for descriptors: as high as may be, up to what is of use. */
static size_t raise_descriptors(void)
{
    struct rlimit limit = {0}, raised;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return 256; /* POSIX and Linux have more */
    raised = limit;
    raised.rlim_cur = limit.rlim_max < NRG_PLACES_FDS ? limit.rlim_max : NRG_PLACES_FDS;
    if (raised.rlim_cur > limit.rlim_cur && !setrlimit(RLIMIT_NOFILE, &raised))
        limit = raised;
    return limit.rlim_cur < NRG_PLACES_FDS ? (size_t)limit.rlim_cur : NRG_PLACES_FDS;
}

static void write_line(void *arg, enum nrg_level level, const char *line)
{
    (void)arg;
    if (level >= NRG_WARNING)
        fprintf(stderr, "nrgd: %s\n", line);
}

static int protect(const struct settings *s, struct nrg_error *err)
{
    int rc = nrg_guard_capabilities(err);
    if (!rc && !s->no_filter && (rc = nrg_guard_system_calls(s->root != NULL, err)) == -ENOTSUP)
        rc = 0; /* the unit's filter remains */
    return rc;
}

static int serve(const struct settings *s, const struct nrg_context *ctx)
{
    struct nrg_error err;
    struct nrg_server_options options = {.idle_ns = (int64_t)(s->idle_s * 1e9)};
    options.listener = s->socket ? nrg_listen_at(s->socket, &err) : nrg_listen_inherited(&err);
    if (options.listener < 0)
        return complain(&err);
    options.signals = watch_signals();
    options.max_fds = raise_descriptors();
    nrg_policy_init(&options.policy, s->group, s->refuses_others);
    if (protect(s, &err))
        return complain(&err);
    fprintf(stderr, "nrgd " NRG_VERSION ": the full view is for root%s%s; others: %s\n",
            options.policy.has_group ? " and group " : ", there is no group ", s->group,
            s->refuses_others ? "none" : "one reading a second, in whole joules");
    int rc = nrg_server_run(ctx, &options);
    if (!rc)
        return 0;
    nrg_fail(&err, rc, s->socket, "can't go on: %s", strerror(-rc));
    return complain(&err);
}

int main(int argc, char **argv)
{
    struct settings s = {.group = "nrg", .idle_s = 30};
    struct nrg_context ctx = {.log = write_line};
    struct nrg_error err;
    int code = parse(&s, argc, argv);
    if (code >= 0)
        return code;
    if (nrg_root_init(&ctx.root, s.root, &err))
        return complain(&err);
    code = serve(&s, &ctx);
    nrg_root_release(&ctx.root);
    return code;
}
