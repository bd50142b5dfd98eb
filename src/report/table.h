/*
 * What tables of modules share: bars, and the rows of a module tree, where numbered siblings that
 * are alike are one row ("0…11 ×12") that stands for all of them. Rows point into the tree and are
 * good during the callback.
 */
#ifndef NRG_REPORT_TABLE_H
#define NRG_REPORT_TABLE_H

#include <stdio.h>

#include "graph/module_tree.h"
#include "report/style.h"

/* Ten cells and the share in percent. */
void nrg_table_bar(FILE *out, double share);

struct nrg_tree_row {
    const struct nrg_tree_node *node;
    uint32_t times; /* modules that this row stands for */
    char name[120]; /* indented */
};

/* Calls back for each row down to `depth` levels (0: all); stops at a non-zero return. */
typedef int nrg_tree_row_fn(void *arg, const struct nrg_tree_row *row);
/* `name`: of the file, for the root. 0, -ENOMEM, or what the callback returned. */
int nrg_tree_rows(const struct nrg_module_tree *tree, const char *name, int depth,
                  nrg_tree_row_fn *each, void *arg);

/* The last part of a path. */
const char *nrg_table_base_name(const char *path);

#endif
