/*
 * Finding the rule of an operator's kind. Families (one array of rows per namespace) are sorted
 * and searched by halving. What has no row is derived, in this order:
 *   "add.Tensor"   overload names are dropped
 *   "relu_"        the in-place form of a known kind
 *   "view_copy"    the copying form of a known view: moves memory
 *   "add"          prints of PyTorch 0.3 and 0.4 have no namespace: aten, then prim
 * and if nothing fits it is opaque: kept in the reduced graph, its cost unknown. A wrong guess
 * would be a wrong number; an unknown one is counted and shown.
 */
#include <errno.h>
#include <string.h>

#include "graph/cost.h"
#include "graph/cost/internal.h"

#define MAX_KIND 128

/* One line each, so that branches that add one do not conflict. */
/* clang-format off */
static const struct nrg_cost_family *const families[] = {
    &nrg_cost_family_aten,
    &nrg_cost_family_prim,
    &nrg_cost_family_quantized,
    &nrg_cost_family_torchvision,
    &nrg_cost_family_onnx,
    &nrg_cost_family_microsoft,
    &nrg_cost_family_trt,
    &nrg_cost_family_layer,
    NULL,
};
/* clang-format on */

static const char *const class_names[] = {
    [NRG_CLASS_COMPUTE] = "compute",     [NRG_CLASS_MOVE] = "move",
    [NRG_CLASS_VIEW] = "view",           [NRG_CLASS_ACCESS] = "access",
    [NRG_CLASS_CONTAINER] = "container", [NRG_CLASS_CONSTANT] = "constant",
    [NRG_CLASS_CONTROL] = "control",     [NRG_CLASS_NOOP] = "no-op",
};

const char *nrg_op_class_name(enum nrg_op_class class)
{
    return class < NRG_CLASSES ? class_names[class] : "?";
}

static const struct nrg_cost_rule *in_family(const struct nrg_cost_family *family, const char *kind)
{
    size_t low = 0, high = family->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(family->rules[middle].kind, kind);
        if (!order)
            return &family->rules[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static const struct nrg_cost_rule *exact(const char *kind)
{
    for (size_t i = 0; families[i]; i++)
        if (!strncmp(kind, families[i]->prefix, strlen(families[i]->prefix)))
            return in_family(families[i], kind);
    return NULL;
}

static bool ends_with(const char *text, size_t len, const char *end)
{
    size_t n = strlen(end);
    return len > n && !memcmp(text + len - n, end, n);
}

/* The kind without its overload name, in-place or copy ending; NULL when no row fits. */
static const struct nrg_cost_rule *derived(char *kind, struct nrg_cost_rule *scratch)
{
    char *dot = strchr(kind, '.');
    if (dot)
        *dot = 0;
    const struct nrg_cost_rule *base = exact(kind);
    size_t len = strlen(kind);
    if (base)
        return base;
    if (ends_with(kind, len, "_") && !ends_with(kind, len, "__")) {
        kind[len - 1] = 0;
        if (!(base = exact(kind)))
            return NULL;
        *scratch = *base;
        if (base->class == NRG_CLASS_COMPUTE || base->class == NRG_CLASS_MOVE)
            scratch->flags |= NRG_OP_IN_PLACE;
        return scratch;
    }
    if (!ends_with(kind, len, "_copy"))
        return NULL;
    kind[len - strlen("_copy")] = 0;
    base = exact(kind);
    if (!base || base->class != NRG_CLASS_VIEW)
        return NULL;
    *scratch = (struct nrg_cost_rule){.kind = base->kind, .class = NRG_CLASS_MOVE, .code = "M"};
    return scratch;
}

static const struct nrg_cost_rule *with_prefix(const char *prefix, const char *kind,
                                               struct nrg_cost_rule *scratch)
{
    char text[MAX_KIND];
    size_t n = strlen(prefix), len = strlen(kind);
    if (n + len >= sizeof text)
        return NULL;
    memcpy(text, prefix, n);
    memcpy(text + n, kind, len + 1);
    return derived(text, scratch);
}

const struct nrg_cost_rule *nrg_cost_rule_find(const char *kind, struct nrg_cost_rule *scratch)
{
    const struct nrg_cost_rule *rule = exact(kind);
    if (!rule)
        rule = with_prefix("", kind, scratch);
    if (!rule && !strstr(kind, "::")) {
        rule = with_prefix("aten::", kind, scratch);
        if (!rule)
            rule = with_prefix("prim::", kind, scratch);
    }
    if (rule)
        return rule;
    *scratch = (struct nrg_cost_rule){.kind = kind,
                                      .class = NRG_CLASS_COMPUTE,
                                      .flags = NRG_OP_OPAQUE | NRG_OP_NOT_RECORDED,
                                      .cost = nrg_cost_opaque,
                                      .code = "O"};
    size_t len = strlen(kind);
    if (ends_with(kind, len, "_") && !ends_with(kind, len, "__"))
        scratch->flags |= NRG_OP_IN_PLACE;
    return scratch;
}

int nrg_convention_from_name(const char *name, enum nrg_convention *out)
{
    static const char *const names[] = {
        [NRG_CONVENTION_NRG] = "nrg",       [NRG_CONVENTION_TORCH] = "torch",
        [NRG_CONVENTION_FVCORE] = "fvcore", [NRG_CONVENTION_TORCHINFO] = "torchinfo",
        [NRG_CONVENTION_IRENE] = "irene",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name))
            continue;
        *out = (enum nrg_convention)i;
        return 0;
    }
    return -EINVAL;
}

size_t nrg_cost_rules_unsorted(void)
{
    size_t wrong = 0;
    for (size_t f = 0; families[f]; f++)
        for (size_t i = 1; i < families[f]->n; i++)
            wrong += strcmp(families[f]->rules[i - 1].kind, families[f]->rules[i].kind) >= 0;
    return wrong;
}
