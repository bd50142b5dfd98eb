/* See common.h. */
#include "cli/common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"

int nrg_complain(const struct nrg_error *err, int code)
{
    char text[700];
    fprintf(stderr, "nrg: %s\n", nrg_error_text(err, text, sizeof text));
    return code;
}

int nrg_print_json_digits(json_t *doc, const char *path, size_t digits)
{
    bool to_stdout = !strcmp(path, "-");
    FILE *out = doc ? (to_stdout ? stdout : fopen(path, "we")) : NULL;
    int failed = !out || json_dumpf(doc, out, JSON_INDENT(2) | JSON_REAL_PRECISION(digits)) ||
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

int nrg_print_json(json_t *doc, const char *path)
{
    return nrg_print_json_digits(doc, path, 12);
}

bool nrg_use_colour(FILE *stream)
{
    return isatty(fileno(stream)) && !getenv("NO_COLOR");
}

int nrg_parse_zone(const char *text, int64_t *offset_ns)
{
    const char *p = text + (*text == '+' || *text == '-');
    size_t digits = strspn(p, "0123456789"), hour_digits = digits > 2 ? digits - 2 : digits;
    const char *rest = p + digits;
    int64_t hours = 0, minutes = 0;
    bool colon = *rest == ':';
    const char *minute_text = colon ? rest + 1 : p + hour_digits;
    if (nrg_parse_i64(p, colon ? digits : hour_digits, &hours) || digits > 4)
        return -EINVAL;
    if ((colon || digits > 2) && nrg_parse_i64(minute_text, strlen(minute_text), &minutes))
        return -EINVAL;
    if ((!colon && *rest) || hours > 14 || hours < 0 || minutes < 0 || minutes > 59)
        return -EINVAL;
    *offset_ns = (hours * 60 + minutes) * 60 * INT64_C(1000000000) * (*text == '-' ? -1 : 1);
    return 0;
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
