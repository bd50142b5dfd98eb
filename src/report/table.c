/* See table.h. A bar has eighths of a cell. */
#include "report/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define BAR_CELLS   10
#define MOST_INDENT 40

void nrg_table_bar(FILE *out, double share)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int cells = (int)nrg_round_within(share * BAR_CELLS * 8, 0, BAR_CELLS * 8), drawn = 0;
    for (; drawn < cells / 8 && drawn < BAR_CELLS; drawn++)
        fputs("█", out);
    if (cells % 8 && drawn < BAR_CELLS) {
        fputs(eighths[cells % 8], out);
        drawn++;
    }
    fprintf(out, "%*s %5.1f %%", BAR_CELLS - drawn, "", 100 * share);
}

const char *nrg_table_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *last_of_repeats(const struct nrg_module_tree *tree, size_t i)
{
    size_t c = i;
    for (uint32_t k = 1; k < tree->nodes[i].repeats; k++)
        c += tree->nodes[c].size;
    return tree->nodes[c].local;
}

static void name_row(struct nrg_tree_row *row, const struct nrg_module_tree *tree, const char *name,
                     size_t i)
{
    const struct nrg_tree_node *node = &tree->nodes[i];
    int indent = node->depth < MOST_INDENT / 2 ? (int)node->depth * 2 : MOST_INDENT;
    if (!i)
        snprintf(row->name, sizeof row->name, "%.40s", nrg_table_base_name(name));
    else if (node->repeats > 1)
        snprintf(row->name, sizeof row->name, "%*s%.30s…%.30s ×%u", indent, "", node->local,
                 last_of_repeats(tree, i), node->repeats);
    else
        snprintf(row->name, sizeof row->name, "%*s%.70s", indent, "", node->local);
}

/* Walks the tree, leaving out what a folded sibling stands for and what is too deep. */
int nrg_tree_rows(const struct nrg_module_tree *tree, const char *name, int depth,
                  nrg_tree_row_fn *each, void *arg)
{
    uint32_t *times = nrg_calloc(tree->n + 1, sizeof *times);
    if (!times)
        return -ENOMEM;
    int rc = 0;
    for (size_t i = 0; i < tree->n && !rc;) {
        const struct nrg_tree_node *node = &tree->nodes[i];
        if (!node->repeats) {
            i += node->size;
            continue;
        }
        times[i] = (i ? times[node->parent] : 1) * node->repeats;
        struct nrg_tree_row row = {.node = node, .times = times[i]};
        name_row(&row, tree, name, i);
        rc = each(arg, &row);
        i += depth && node->depth >= (uint32_t)depth ? node->size : 1;
    }
    free(times);
    return rc;
}
