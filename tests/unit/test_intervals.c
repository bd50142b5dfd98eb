/*
 * Half widths from few and many folds, by kind and by support; and intervals of trees of modules,
 * which stay coherent whatever the graph.
 */
#include "support/cmocka.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predict/dataset/internal.h"
#include "predict/node_sums.h"
#include "predict/physical/conformal.h"
#include "predict/physical/interval.h"

static double next(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (double)(1u << 24);
}

static double normal(unsigned *seed)
{
    return sqrt(-2 * log(next(seed) + 1e-9)) * cos(2 * M_PI * next(seed));
}

static double half_of(const struct nrg_residual *r, size_t n, int kind, double prior)
{
    struct nrg_conformal c;
    assert_int_equal(nrg_conformal_init(&c, r, n, prior), 0);
    double half =
        nrg_conformal_half(&c, kind < 0 ? -1 : nrg_conformal_kind(&c, (uint64_t)kind), 0.95);
    nrg_conformal_release(&c);
    return half;
}

static void between(double value, double low, double high)
{
    if (!(value >= low && value <= high))
        fail_msg("%g is not within %g … %g", value, low, high);
}

/* Many folds: each kind has the quantile of its own errors. */
static void kinds_have_their_own(void **state)
{
    static struct nrg_residual r[40 * 100];
    unsigned seed = 3;
    size_t n = 0;
    (void)state;
    for (uint32_t fold = 0; fold < 40; fold++)
        for (int i = 0; i < 100; i++, n++)
            r[n] = (struct nrg_residual){fabs(normal(&seed)) * (i < 80 ? 0.02 : 0.3), 1,
                                         i < 80 ? 1 : 2, fold};
    between(half_of(r, n, 1, 0.1), 0.036, 0.056);
    between(half_of(r, n, 2, 0.1), 0.5, 0.7);
}

/* Few folds: near the prior, whatever they say, and not infinite. */
static void few_folds_lean_on_the_prior(void **state)
{
    struct nrg_residual one = {0.2, 5, 1, 0};
    struct nrg_residual two[] = {{0.01, 5, 1, 0}, {0.4, 5, 1, 1}};
    (void)state;
    between(half_of(NULL, 0, -1, 0.1), 0.19, 0.23);
    between(half_of(&one, 1, 1, 0.1), 0.2, 0.4);
    between(half_of(two, 2, 1, 0.1), 0.3, 1.0);
    between(half_of(two, 1, 1, 0.1), 0.1, 0.25);
}

/* Two kinds of several models, and on demand a third that one model alone has, far off. */
static void make_set(struct nrg_dataset *set, bool odd)
{
    char *text = NULL;
    size_t size = 0;
    unsigned seed = 7;
    FILE *out = open_memstream(&text, &size);
    static const struct nrg_read_options options;
    fprintf(out, "id,device,model,kind,level,parts,macs,read_bytes,written_bytes,rest_bytes,"
                 "energy_j\n");
    for (int i = 0, id = 1; i < 60; i++, id += 4) {
        double macs = 1e6 * pow(10, 3 * next(&seed)), bytes = 1e5 * pow(10, 3 * next(&seed));
        double gemm = (2e-3 + 5e-11 * macs + 8e-10 * bytes) * exp(0.03 * normal(&seed));
        double norm = (1e-3 + 8e-10 * bytes) * exp(0.03 * normal(&seed));
        double odd_j = 40 * norm;
        fprintf(out, "%d,d,m%d,Linear,operator,,%.9g,%.9g,0,,%.9g\n", id, i % 6, macs, bytes, gemm);
        fprintf(out, "%d,d,m%d,LayerNorm,operator,,0,%.9g,0,,%.9g\n", id + 1, i % 6, bytes, norm);
        fprintf(out, "%d,d,m%d,Block,module,%d %d:2,,,,1e5,%.9g\n", id + 2, i % 6, id, id + 1,
                (gemm + 2 * norm + 3e-3) * exp(0.03 * normal(&seed)));
        if (odd && i % 6 == 0)
            fprintf(out, "%d,d,m0,Odd,operator,,0,%.9g,0,,%.9g\n", id + 3, bytes, odd_j);
    }
    fclose(out);
    nrg_dataset_init(set);
    assert_int_equal(nrg_dataset_read_csv(set, text, size, "made", &options, NULL), 0);
    assert_int_equal(nrg_dataset_finish(set, NULL), 0);
    free(text);
}

