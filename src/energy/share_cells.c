/* See share_cells.h. A long run has longer cells: memory does not grow with it. */
#include "energy/share_cells.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

#define MAX_CELLS 4096

int nrg_share_cells_cut(struct nrg_share_cells *cells, int64_t begin_ns, int64_t end_ns,
                        int64_t edge_ns)
{
    int64_t duration_ns = end_ns - begin_ns, least_ns = duration_ns / MAX_CELLS;
    *cells = (struct nrg_share_cells){.begin_ns = begin_ns, .end_ns = end_ns};
    cells->length_ns = least_ns > NRG_LEAST_CELL_NS ? least_ns + 1 : NRG_LEAST_CELL_NS;
    cells->first_ns = edge_ns % cells->length_ns;
    int64_t rest_ns = duration_ns - cells->first_ns;
    cells->n = (size_t)((rest_ns + cells->length_ns - 1) / cells->length_ns) + 1;
    cells->at = nrg_calloc(cells->n + 1, sizeof *cells->at);
    return cells->at ? 0 : -ENOMEM;
}

int64_t nrg_cell_begin(const struct nrg_share_cells *cells, size_t k)
{
    return k ? cells->begin_ns + cells->first_ns + (int64_t)(k - 1) * cells->length_ns
             : cells->begin_ns;
}

int64_t nrg_cell_end(const struct nrg_share_cells *cells, size_t k)
{
    int64_t end_ns = nrg_cell_begin(cells, k + 1);
    return end_ns < cells->end_ns ? end_ns : cells->end_ns;
}

double nrg_cell_s(const struct nrg_share_cells *cells, size_t k)
{
    return (double)(nrg_cell_end(cells, k) - nrg_cell_begin(cells, k)) / 1e9;
}

size_t nrg_cell_at(const struct nrg_share_cells *cells, int64_t t_ns)
{
    int64_t since_ns = t_ns - cells->begin_ns - cells->first_ns;
    return since_ns < 0 ? 0 : 1 + (size_t)(since_ns / cells->length_ns);
}

double nrg_cell_sum(const struct nrg_share_cells *cells, const struct nrg_timeline *tl, size_t k)
{
    return tl ? nrg_timeline_between(tl, nrg_cell_begin(cells, k), nrg_cell_end(cells, k), NULL)
              : 0;
}
