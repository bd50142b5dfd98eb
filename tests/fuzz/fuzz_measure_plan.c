/* The plan of nrg.torch.measure, matched with a small graph as if all of it had been measured. */
#include <stdlib.h>
#include <string.h>

#include "graph/analysis.h"
#include "predict/dataset/measure_plan.h"

static const char graph[] = "graph(%self : __torch__.Net,\n"
                            "      %x : Float(8, 16)):\n"
                            "  %fc : __torch__.Linear = prim::GetAttr[name=\"fc\"](%self)\n"
                            "  %w : Float(16, 16) = prim::GetAttr[name=\"weight\"](%fc)\n"
                            "  %b : Float(16) = prim::GetAttr[name=\"bias\"](%fc)\n"
                            "  %u : Float(8, 16) = aten::linear(%x, %w, %b), scope: __module.fc\n"
                            "  %v : Float(8, 16) = aten::linear(%u, %w, %b), scope: __module.fc\n"
                            "  %y : Float(8, 16) = aten::relu(%v)\n"
                            "  return (%y)\n";

static void make_rows(struct nrg_plan *plan, const struct nrg_reduced *reduced,
                      const struct nrg_module_tree *tree)
{
    struct nrg_dataset set;
    struct nrg_join join;
    uint32_t *told = calloc(tree->n + 1, sizeof *told);
    nrg_dataset_init(&set);
    for (size_t i = 0; i < plan->n; i++)
        plan->nodes[i].seen = (struct nrg_seen){.energy_j = 1, .time_s = 1, .repeats = 10};
    if (told) {
        nrg_plan_calls(plan, tree, told);
        if (!nrg_join_init(&join, &set, reduced, tree, told, NULL)) {
            join.device = join.model = join.where = nrg_dataset_text(&set, "x", 1);
            if (!nrg_plan_apply(plan, &join) && !nrg_join_rows(&join, NULL))
                nrg_dataset_finish(&set, NULL);
            nrg_join_release(&join);
        }
    }
    free(told);
    nrg_dataset_release(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const struct nrg_source source = {
        .bytes = (const uint8_t *)graph, .size = sizeof graph - 1, .name = "graph"};
    static const struct nrg_analysis_options how;
    struct nrg_analysis model;
    struct nrg_plan plan;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, bytes, size);
    text[size] = '\0';
    if (!nrg_plan_read(&plan, text, "fuzz", NULL)) {
        nrg_plan_find(&plan, "measure 1");
        if (!nrg_analyse_bytes(&model, &source, &how, NULL)) {
            make_rows(&plan, &model.reduced, &model.tree);
            nrg_analysis_release(&model);
        }
        nrg_plan_release(&plan);
    }
    free(text);
    return 0;
}
