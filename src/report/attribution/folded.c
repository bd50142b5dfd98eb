/*
 * Folded stacks for flame graphs (flamegraph.pl, speedscope, inferno): a line per place in the
 * tree with what it used itself, in whole microjoules. The format has two special characters, the
 * semicolon between frames and the blank before the number; what names hold of the first and of
 * line ends is replaced.
 *
 * Energy of no span is there too, so that the graph's width is the whole.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "report/attribution/report.h"

#define MAX_UJ 9e15 /* whole numbers of a double */

static void print_weight(FILE *out, double energy_j)
{
    fprintf(out, " %" PRId64 "\n", (int64_t)llround(energy_j * 1e6));
}

/* At least one whole microjoule: a line of 0 says nothing. */
static bool has_weight(double energy_j)
{
    return energy_j * 1e6 >= 0.5 && energy_j * 1e6 < MAX_UJ;
}

static int add_frame(struct nrg_str *stack, const struct nrg_str *label)
{
    int rc = stack->len ? nrg_str_add(stack, ";", 1) : 0;
    size_t at = stack->len;
    if (!rc)
        rc = nrg_str_add(stack, label->text, label->len);
    for (; !rc && at < stack->len; at++)
        if (stack->text[at] == ';')
            stack->text[at] = ':';
    return rc;
}

static void print_part(FILE *out, const char *name, double energy_j)
{
    if (!has_weight(energy_j))
        return;
    fputs(name, out);
    print_weight(out, energy_j);
}

int nrg_attribution_folded(const struct nrg_attribution_report *r, FILE *out)
{
    const struct nrg_attribution *a = r->attribution;
    struct nrg_str stack = {0}, label = {0};
    unsigned deepest = 0;
    for (size_t i = 0; i < a->n_rows; i++)
        deepest = a->rows[i].depth > deepest ? a->rows[i].depth : deepest;
    size_t *len_at =
        nrg_calloc((size_t)deepest + 2, sizeof *len_at); /* of the stack above a level */
    int rc = len_at ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < a->n_rows; i++) {
        const struct nrg_attribution_row *row = &a->rows[i];
        stack.len = len_at[row->depth];
        rc = nrg_attribution_label(a, i, true, &label);
        if (!rc)
            rc = add_frame(&stack, &label);
        len_at[row->depth + 1] = stack.len;
        if (rc || !has_weight(row->energy_self_j))
            continue;
        fputs(stack.text, out);
        print_weight(out, row->energy_self_j);
    }
    print_part(out, "(idle)", a->idle_j);
    print_part(out, "(other processes)", a->other_processes_j);
    print_part(out, "(unattributed)", a->unattributed_j);
    nrg_str_release(&stack);
    nrg_str_release(&label);
    free(len_at);
    return rc;
}
