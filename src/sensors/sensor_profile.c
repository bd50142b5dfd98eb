/* See sensor_profile.h. Keys that are not known are ignored: the file also has what was found. */
#include "sensors/sensor_profile.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "base/mem.h"

#define MAX_SIZE  (64 * 1024)
#define LONGEST_S 60.0

/* A number of seconds in [least, most], as ns. */
static int read_seconds(const json_t *doc, const char *key, double least, double most,
                        const char *where, int64_t *ns, struct nrg_error *err)
{
    const json_t *value = json_object_get(doc, key);
    double s = json_is_number(value) ? json_number_value(value) : NAN;
    if (!(s >= least && s <= most))
        return nrg_fail(err, -EINVAL, where, "'%s' wants seconds between %g and %g", key, least,
                        most);
    *ns = (int64_t)llround(s * 1e9);
    return 0;
}

static int read_fields(struct nrg_sensor_profile *p, const json_t *doc, const char *where,
                       struct nrg_error *err)
{
    const char *schema = json_string_value(json_object_get(doc, "schema"));
    const char *gpu = json_string_value(json_object_get(doc, "gpu"));
    const char *source = json_string_value(json_object_get(doc, "source"));
    if (!schema || strcmp(schema, NRG_SENSOR_PROFILE_SCHEMA))
        return nrg_fail(err, -EINVAL, where, "is not a sensor profile (nrg calibrate --gpu -o)");
    if (gpu)
        nrg_copy_clean(p->gpu, sizeof p->gpu, gpu, strlen(gpu));
    if (source)
        nrg_copy_clean(p->source, sizeof p->source, source, strlen(source));
    int rc = read_seconds(doc, "update_s", 1e-4, LONGEST_S, where, &p->update_ns, err);
    if (!rc)
        rc = read_seconds(doc, "window_s", 1e-6, LONGEST_S, where, &p->window_ns, err);
    return rc ? rc : read_seconds(doc, "lag_s", 0, LONGEST_S, where, &p->lag_ns, err);
}

int nrg_sensor_profile_parse(struct nrg_sensor_profile *profile, const char *where,
                             const char *text, size_t len, struct nrg_error *err)
{
    json_error_t why;
    *profile = (struct nrg_sensor_profile){0};
    json_t *doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (!doc)
        return nrg_fail(err, -EINVAL, where, "is not JSON: %s (line %d)", why.text, why.line);
    int rc = read_fields(profile, doc, where, err);
    json_decref(doc);
    return rc;
}

int nrg_sensor_profile_read(struct nrg_sensor_profile *profile, const char *path,
                            struct nrg_error *err)
{
    const struct nrg_root live = {.fd = -1, .live = NRG_PART_ALL};
    char *text;
    ssize_t len = nrg_root_read_all(&live, path, MAX_SIZE, &text);
    if (len < 0)
        return nrg_fail(err, (int)len, path, "cannot be read: %s", strerror((int)-len));
    int rc = nrg_sensor_profile_parse(profile, path, text, (size_t)len, err);
    free(text);
    return rc;
}