/* A fit and the set that its names live in. */
struct trained {
    struct nrg_dataset set;
    struct nrg_physical model;
};

static void train(struct trained *t, bool odd)
{
    make_set(&t->set, odd);
    assert_int_equal(nrg_physical_train(&t->model, &t->set, NULL, NRG_SET_STATIC, 0.95, NULL), 0);
}

static void release(struct trained *t)
{
    nrg_physical_release(&t->model);
    nrg_dataset_release(&t->set);
}

/* A kind that no other fold has widens what stands in for it, and nothing else. */
static void odd_kinds_stay_apart(void **state)
{
    struct trained plain, odd;
    const struct nrg_physical *a = &plain.model, *b = &odd.model;
    (void)state;
    train(&plain, false);
    train(&odd, true);
    between(b->q[NRG_NODE_OPERATOR] / a->q[NRG_NODE_OPERATOR], 0.9, 1.1);
    between(b->q[NRG_NODE_MODULE] / a->q[NRG_NODE_MODULE], 0.9, 1.1);
    assert_true(b->stand_in[NRG_NODE_OPERATOR] > 1.5 * a->stand_in[NRG_NODE_OPERATOR]);
    release(&plain);
    release(&odd);
}

/* ---- trees ---- */

#define MOST_NODES     40
#define MOST_OPERATORS 120

struct graph {
    struct nrg_tree_node nodes[MOST_NODES];
    struct nrg_module_tree tree;
    struct nrg_node_estimate sums[MOST_NODES];
    struct nrg_op_estimate operators[MOST_OPERATORS];
    struct nrg_placed placed[MOST_OPERATORS];
    struct nrg_prediction out;
};

/* A tree in order of a walk: the parent of a node is one of those that are open. */
static void grow_tree(struct graph *g, unsigned *seed)
{
    g->tree = (struct nrg_module_tree){.nodes = g->nodes, .n = 1 + (size_t)(39 * next(seed))};
    for (size_t i = 1; i < g->tree.n; i++) {
        uint32_t parent = (uint32_t)i - 1;
        while (parent && next(seed) < 0.5)
            parent = g->nodes[parent].parent;
        g->nodes[i] = (struct nrg_tree_node){.parent = parent};
    }
}

/* From sizes far below to far above those trained on, known kinds and others. */
static void add_operators(struct graph *g, const struct nrg_physical *m, unsigned *seed)
{
    static const char *const kinds[] = {"Linear", "LayerNorm", "Conv2d", "Softmax"};
    g->out = (struct nrg_prediction){.nodes = g->sums, .n = g->tree.n, .operators = g->operators};
    g->out.n_operators = 1 + (size_t)(119 * next(seed));
    double reach = 2 + 8 * next(seed);
    for (size_t i = 0; i < g->out.n_operators; i++) {
        struct nrg_placed *p = &g->placed[i];
        const char *kind = kinds[(int)(4 * next(seed) * next(seed))];
        bool multiplies = kind != kinds[1] && kind != kinds[3];
        double beside_j = 0;
        *p = (struct nrg_placed){.node = (uint32_t)((double)g->tree.n * next(seed))};
        p->work = (struct nrg_work){.kind = kind,
                                    .times = 1 + (int)(3 * next(seed)),
                                    .is_rest = next(seed) < 0.2,
                                    .x = {1, multiplies ? pow(10, 9 - reach * next(seed)) : 0,
                                          pow(10, 8 - reach * next(seed))}};
        p->work.beside[p->work.is_rest ? NRG_PER_REST_BYTE : NRG_PER_OPERATOR] =
            p->work.is_rest ? p->work.x[NRG_PER_BYTE] : 1;
        if (!p->work.is_rest)
            nrg_physical_operator(m, kind, p->work.x, &p->estimate);
        for (int u = 0; u < NRG_MODULE_UNITS; u++)
            beside_j += m->module_joules[u] * p->work.beside[u];
        g->operators[i].estimate.energy_j = p->work.times * (p->estimate.energy_j + beside_j);
        g->operators[i].estimate.low_j = p->work.times * (p->estimate.low_j + beside_j);
        g->operators[i].estimate.high_j = p->work.times * (p->estimate.high_j + beside_j);
    }
}

