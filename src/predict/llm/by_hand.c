/*
 * A model whose sizes are given by hand, where no file of it can be read:
 * "params=7.6e9,active=1e9,layers=32,hidden=4096". Only the first must be there. The rest of its
 * shape is made up (known.h), which widens the interval of a prediction and is said there.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "predict/llm/file.h"
#include "predict/llm/known.h"
#include "predict/llm/shape.h"

#define MOST_APART 0.1 /* of the parameters that were asked for */

enum size { PARAMS, ACTIVE, LAYERS, HIDDEN, SIZES };

static const struct {
    const char *name;
    double most;
} sizes[SIZES] = {{"params", 1e15}, {"active", 1e15}, {"layers", 1e4}, {"hidden", 1e6}};

bool nrg_llm_is_by_hand(const char *text)
{
    return !strncmp(text, "params=", 7);
}

static int take_size(const char *text, size_t len, double *values, struct nrg_error *err)
{
    for (int i = 0; i < SIZES; i++) {
        size_t n = strlen(sizes[i].name);
        if (len <= n || memcmp(text, sizes[i].name, n) != 0 || text[n] != '=')
            continue;
        if (nrg_parse_double(text + n + 1, len - n - 1, &values[i]) ||
            !(values[i] >= 1 && values[i] <= sizes[i].most))
            return nrg_fail(err, -EINVAL, NULL, "'%.*s': %s is a number from 1 to %g, such as %s",
                            (int)len, text, sizes[i].name, sizes[i].most,
                            i < LAYERS ? "7.6e9" : "32");
        return 0;
    }
    return nrg_fail(err, -EINVAL, NULL,
                    "'%.*s': sizes by hand are params=, active=, layers= and hidden=", (int)len,
                    text);
}

static bool is_apart(double made, double asked)
{
    return fabs(made / asked - 1) > MOST_APART;
}

/* A shape with about so many parameters; fewer layers than plausible where too many are active. */
static int make_shape(struct nrg_llm_config *c, const double *values, const char *text,
                      struct nrg_error *err)
{
    double params = values[PARAMS], active = values[ACTIVE] > 0 ? values[ACTIVE] : params;
    double layers = floor(values[LAYERS]), hidden = floor(values[HIDDEN]);
    struct nrg_llm_shape shape;
    nrg_llm_guess_sized(c, active, params, layers, hidden);
    nrg_llm_shape_make(&shape, c);
    while (!(layers > 0) && c->layers > 1 && shape.active_params > (1 + MOST_APART) * active) {
        nrg_llm_guess_sized(c, active, params, c->layers - 1, hidden);
        nrg_llm_shape_make(&shape, c);
    }
    if (is_apart(shape.params, params) || is_apart(shape.active_params, active))
        return nrg_fail(
            err, -EINVAL, text,
            "%g layers of width %g make %.3g parameters, %.3g active, not %.3g and %.3g", c->layers,
            c->hidden, shape.params, shape.active_params, params, active);
    return 0;
}

int nrg_llm_config_by_hand(struct nrg_llm_config *c, const char *text, struct nrg_error *err)
{
    double values[SIZES] = {0};
    for (const char *at = text; at;) {
        size_t len = strcspn(at, ",");
        int rc = take_size(at, len, values, err);
        if (rc)
            return rc;
        at = at[len] ? at + len + 1 : NULL;
    }
    if (values[ACTIVE] > values[PARAMS])
        return nrg_fail(err, -EINVAL, text, "active is more than params");
    int rc = make_shape(c, values, text, err);
    nrg_copy(c->family, sizeof c->family, "by hand");
    return rc ? rc : nrg_llm_config_check(c, text, err);
}
