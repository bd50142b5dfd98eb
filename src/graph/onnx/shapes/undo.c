/*
 * See shapes/internal.h: notes of a block before its types are inferred, and the way back. An
 * inference sets types and contents of values and adds attributes to control flow (trip counts,
 * conditions); types are joined with what a value already has, so a second one must begin with
 * what the file said.
 */
#include "graph/onnx/shapes/internal.h"

/* An operator's attributes (value NULL), or a value's type and contents. */
struct onnx_noted {
    struct nrg_value *value;
    const struct nrg_type *type;
    struct onnx_known *known;
    const struct nrg_attr *attrs;
    size_t n_attrs;
};

struct notes {
    struct onnx *x;
    struct onnx_undo *undo;
    size_t at;
};

static size_t values_of(const struct nrg_op *op)
{
    size_t n = op->n_outputs;
    for (size_t b = 0; b < op->n_blocks; b++)
        n += op->blocks[b]->n_inputs;
    return n;
}

static int count_op(void *arg, struct nrg_op *op)
{
    struct notes *notes = arg;
    notes->undo->cap += 1 + values_of(op);
    return 0;
}

static void note_values(struct notes *notes, struct nrg_value **values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        notes->undo->notes[notes->undo->n++] =
            (struct onnx_noted){.value = values[i],
                                .type = values[i]->type,
                                .known = onnx_get_known(notes->x, values[i])};
}

static int note_op(void *arg, struct nrg_op *op)
{
    struct onnx_undo *undo = ((struct notes *)arg)->undo;
    undo->notes[undo->n++] = (struct onnx_noted){.attrs = op->attrs, .n_attrs = op->n_attrs};
    note_values(arg, op->outputs, op->n_outputs);
    for (size_t b = 0; b < op->n_blocks; b++)
        note_values(arg, op->blocks[b]->inputs, op->blocks[b]->n_inputs);
    return 0;
}

int onnx_undo_begin(struct onnx *x, struct nrg_block *block, struct onnx_undo *undo)
{
    struct notes notes = {.x = x, .undo = undo};
    *undo = (struct onnx_undo){
        .cap = block->n_inputs, .n_conflicts = x->n_conflicts, .n_broken = x->n_broken};
    onnx_each_op(block, count_op, &notes);
    undo->notes = nrg_arena_array(&x->model->arena, undo->cap + 1, sizeof *undo->notes);
    if (!undo->notes)
        return onnx_no_memory(x);
    note_values(&notes, block->inputs, block->n_inputs);
    return onnx_each_op(block, note_op, &notes);
}

static int restore_values(struct notes *notes, size_t n)
{
    int rc = 0;
    for (size_t i = 0; i < n && !rc; i++) {
        const struct onnx_noted *noted = &notes->undo->notes[notes->at++];
        noted->value->type = noted->type;
        if (onnx_get_known(notes->x, noted->value) != noted->known)
            rc = onnx_set_known(notes->x, noted->value, noted->known);
    }
    return rc;
}

static int restore_op(void *arg, struct nrg_op *op)
{
    struct notes *notes = arg;
    const struct onnx_noted *noted = &notes->undo->notes[notes->at++];
    op->attrs = noted->attrs;
    op->n_attrs = noted->n_attrs;
    return restore_values(notes, values_of(op));
}

int onnx_undo(struct onnx *x, struct nrg_block *block, struct onnx_undo *undo)
{
    struct notes notes = {.x = x, .undo = undo};
    int rc = restore_values(&notes, block->n_inputs);
    x->n_conflicts = undo->n_conflicts;
    x->n_broken = undo->n_broken;
    return rc ? rc : onnx_each_op(block, restore_op, &notes);
}