/* Of every node: low <= energy <= high, and both within the parts end to end. */
static void check_coherent(const struct graph *g, unsigned round)
{
    for (size_t i = 0; i < g->tree.n; i++) {
        const struct nrg_node_estimate *n = &g->sums[i];
        double energy = n->self_j, low = n->self_low_j, high = n->self_high_j;
        for (size_t c = 1; c < g->tree.n; c++) {
            if (g->nodes[c].parent != i)
                continue;
            energy += g->sums[c].estimate.energy_j;
            low += g->sums[c].estimate.low_j;
            high += g->sums[c].estimate.high_j;
        }
        double e = n->estimate.energy_j, rounding = 1e-9 * n->estimate.high_j;
        if (fabs(energy - e) > rounding || n->estimate.low_j > e || n->estimate.high_j < e ||
            n->self_low_j > n->self_j + rounding || n->self_high_j < n->self_j - rounding ||
            n->estimate.low_j < low - rounding || n->estimate.high_j > high + rounding)
            fail_msg("graph %u, node %zu: %g [%g %g], parts %g [%g %g], self %g [%g %g]", round, i,
                     e, n->estimate.low_j, n->estimate.high_j, energy, low, high, n->self_j,
                     n->self_low_j, n->self_high_j);
    }
}

static void check_many(const struct nrg_physical *m, unsigned seed)
{
    static struct graph g;
    for (unsigned round = 0; round < 2000; round++) {
        memset(&g, 0, sizeof g);
        grow_tree(&g, &seed);
        add_operators(&g, m, &seed);
        assert_int_equal(nrg_sum_nodes(&g.out, m, &g.tree, g.placed), 0);
        check_coherent(&g, round);
    }
}

static void trees_are_coherent(void **state)
{
    struct trained t;
    struct nrg_physical *m = &t.model;
    (void)state;
    train(&t, false);
    check_many(m, 11);
    release(&t);
    train(&t, true); /* stand-ins far wider */
    check_many(m, 12);
    for (int u = 0; u < NRG_MODULE_UNITS; u++) { /* only operators were measured */
        m->module_range[u] = NRG_NO_RANGE;
        m->module_joules[u] = 0;
    }
    m->q[NRG_NODE_MODULE] = m->q[NRG_NODE_MODEL] = NAN;
    m->n_module_kinds = 0;
    check_many(m, 13);
    release(&t);
}

/* Two tiny operators outside of the range do not make a large model uncertain. */
static void outside_counts_by_its_share(void **state)
{
    static struct graph g;
    struct trained t;
    (void)state;
    train(&t, false);
    for (int odd = 0; odd < 2; odd++) {
        memset(&g, 0, sizeof g);
        g.tree = (struct nrg_module_tree){.nodes = g.nodes, .n = 3};
        g.out = (struct nrg_prediction){.nodes = g.sums, .n = 3, .operators = g.operators};
        g.out.n_operators = 30;
        for (size_t i = 0; i < 30; i++) {
            struct nrg_placed *p = &g.placed[i];
            bool tiny = odd && i > 27;
            *p = (struct nrg_placed){.node = i > 27 ? 2 : 1};
            p->work = (struct nrg_work){.times = 1, .x = {1, tiny ? 1 : 8e8, tiny ? 1 : 8e7}};
            nrg_physical_operator(&t.model, tiny && i == 29 ? "Conv2d" : "Linear", p->work.x,
                                  &p->estimate);
            g.operators[i].estimate = p->estimate;
        }
        assert_int_equal(nrg_sum_nodes(&g.out, &t.model, &g.tree, g.placed), 0);
        check_coherent(&g, 0);
        const struct nrg_estimate *all = &g.sums[0].estimate, *part = &g.sums[1].estimate;
        between((all->high_j / all->low_j) / (part->high_j / part->low_j), 0.9, 1.1);
    }
    release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_have_their_own),
        cmocka_unit_test(few_folds_lean_on_the_prior),
        cmocka_unit_test(odd_kinds_stay_apart),
        cmocka_unit_test(trees_are_coherent),
        cmocka_unit_test(outside_counts_by_its_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
