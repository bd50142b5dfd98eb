/* The reduction's rules and kinds of data in words. */
#include "graph/reduce.h"

const char *nrg_data_kind_name(enum nrg_data_kind kind)
{
    static const char *const names[] = {"input", "parameter", "constant", "activation", "join"};
    return names[kind];
}

const char *nrg_drop_rule_text(enum nrg_drop_rule rule)
{
    static const char *const texts[] = {
        [NRG_KEPT] = "kept: it computes on a tensor or moves one",
        [NRG_DROP_CONSTANT] = "a constant: a tensor constant is data, others are attributes of "
                              "the operators that use them",
        [NRG_DROP_GETATTR] = "an attribute: a tensor is a parameter, a module is only a path",
        [NRG_DROP_SHAPE] = "shape arithmetic: it computes sizes, not data",
        [NRG_DROP_PROPERTY] = "a property: it reads a tensor's size, type or one element",
        [NRG_DROP_CONTAINER] = "a container: lists, tuples and dicts pass their members through",
        [NRG_DROP_NO_TENSOR] = "no tensor goes in or comes out",
        [NRG_DROP_VIEW] = "a view: its output is its input's memory seen differently",
        [NRG_DROP_NOOP] = "a no-op with these arguments: its output is its input",
        [NRG_DROP_CONTROL] = "control flow: what is inside is listed in its place",
        [NRG_DROP_CALL] = "a call: the callee's operators stand in its place",
        [NRG_DROP_FALLBACK] = "a fallback: the same operators as in the other branch, "
                              "counted there",
    };
    return texts[rule];
}
