/* See output.h. */
#include "cli/output.h"

#include <errno.h>
#include <libgen.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "base/json/memory.h"
#include "base/mem.h"
#include "base/output_file.h"
#include "base/parse.h"
#include "cli/internal.h"
#include "report/fit.h"

#define PIPE_COLUMNS 80

static const char standard_output[] = "-";

bool nrg_is_stdout(const char *path)
{
    return path && !strcmp(path, standard_output);
}

/* Once: what stdout could not take is forgotten, so that the end does not complain again. */
static int say_cannot_write(const char *path, int error)
{
    bool is_stdout = nrg_is_stdout(path);
    nrg_say("%s: cannot write: %s", is_stdout ? "stdout" : path,
            error ? strerror(error) : "an earlier write failed");
    if (is_stdout) {
        __fpurge(stdout);
        clearerr(stdout);
    }
    return 1;
}

int nrg_output_finish(int code)
{
    errno = 0;
    bool failed = fflush(stdout) || ferror(stdout);
    return failed && !code ? say_cannot_write(standard_output, errno) : code;
}

FILE *nrg_output_open(const char *path)
{
    struct nrg_error err;
    FILE *out = nrg_is_stdout(path) ? stdout : nrg_output_file(path, true, &err);
    if (!out)
        nrg_complain(&err, 1);
    return out;
}

int nrg_output_close(FILE *out, const char *path, int rc)
{
    errno = 0;
    int failed = fflush(out) || ferror(out), error = errno;
    if (out != stdout && fclose(out)) {
        failed = 1;
        error = errno;
    }
    if (rc < 0 && !error)
        error = -rc;
    return rc || failed ? say_cannot_write(path, error ? error : EIO) : 0;
}

int nrg_output_check(const char *path)
{
    char folder[4096];
    struct stat st;
    if (!path || nrg_is_stdout(path))
        return 0;
    if (!stat(path, &st) && S_ISDIR(st.st_mode))
        return say_cannot_write(path, EISDIR);
    if (nrg_is_database(path)) {
        nrg_say("%s: is a recording, which is not overwritten: give another name", path);
        return 1;
    }
    if (!access(path, W_OK))
        return 0;
    int error = errno;
    nrg_copy(folder, sizeof folder, path);
    if (error == ENOENT && !access(dirname(folder), W_OK))
        return 0;
    return say_cannot_write(path, error);
}

int nrg_print_json_digits(json_t *doc, const char *path, size_t digits)
{
    doc = nrg_json_whole(doc);
    FILE *out = doc ? nrg_output_open(path) : NULL;
    int code = 1;
    if (!doc)
        say_cannot_write(path, ENOMEM);
    else if (out) {
        int rc = json_dumpf(doc, out, JSON_INDENT(2) | JSON_REAL_PRECISION(digits)) ? -EIO : 0;
        if (nrg_memory_is_lacking())
            rc = -ENOMEM;
        fputc('\n', out);
        code = nrg_output_close(out, path, rc);
    }
    json_decref(doc);
    return code;
}

int nrg_print_json(json_t *doc, const char *path)
{
    return nrg_print_json_digits(doc, path, 12);
}

bool nrg_use_colour(FILE *stream)
{
    return isatty(nrg_screen_fd(stream)) && !getenv("NO_COLOR");
}

unsigned nrg_terminal_width(FILE *stream)
{
    struct winsize size;
    uint64_t given = 0;
    const char *columns = getenv("COLUMNS");
    if (columns && !nrg_parse_u64(columns, strlen(columns), &given) && given >= 40 &&
        given <= 10000)
        return (unsigned)given;
    if (!isatty(nrg_screen_fd(stream)) || ioctl(nrg_screen_fd(stream), TIOCGWINSZ, &size) ||
        size.ws_col < 40)
        return 0;
    return size.ws_col;
}

bool nrg_use_utf8(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < 3; i++) {
        const char *value = getenv(variables[i]);
        if (value && value[0])
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

FILE *nrg_fitted_begin(struct nrg_fitted *text, FILE *to)
{
    *text = (struct nrg_fitted){.to = to};
    text->made = open_memstream(&text->bytes, &text->len);
    return text->made;
}

/* Files and pipes are read by programs, too: there sentences stay on their lines. */
int nrg_fitted_end(struct nrg_fitted *text)
{
    unsigned width = nrg_terminal_width(text->to);
    const struct nrg_fit fit = {.width = width             ? width
                                         : text->any_width ? 0
                                                           : PIPE_COLUMNS,
                                .wrap = width > 0,
                                .unicode = nrg_use_utf8()};
    bool failed = !text->made || ferror(text->made);
    if (text->made && (fclose(text->made) || !text->bytes))
        failed = true;
    if (!failed && nrg_fit_print(text->to, text->bytes, text->len, &fit))
        failed = true;
    if (text->made)
        free(text->bytes);
    return failed || nrg_memory_is_lacking() ? nrg_out_of_memory() : 0;
}

void nrg_default_output(const char *path, const char *suffix, char *out, size_t size)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    const char *slash = memrchr(path, '/', len);
    const char *name = slash && slash + 1 < path + len ? slash + 1 : path;
    size_t n = (size_t)(path + len - name);
    if (n > 3 && !memcmp(name + n - 3, ".gz", 3))
        n -= 3;
    const char *dot = memrchr(name, '.', n);
    if (dot && dot > name)
        n = (size_t)(dot - name);
    snprintf(out, size, "%.*s%s", (int)n, name, suffix);
}
