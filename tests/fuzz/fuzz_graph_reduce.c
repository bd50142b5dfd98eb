/*
 * From a TorchScript text to its report: reduction, costs, module tree, JSON. What a reader lets
 * through may still call itself, nest lists in themselves or lie about shapes.
 */
#include <stdlib.h>

#include "graph/module_tree.h"
#include "graph/reader.h"
#include "report/graph/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void report(const struct nrg_model *model, enum nrg_convention convention)
{
    struct nrg_reduced reduced;
    struct nrg_module_tree tree;
    struct nrg_graph_report r = {
        .name = "fuzz", .model = model, .reduced = &reduced, .convention = "nrg"};
    if (nrg_reduce(model, model, &reduced, NULL))
        return;
    if (nrg_cost_all(&reduced, convention) || nrg_totals_of(model, &reduced, model, &r.totals))
        abort();
    for (size_t i = 0; i < reduced.n_operators; i++)
        if (reduced.operators[i].cost.macs < NRG_COST_UNKNOWN ||
            reduced.operators[i].cost.flops < NRG_COST_UNKNOWN)
            abort(); /* a wrapped number */
    if (!nrg_module_tree_make(&tree, model, &reduced, model)) {
        FILE *out = fopen("/dev/null", "w");
        struct nrg_graph_view view = {.depth = 3};
        r.tree = &tree;
        json_decref(nrg_graph_json(&r));
        if (out) {
            nrg_graph_text(&r, &view, out);
            nrg_graph_dot(&r, out);
            fclose(out);
        }
        nrg_module_tree_release(&tree);
    }
    nrg_reduced_release(&reduced);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct nrg_source source = {.bytes = bytes, .size = size, .name = "fuzz"};
    struct nrg_model model;
    if (nrg_model_read_bytes(&source, "torchscript", &model, NULL))
        return 0;
    if (model.n_graphs)
        report(&model, (enum nrg_convention)(size % 5));
    nrg_model_release(&model);
    return 0;
}
