/* See password.h. */
#include "sensors/meter/password.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/secret.h"

/* Room for the longest, its line's end, and one byte more to see that it is longer. */
#define MOST_BYTES 512

int nrg_meter_user(const struct nrg_uri *uri, const char *at, size_t len, char *user, size_t size,
                   struct nrg_error *err)
{
    const char *end = memrchr(at, '@', len);
    size_t n = end ? (size_t)(end - at) : 0;
    user[0] = '\0';
    if (nrg_has_password(uri->given) || memchr(at, ':', n))
        return nrg_fail(err, -EINVAL, uri->scheme,
                        "a password does not belong in the URI: password-file= names its file");
    int rc = nrg_uri_part(uri, "user", at, n, user, size, err);
    return rc ? rc : end ? (int)n + 1 : 0;
}

/* The first line of a file into `line`, "" when it is empty. Its length, or a negative errno. */
static ssize_t read_line(const char *path, char *line, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, line, size - 1);
    int error = errno;
    if (fd >= 0)
        close(fd);
    line[n < 0 ? 0 : n] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    return n < 0 ? -error : (ssize_t)strlen(line);
}

int nrg_meter_password(struct nrg_uri *uri, const char *user, char *password, size_t size,
                       struct nrg_error *err)
{
    const char *path = nrg_uri_text(uri, "password-file");
    char line[MOST_BYTES];
    password[0] = '\0';
    if (!path)
        return 0;
    ssize_t n = read_line(path, line, sizeof line);
    if (n > 0 && (size_t)n < size)
        memcpy(password, line, (size_t)n + 1);
    explicit_bzero(line, sizeof line);
    if (n < 0)
        return nrg_fail(err, (int)n, path, "password-file=: %s", strerror((int)-n));
    if (n == 0)
        return nrg_fail(err, -EINVAL, path, "password-file=: its first line is empty");
    if ((size_t)n >= size)
        return nrg_fail(err, -EINVAL, path,
                        "password-file=: its first line has more than %zu bytes", size - 1);
    if (!user[0])
        return nrg_fail(err, -EINVAL, uri->text,
                        "password-file= wants a user too: %s://USER@host/...", uri->scheme);
    return 0;
}
