/* See internal.h. */
#include "cli/internal.h"

#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/parse.h"
#include "cli/stop.h"
#include "import/log.h"
#include "record/read/recording.h"

int nrg_complain(const struct nrg_error *err, int code)
{
    char text[700];
    nrg_say("%s", nrg_error_text(err, text, sizeof text));
    return code;
}

int nrg_usage(const struct nrg_cli *cli, const char *format, ...)
{
    char who[64];
    va_list args;
    snprintf(who, sizeof who, "nrg %s", cli->command->name);
    va_start(args, format);
    nrg_say_as(who, format, args);
    va_end(args);
    return 2;
}

int nrg_check_recording(const struct nrg_recording *recording)
{
    struct nrg_error err;
    if (nrg_recording_check(recording, &err))
        return nrg_complain(&err, 1);
    if (nrg_recording_damage(recording))
        nrg_say("%s: is damaged: what could not be read is left out",
                nrg_recording_path(recording));
    return 0;
}

int nrg_out_of_memory(void)
{
    nrg_say("out of memory");
    return 1;
}

int nrg_read_idle_power(const struct nrg_cli *cli, const char *text, double *idle_w)
{
    struct nrg_error err;
    *idle_w = NAN;
    if (!text)
        return 0;
    if (nrg_parse_double(text, strlen(text), idle_w))
        return nrg_import_idle_power(text, idle_w, &err) ? nrg_complain(&err, 1) : 0;
    return *idle_w >= 0 ? 0 : nrg_usage(cli, "--idle-power wants watts or a file, not '%s'", text);
}

/* A read from a closed stdin and a write to a closed stdout fail, as they should. */
void nrg_occupy_standard_streams(void)
{
    static const int modes[] = {O_WRONLY, O_RDONLY, O_RDONLY};
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd] | O_CLOEXEC) < 0)
            return;
}

static void on_file_limit(int signal)
{
}

void nrg_survive_file_limit(void)
{
    const struct sigaction action = {.sa_handler = on_file_limit, .sa_flags = SA_RESTART};
    nrg_set_signals(&(const int){SIGXFSZ}, 1, &action);
}
