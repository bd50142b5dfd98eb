/*
 * Finds the rule of an operator's kind. Families (one array of rows per namespace) are sorted, for
 * binary search. What has no row is derived, in this order:
 *   "add.Tensor"   overload names are dropped
 *   "relu_"        the in-place form of a known kind
 *   "view_copy"    the copying form of a known view: moves memory
 *   "add"          prints of PyTorch 0.3 and 0.4 have no namespace: aten, then prim
 * and if nothing fits it is opaque: kept in the reduced graph, its cost unknown. A wrong guess
 * would be a wrong number; an unknown one is counted and shown.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/cost/internal.h"

#define MAX_KIND 128

/* One line each, so that branches that add one do not conflict. */
/* clang-format off */
const struct nrg_cost_family *const nrg_cost_families[] = {
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

const char *nrg_op_class_name(enum nrg_op_class class)
{
    static const char *const names[NRG_CLASSES] = {
        [NRG_CLASS_COMPUTE] = "compute",     [NRG_CLASS_MOVE] = "move",
        [NRG_CLASS_VIEW] = "view",           [NRG_CLASS_ACCESS] = "access",
        [NRG_CLASS_CONTAINER] = "container", [NRG_CLASS_CONSTANT] = "constant",
        [NRG_CLASS_CONTROL] = "control",     [NRG_CLASS_NOOP] = "no-op",
    };
    return names[class];
}

int nrg_kind_order(const void *kind, const void *row)
{
    return strcmp(kind, *(const char *const *)row);
}

static const struct nrg_cost_rule *exact_rule(const char *kind)
{
    for (size_t i = 0; nrg_cost_families[i]; i++) {
        const struct nrg_cost_family *family = nrg_cost_families[i];
        if (!strncmp(kind, family->prefix, strlen(family->prefix)))
            return bsearch(kind, family->rules, family->n, sizeof *family->rules, nrg_kind_order);
    }
    return NULL;
}

static bool ends_with(const char *text, size_t len, const char *end)
{
    size_t n = strlen(end);
    return len > n && !memcmp(text + len - n, end, n);
}

static bool is_in_place(const char *kind, size_t len)
{
    return ends_with(kind, len, "_") && !ends_with(kind, len, "__");
}

/* The kind without its overload name, in-place or copy ending; NULL when no row fits. */
static const struct nrg_cost_rule *derived_rule(char *kind, struct nrg_cost_rule *scratch)
{
    char *dot = strchr(kind, '.');
    if (dot)
        *dot = 0;
    const struct nrg_cost_rule *base = exact_rule(kind);
    size_t len = strlen(kind);
    if (base)
        return base;
    if (is_in_place(kind, len)) {
        kind[len - 1] = 0;
        if (!(base = exact_rule(kind)))
            return NULL;
        *scratch = *base;
        if (base->class == NRG_CLASS_COMPUTE || base->class == NRG_CLASS_MOVE)
            scratch->flags |= NRG_OP_IN_PLACE;
        return scratch;
    }
    if (!ends_with(kind, len, "_copy"))
        return NULL;
    kind[len - strlen("_copy")] = 0;
    base = exact_rule(kind);
    if (!base || base->class != NRG_CLASS_VIEW)
        return NULL;
    *scratch = (struct nrg_cost_rule){.kind = base->kind, .class = NRG_CLASS_MOVE, .code = "M"};
    return scratch;
}

static const struct nrg_cost_rule *with_prefix(const char *prefix, const char *kind,
                                               struct nrg_cost_rule *scratch)
{
    char text[MAX_KIND];
    int len = snprintf(text, sizeof text, "%s%s", prefix, kind);
    return len < (int)sizeof text ? derived_rule(text, scratch) : NULL;
}

const struct nrg_cost_rule *nrg_cost_rule_find(const char *kind, struct nrg_cost_rule *scratch)
{
    const struct nrg_cost_rule *rule = exact_rule(kind);
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
    if (is_in_place(kind, strlen(kind)))
        scratch->flags |= NRG_OP_IN_PLACE;
    return scratch;
}

const char *nrg_convention_name(enum nrg_convention convention)
{
    static const char *const names[] = {
        [NRG_CONVENTION_NRG] = "nrg",       [NRG_CONVENTION_TORCH] = "torch",
        [NRG_CONVENTION_FVCORE] = "fvcore", [NRG_CONVENTION_TORCHINFO] = "torchinfo",
        [NRG_CONVENTION_IRENE] = "irene",
    };
    return names[convention];
}
