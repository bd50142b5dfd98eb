/*
 * From a TorchScript text to its report: reduction, costs, module tree, JSON. What a reader lets
 * through may still call itself, nest lists in themselves or lie about shapes.
 */
#include <stdlib.h>

#include "report/graph/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_and_report(const struct nrg_analysis *a)
{
    struct nrg_graph_view view = {.depth = 3};
    for (size_t i = 0; i < a->reduced.n_operators; i++)
        if (a->reduced.operators[i].cost.macs < NRG_COST_UNKNOWN ||
            a->reduced.operators[i].cost.flops < NRG_COST_UNKNOWN)
            abort(); /* a wrapped number */
    json_decref(nrg_graph_json(a));
    FILE *out = fopen("/dev/null", "w");
    if (out) {
        nrg_graph_text(a, &view, out);
        nrg_graph_dot(a, out);
        fclose(out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const struct nrg_source source = {.bytes = bytes, .size = size, .name = "fuzz"};
    struct nrg_model params;
    struct nrg_analysis a;
    const struct nrg_analysis_options how = {.format = "torchscript",
                                             .params = &params,
                                             .convention = (enum nrg_convention)(size % 5),
                                             .want_graph = true};
    if (nrg_model_read_bytes(&source, "torchscript", &params, NULL))
        return 0;
    if (!nrg_analyse_bytes(&a, &source, &how, NULL)) {
        check_and_report(&a);
        nrg_analysis_release(&a);
    }
    nrg_model_release(&params);
    return 0;
}
