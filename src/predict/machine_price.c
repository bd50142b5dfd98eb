/*
 * See machine_price.h. A calibration has prices itself: the cheapest product of matrices, and bytes
 * from memory, beyond all caches. A profile has fitted ones per kind of operator: of a MAC the
 * matrix products', and of a byte that of operators without a kind of their own, which are
 * priced by their traffic; where it has none, the mean of kinds that only move bytes.
 */
#include "predict/machine_price.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/json/set.h"
#include "base/mem.h"

static double positive(double x)
{
    return x > 0 && isfinite(x) ? x : NAN;
}

static bool is_schema(const json_t *doc)
{
    const char *schema = json_string_value(json_object_get(doc, "schema"));
    return schema && !strcmp(schema, "nrg.calibration/1");
}

static void copy_text(char *to, size_t size, const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));
    nrg_copy_clean(to, size, text ? text : "", text ? strlen(text) : 0);
}

static double cheapest_mac(const json_t *doc)
{
    const json_t *point;
    double best = NAN;
    size_t i;
    json_array_foreach(json_object_get(doc, "points"), i, point)
    {
        double j = positive(json_number_value(json_object_get(point, "j_per_mac")));
        if (j > 0 && !(j >= best))
            best = j;
    }
    return best;
}

/* Of the last level: memory, unless it could not be streamed. */
static double memory_byte(const json_t *doc)
{
    const json_t *levels = json_object_get(doc, "levels");
    size_t n = json_array_size(levels);
    const json_t *last = n ? json_array_get(levels, n - 1) : NULL;
    return positive(json_number_value(json_object_get(last, "j_per_byte")));
}

int nrg_machine_price_read(struct nrg_machine_price *price, const char *path, struct nrg_error *err)
{
    json_error_t why;
    json_t *doc = nrg_json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    *price = (struct nrg_machine_price){.source = "nrg calibrate"};
    if (!doc)
        return nrg_fail_at(err, why.line < 0 ? -EIO : -EBADMSG, path, why.line, "%s", why.text);
    bool good = is_schema(doc);
    copy_text(price->device, sizeof price->device, doc, "device");
    copy_text(price->provenance, sizeof price->provenance, doc, "provenance");
    price->j_per_mac = cheapest_mac(doc);
    price->j_per_byte = memory_byte(doc);
    json_decref(doc);
    if (!good)
        return nrg_fail(err, -EBADMSG, path,
                        "is no calibration: its schema is not "
                        "nrg.calibration/1");
    if (isnan(price->j_per_mac) && isnan(price->j_per_byte))
        return nrg_fail(err, -ENODATA, path,
                        "has no price of a MAC or byte: nothing was measured "
                        "above idle");
    return 0;
}

bool nrg_is_calibration(const char *path)
{
    json_error_t why;
    json_t *doc = nrg_json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    bool is = doc && is_schema(doc);
    json_decref(doc);
    return is;
}

struct nrg_machine_price nrg_machine_price_of(const struct nrg_profile *profile)
{
    const struct nrg_physical *p = &profile->physical;
    struct nrg_machine_price out = {
        .source = "profile", .j_per_mac = NAN, .j_per_byte = NAN, .is_fitted = true};
    double cheapest = NAN, bytes_j = 0;
    size_t n_bytes = 0;
    nrg_copy(out.device, sizeof out.device, profile->device ? profile->device : "");
    nrg_copy(out.provenance, sizeof out.provenance, profile->provenance ? profile->provenance : "");
    for (size_t i = 0; !profile->is_layer && i < p->n; i++) {
        double mac = positive(p->groups[i].joules[NRG_PER_MAC]);
        double byte = positive(p->groups[i].joules[NRG_PER_BYTE]);
        if (!strcmp(p->groups[i].name, "gemm"))
            out.j_per_mac = mac;
        if (mac > 0 && !(mac >= cheapest))
            cheapest = mac;
        if (byte > 0 && isnan(mac)) {
            bytes_j += byte;
            n_bytes++;
        }
    }
    if (isnan(out.j_per_mac))
        out.j_per_mac = cheapest;
    if (!profile->is_layer)
        out.j_per_byte = positive(p->module_joules[NRG_PER_REST_BYTE]);
    if (isnan(out.j_per_byte) && n_bytes)
        out.j_per_byte = bytes_j / (double)n_bytes;
    return out;
}
