/* See module_path.h. Rows stand after their parents, so that going up ends. */
#include "attribute/module_path.h"

#include <string.h>

bool nrg_row_is(const struct nrg_attribution_row *row, const char *kind)
{
    return !strcmp(row->kind, kind);
}

const struct nrg_attribution_row *nrg_row_above(const struct nrg_attribution *a,
                                                const struct nrg_attribution_row *row)
{
    return row->parent < a->n_rows ? &a->rows[row->parent] : NULL;
}

bool nrg_row_below_backward(const struct nrg_attribution *a, const struct nrg_attribution_row *row)
{
    for (row = nrg_row_above(a, row); row; row = nrg_row_above(a, row))
        if (nrg_row_is(row, NRG_KIND_BACKWARD))
            return true;
    return false;
}

static const struct nrg_attribution_row *outermost(const struct nrg_attribution *a,
                                                   const struct nrg_attribution_row *row)
{
    const struct nrg_attribution_row *found = row;
    for (; row; row = nrg_row_above(a, row))
        if (nrg_row_is(row, NRG_KIND_MODULE))
            found = row;
    return found;
}

/* "Net" and "Net#2" are of class Net. */
static bool named_by_class(const char *name, const char *class_name)
{
    size_t len = strlen(class_name);
    return len && !strncmp(name, class_name, len) && (!name[len] || name[len] == '#');
}

const char *nrg_module_path(const struct nrg_attribution *a, const struct nrg_attribution_row *row,
                            const char *root_class)
{
    const struct nrg_attribution_row *root = outermost(a, row);
    size_t len = strlen(root->name);
    if (!named_by_class(root->name, root->detail))
        return row->name;
    if (root_class[0] && strcmp(root->detail, root_class))
        return NULL;
    if (row == root)
        return "";
    if (!strncmp(row->name, root->name, len) && row->name[len] == '.')
        return row->name + len + 1;
    return row->name;
}
