/* See common.h. */
#include "cli/common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int nrg_complain(const struct nrg_error *err, int code)
{
    char text[700];
    fprintf(stderr, "nrg: %s\n", nrg_error_text(err, text, sizeof text));
    return code;
}

int nrg_print_json(json_t *doc, const char *path)
{
    bool to_stdout = !strcmp(path, "-");
    FILE *out = doc ? (to_stdout ? stdout : fopen(path, "we")) : NULL;
    int failed = !out || json_dumpf(doc, out, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) ||
                 fputc('\n', out) == EOF || fflush(out);
    int why = errno;
    if (out && !to_stdout && fclose(out))
        failed = 1;
    if (failed)
        fprintf(stderr, "nrg: %s: cannot write JSON: %s\n", to_stdout ? "stdout" : path,
                doc ? strerror(why) : "out of memory");
    json_decref(doc);
    return failed ? 1 : 0;
}

bool nrg_use_colour(FILE *stream)
{
    return isatty(fileno(stream)) && !getenv("NO_COLOR");
}

void nrg_occupy_standard_streams(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}
