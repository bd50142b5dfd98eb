/* See module_path.h. */
#include "attribute/module_path.h"

#include <string.h>

static const struct nrg_attribution_row *outermost(const struct nrg_attribution *a,
                                                   const struct nrg_attribution_row *row)
{
    const struct nrg_attribution_row *found = row;
    for (; row; row = row->parent < a->n_rows ? &a->rows[row->parent] : NULL)
        if (!strcmp(row->kind, NRG_KIND_MODULE))
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
