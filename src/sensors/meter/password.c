/* See password.h. */
#include "sensors/meter/password.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int nrg_meter_password(struct nrg_uri *uri, const char *user, char *password, size_t size,
                       struct nrg_error *err)
{
    const char *path = nrg_uri_text(uri, "password-file");
    password[0] = '\0';
    if (!path)
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, password, size - 1);
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return nrg_fail(err, -error, path, "password-file=: %s", strerror(error));
    password[n] = '\0';
    password[strcspn(password, "\r\n")] = '\0';
    if (!user[0])
        return nrg_fail(err, -EINVAL, uri->text,
                        "password-file= wants a user too: %s://USER@host/...", uri->scheme);
    return 0;
}
