/*
 * The numbers of other counters, so that people can compare with what they know (their sources
 * were read; docs/graph.md lists the differences):
 *   torch      torch.utils.flop_counter: 2 FLOPs per MAC of products, convolutions, recurrent
 *              layers and scaled-dot-product attention; nothing else. Fused fast paths and
 *              quantised operators are invisible to it.
 *   fvcore     1 "flop" per MAC; norms, two kinds of pools and upsampling; recurrent layers and
 *              fused attention unsupported.
 *   torchinfo  mult-adds from modules' parameters alone: cost/torchinfo.c. Stands in both macs and
 *              flops.
 *   irene      the counters of IrEne's data, FLOPs and bytes: cost/irene.c.
 * Traffic is ours in all of them but the last.
 */
#include <string.h>

#include "graph/cost/internal.h"

static bool is_kind(const struct nrg_operator *op, const char *kind)
{
    return !strcmp(op->rule->kind, kind);
}

static int64_t torch_flops(const struct nrg_operator *op)
{
    char code = op->rule->code[0];
    bool counted = (code == 'G' || code == 'C' || code == 'L' || code == 'A') && !op->rule->code[1];
    if (op->rule->flags & NRG_OP_OPAQUE)
        return NRG_COST_UNKNOWN;
    if (!counted || !strncmp(op->rule->kind, "quantized::", 11) ||
        is_kind(op, "aten::_native_multi_head_attention") ||
        is_kind(op, "aten::_transformer_encoder_layer_fwd"))
        return 0;
    return nrg_cost_mul(2, op->cost.macs);
}

static int64_t fvcore_norm(const struct nrg_operator *op)
{
    int64_t training = 0, n = nrg_arg_numel(nrg_arg_at(op, 0));
    bool batch = strstr(op->rule->kind, "batch_norm") || strstr(op->rule->kind, "BatchNorm");
    bool affine = nrg_arg_at(op, batch || op->rule->arg < 0 ? 1 : (size_t)op->rule->arg)->kind !=
                  NRG_ARG_NONE;
    if (batch && op->rule->arg >= 0 && strncmp(op->rule->kind, "onnx::", 6))
        nrg_arg_int(nrg_arg_at(op, (size_t)op->rule->arg), &training);
    if (batch && !training)
        return nrg_cost_mul(affine ? 2 : 1, n);
    return nrg_cost_mul(affine ? 5 : 4, n);
}

static int64_t fvcore_flops(const struct nrg_operator *op)
{
    const char *code = op->rule->code;
    if (op->rule->flags & NRG_OP_OPAQUE)
        return NRG_COST_UNKNOWN;
    if (!strncmp(op->rule->kind, "quantized::", 11))
        return 0;
    if (!strcmp(code, "G") || !strcmp(code, "C"))
        return op->cost.macs;
    if (!strcmp(code, "N"))
        return fvcore_norm(op);
    if (is_kind(op, "aten::adaptive_avg_pool2d"))
        return nrg_arg_numel(nrg_arg_at(op, 0));
    if (is_kind(op, "aten::upsample_nearest2d"))
        return nrg_cost_output_numel(op);
    if (is_kind(op, "aten::upsample_bilinear2d") ||
        !strncmp(op->rule->kind, "aten::grid_sampler", 18))
        return nrg_cost_mul(4, nrg_cost_output_numel(op));
    return 0;
}

void nrg_cost_convert(struct nrg_operator *op, enum nrg_convention convention)
{
    switch (convention) {
    case NRG_CONVENTION_NRG:
        break;
    case NRG_CONVENTION_TORCH:
        op->cost.flops = torch_flops(op);
        break;
    case NRG_CONVENTION_FVCORE:
        op->cost.flops = fvcore_flops(op);
        break;
    case NRG_CONVENTION_TORCHINFO: /* of modules: nrg_cost_torchinfo */
        break;
    case NRG_CONVENTION_IRENE:
        nrg_cost_irene(op, &op->cost.flops, &op->cost.read_bytes);
        op->cost.written_bytes = 0;
        break;
    }
}
