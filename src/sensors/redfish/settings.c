/* See settings.h. */
#include "sensors/redfish/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/fetch.h"
#include "sensors/meter/password.h"

#define PERIOD_NS NRG_NS_PER_S

static int read_place(const struct nrg_uri *uri, struct nrg_redfish_settings *s,
                      struct nrg_error *err)
{
    const char *at = uri->place;
    if (strncmp(at, "//", 2) != 0)
        return nrg_fail(err, -EINVAL, uri->text, "wants redfish://[user@]host[:port][/path]");
    at += 2;
    size_t len = strcspn(at, "/");
    int user = nrg_meter_user(uri, at, len, s->user, sizeof s->user, err);
    if (user < 0)
        return user;
    const char *host = at + user;
    size_t host_len = len - (size_t)user;
    if (!host_len || host_len > 200 || strlen(at + len) >= sizeof s->path)
        return nrg_fail(err, -EINVAL, uri->text, "wants redfish://[user@]host[:port][/path]");
    snprintf(s->base, sizeof s->base, "https://%.*s", (int)host_len, host);
    nrg_copy(s->path, sizeof s->path, at[len] && at[len + 1] ? at + len : "/redfish/v1");
    return nrg_fetch_check_url(s->base, uri->text, err);
}

int nrg_redfish_settings_read(struct nrg_uri *uri, struct nrg_redfish_settings *s,
                              struct nrg_error *err)
{
    static const struct nrg_uri_key keys[] = {
        NRG_URI_COPY("cafile", struct nrg_redfish_settings, cafile),
        NRG_URI_DURATION("period", struct nrg_redfish_settings, period_ns),
        {0},
    };
    *s = (struct nrg_redfish_settings){.period_ns = PERIOD_NS};
    int rc = read_place(uri, s, err);
    if (!rc)
        rc = nrg_meter_password(uri, s->user, s->password, sizeof s->password, err);
    if (!rc)
        rc = nrg_uri_read(uri, keys, s, err);
    if (!rc && s->period_ns < 100 * NRG_NS_PER_MS)
        rc = nrg_fail(err, -EINVAL, uri->text, "period= is 100ms at least: a BMC is slow");
    return rc ? rc : nrg_uri_finish(uri, err);
}
