/*
 * IrEne's data (StonyBrookNLP, ACL 2021): a folder of four CSVs per device,
 *
 *   ml1_level_features.csv     layers with parameters, "<path>:<Class>"      operators
 *   ml2_level_features.csv     MatMul and Softmax in "<path of module>"      operators
 *   module_level_features.csv  every other module that was called            modules
 *   model_level_features.csv   the whole model                               models
 *
 *   batch_size,seq_len,flops (1e6),mem_bytes (2^20),cpu,mem,gpu,gpu_mem (%),gpu_clk,gpu_mem_clk
 *   (MHz),times_mean (s),gpu_energy_mean,energy_mean (J),level_name,model_name
 *
 * The paths make the tree: a node belongs to the nearest measured module above it, in its model and
 * at its batch size and sequence length. Operators without a node (add, gelu, masks, copies) appear
 * only in a module's own counts: what these have beyond the operators below is the rest.
 *
 * Rows whose energy is not a positive number are left out and counted.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "predict/dataset/internal.h"
#include "predict/dataset/irene_shape.h"

const char *const nrg_irene_names[NRG_IRENE_FILES] = {
    "ml1_level_features.csv", "ml2_level_features.csv", "module_level_features.csv",
    "model_level_features.csv"};

static const enum nrg_node_level file_levels[NRG_IRENE_FILES] = {
    NRG_NODE_OPERATOR, NRG_NODE_OPERATOR, NRG_NODE_MODULE, NRG_NODE_MODEL};

/* Columns with numbers: where they go and in which unit. */
static const struct {
    const char *name;
    enum nrg_feature feature;
    double unit;
    bool required;
} numbers[] = {
    {"batch_size", NRG_F_BATCH, 1, true},     {"seq_len", NRG_F_SEQ, 1, true},
    {"flops", NRG_F_SOURCE_FLOPS, 1e6, true}, {"mem_bytes", NRG_F_SOURCE_BYTES, 1048576, true},
    {"cpu", NRG_F_CPU_UTIL, 0.01, false},     {"mem", NRG_F_MEM_UTIL, 0.01, false},
    {"gpu", NRG_F_GPU_UTIL, 0.01, false},     {"gpu_mem", NRG_F_GPU_MEM_UTIL, 0.01, false},
    {"gpu_clk", NRG_F_GPU_HZ, 1e6, false},    {"gpu_mem_clk", NRG_F_GPU_MEM_HZ, 1e6, false},
    {"times_mean", NRG_F_TIME_S, 1, false},   {"gpu_energy_mean", NRG_F_GPU_ENERGY_J, 1, false},
};
#define NUMBERS (sizeof numbers / sizeof *numbers)

/* Rows of the embedding tables of IrEne's checkpoints, which its files do not have. */
static const struct {
    const char *model;
    double words, positions, types;
} tables[] = {
    {"bert-base-uncased", 30522, 512, 2}, {"distilbert-base-uncased", 30522, 512, 0},
    {"roberta-base", 50265, 514, 1},      {"gpt2", 50257, 1024, 0},
    {"distilgpt2", 50257, 1024, 0},       {"openai-gpt", 40478, 512, 0},
};

#define NOBODY UINT32_MAX

struct node {
    uint32_t model; /* number in order of appearance */
    enum nrg_node_level level;
    const char *path, *kind, *model_name;
    uint32_t depth; /* parts of the path */
    uint32_t parent, first_child, next;
    uint32_t row; /* in the data set */
    double energy_j;
    double below_flops, below_bytes; /* of the operators below, as IrEne counts */
    double v[NUMBERS];
};

struct columns {
    int number[NUMBERS], energy, level_name, model_name;
};

struct irene {
    struct columns columns; /* of the current file */
    enum nrg_node_level level;
    struct nrg_dataset *set;
    const char *device;
    struct nrg_error *err;
    struct node *nodes;
    size_t n, cap;
    struct nrg_map models;
    uint32_t n_models;
    struct nrg_draft draft;
};

static int no_memory(struct irene *in)
{
    return nrg_fail(in->err, -ENOMEM, in->device, "out of memory");
}

/* ---- reading ---- */

static int find_column(const struct nrg_csv *csv, const char *name, int *at, struct nrg_error *err)
{
    *at = nrg_csv_find(csv, name);
    return *at >= 0 ? 0
                    : nrg_fail_at(err, -EBADMSG, csv->name, csv->line,
                                  "misses the column '%s' of IrEne's files", name);
}

static int find_columns(void *arg, const struct nrg_csv *csv, struct nrg_error *err)
{
    struct columns *c = &((struct irene *)arg)->columns;
    int rc = find_column(csv, "energy_mean", &c->energy, err);
    if (!rc)
        rc = find_column(csv, "level_name", &c->level_name, err);
    if (!rc)
        rc = find_column(csv, "model_name", &c->model_name, err);
    for (size_t i = 0; !rc && i < NUMBERS; i++) {
        c->number[i] = nrg_csv_find(csv, numbers[i].name);
        if (numbers[i].required)
            rc = find_column(csv, numbers[i].name, &c->number[i], err);
    }
    return rc;
}

/* "<path>:<Class>"; a model's row has its name alone. */
static int name_node(struct irene *in, const struct nrg_csv *csv, struct nrg_cell name,
                     struct node *node)
{
    const char *colon = name.len ? memrchr(name.text, ':', name.len) : NULL;
    if (node->level == NRG_NODE_MODEL) {
        node->path = nrg_dataset_text(in->set, "", 0);
        node->kind = node->model_name;
        return node->path ? 0 : no_memory(in);
    }
    if (!colon || colon + 1 == name.text + name.len)
        return nrg_fail_at(in->err, -EBADMSG, csv->name, csv->line,
                           "level_name is not <path>:<class>");
    size_t len = (size_t)(colon - name.text);
    node->path = nrg_dataset_text(in->set, name.text, len);
    node->kind = nrg_dataset_text(in->set, colon + 1, name.len - len - 1);
    if (!node->path || !node->kind)
        return no_memory(in);
    node->depth = 1;
    for (const char *p = node->path; *p; p++)
        node->depth += *p == '.';
    return 0;
}

static int number_model(struct irene *in, struct nrg_cell name, struct node *node)
{
    node->model_name = nrg_dataset_text(in->set, name.text, name.len);
    if (!node->model_name)
        return no_memory(in);
    size_t len = strlen(node->model_name);
    int64_t known = nrg_map_number(&in->models, node->model_name, len);
    if (known < 0) {
        known = in->n_models++;
        if (nrg_map_put(&in->models, node->model_name, len, known))
            return no_memory(in);
    }
    node->model = (uint32_t)known;
    return 0;
}

static int read_numbers(struct irene *in, const struct nrg_csv *csv, const struct columns *c,
                        struct node *node)
{
    int rc = nrg_cell_number(csv->cells[c->energy], &node->energy_j);
    for (size_t i = 0; !rc && i < NUMBERS; i++) {
        node->v[i] = NAN;
        if (c->number[i] >= 0)
            rc = nrg_cell_number(csv->cells[c->number[i]], &node->v[i]);
        node->v[i] *= numbers[i].unit;
    }
    return rc ? nrg_fail_at(in->err, -EBADMSG, csv->name, csv->line, "a cell is not a number") : 0;
}

/* NULL, or why the row can't be used. */
static const char *unusable(const struct node *node)
{
    if (!(node->energy_j > 0))
        return "energy is not a positive number: row left out";
    if (!(node->v[0] > 0) || !(node->v[1] > 0))
        return "batch_size or seq_len is not a positive number: row left out";
    if (!(node->v[2] >= 0) || !(node->v[3] >= 0))
        return "flops or mem_bytes is not a number: row left out";
    return NULL;
}

static int read_row(void *arg, const struct nrg_csv *csv, struct nrg_error *err)
{
    struct irene *in = arg;
    const struct columns *c = &in->columns;
    struct node node = {
        .level = in->level, .parent = NOBODY, .first_child = NOBODY, .next = NOBODY};
    int rc = read_numbers(in, csv, c, &node);
    if (!rc)
        rc = number_model(in, csv->cells[c->model_name], &node);
    if (!rc)
        rc = name_node(in, csv, csv->cells[c->level_name], &node);
    if (rc)
        return rc;
    const char *why = unusable(&node);
    if (why)
        return nrg_dataset_note(in->set, csv->name, csv->line, why) ? no_memory(in) : 0;
    node.v[2] = round(node.v[2]); /* counts are whole numbers, written in millions */
    node.v[3] = round(node.v[3]);
    return nrg_append(&in->nodes, &in->n, &in->cap, &node, sizeof node) ? no_memory(in) : 0;
}

/* ---- the tree of one model at one size ---- */

static int by_size(const void *a, const void *b)
{
    const struct node *x = a, *y = b;
    if (x->model != y->model)
        return x->model < y->model ? -1 : 1;
    for (int i = 0; i < 2; i++)
        if (x->v[i] != y->v[i])
            return x->v[i] < y->v[i] ? -1 : 1;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    if (x->depth != y->depth) /* children before their parents */
        return x->depth > y->depth ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row; /* the order of the files */
}

/* The nearest module above. Operators of ml2 have the path of the module itself. */
static uint32_t parent_of(const struct nrg_map *modules, const struct node *nodes, size_t i,
                          uint32_t root)
{
    const char *path = nodes[i].path;
    size_t len = strlen(path);
    if (nodes[i].level == NRG_NODE_MODEL)
        return NOBODY;
    while (len) {
        int64_t at = nrg_map_number(modules, path, len);
        if (at >= 0 && (size_t)at != i)
            return (uint32_t)at;
        const char *dot = memrchr(path, '.', len);
        len = dot ? (size_t)(dot - path) : 0;
    }
    return root;
}

static int link_nodes(struct irene *in, struct node *nodes, size_t n)
{
    struct nrg_map modules = {0};
    uint32_t root = NOBODY;
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++) {
        if (nodes[i].level == NRG_NODE_MODEL)
            root = (uint32_t)i;
        if (nodes[i].level == NRG_NODE_MODULE)
            rc = nrg_map_put(&modules, nodes[i].path, strlen(nodes[i].path), (int64_t)i);
    }
    for (size_t i = n; !rc && i-- > 0;) {
        uint32_t parent = parent_of(&modules, nodes, i, root);
        nodes[i].parent = parent;
        if (parent == NOBODY)
            continue;
        nodes[i].next = nodes[parent].first_child;
        nodes[parent].first_child = (uint32_t)i;
    }
    nrg_map_release(&modules);
    return rc ? no_memory(in) : 0;
}

static double rows_of_table(const struct node *node)
{
    const char *dot = strrchr(node->path, '.'), *name = dot ? dot + 1 : node->path;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (strcmp(tables[i].model, node->model_name))
            continue;
        if (!strncmp(name, "position", 8) || !strcmp(name, "wpe"))
            return tables[i].positions;
        return !strncmp(name, "token_type", 10) ? tables[i].types : tables[i].words;
    }
    return 0;
}

static int operator_features(struct irene *in, const struct node *node, double *f)
{
    struct nrg_irene_op op = {.kind = node->kind,
                              .batch = node->v[0],
                              .seq = node->v[1],
                              .flops = node->v[2],
                              .bytes = node->v[3],
                              .rows_of_table = rows_of_table(node)};
    struct nrg_irene_cost cost;
    bool solved = nrg_irene_shape(&op, &cost);
    f[NRG_F_MACS] = cost.macs;
    f[NRG_F_READ_BYTES] = cost.read_bytes;
    f[NRG_F_WRITTEN_BYTES] = cost.written_bytes;
    f[NRG_F_COPIED_BYTES] = cost.copied_bytes;
    f[NRG_F_SCORE_BYTES] = cost.score_bytes;
    f[NRG_F_PARAMS] = cost.params;
    if (!solved && nrg_dataset_note(in->set, in->device, -1,
                                    "operators whose sizes do not follow from their counts: the "
                                    "file's own counts are taken"))
        return no_memory(in);
    return 0;
}

static int composite_features(struct irene *in, struct node *nodes, const struct node *node,
                              double *f)
{
    double params = 0;
    f[NRG_F_REST_FLOPS] = fmax(0, node->v[2] - node->below_flops);
    f[NRG_F_REST_BYTES] = fmax(0, node->v[3] - node->below_bytes);
    for (uint32_t c = node->first_child; c != NOBODY; c = nodes[c].next) {
        params += nrg_row_feature(in->set, nodes[c].row, NRG_F_PARAMS);
        if (nrg_draft_part(&in->draft, nodes[c].row, 1))
            return no_memory(in);
    }
    f[NRG_F_PARAMS] = params;
    return 0;
}

static int add_node(struct irene *in, struct node *nodes, struct node *node)
{
    struct nrg_draft *draft = &in->draft;
    nrg_draft_clear(draft);
    for (size_t i = 0; i < NUMBERS; i++)
        draft->features[numbers[i].feature] = node->v[i];
    int rc = node->level == NRG_NODE_OPERATOR
                 ? operator_features(in, node, draft->features)
                 : composite_features(in, nodes, node, draft->features);
    if (rc)
        return rc;
    draft->row.device = in->device;
    draft->row.model = node->model_name;
    draft->row.node = node->path;
    draft->row.kind = node->kind;
    draft->row.level = node->level;
    draft->row.energy_j = node->energy_j;
    draft->row.provenance = nrg_dataset_text(in->set, "measured", 8);
    return nrg_dataset_add(in->set, draft, &node->row) ? no_memory(in) : 0;
}

/* Children come first: each node adds the counts of its operators to its parent. */
static int add_tree(struct irene *in, struct node *nodes, size_t n)
{
    int rc = link_nodes(in, nodes, n);
    for (size_t i = 0; !rc && i < n; i++) {
        struct node *node = &nodes[i];
        bool is_operator = node->level == NRG_NODE_OPERATOR;
        if (node->parent != NOBODY) {
            struct node *parent = &nodes[node->parent];
            parent->below_flops += is_operator ? node->v[2] : node->below_flops;
            parent->below_bytes += is_operator ? node->v[3] : node->below_bytes;
        }
        rc = add_node(in, nodes, node);
    }
    return rc;
}

static bool same_size(const struct node *a, const struct node *b)
{
    return a->model == b->model && a->v[0] == b->v[0] && a->v[1] == b->v[1];
}

static int add_trees(struct irene *in)
{
    int rc = 0;
    for (size_t i = 0; i < in->n; i++)
        in->nodes[i].row = (uint32_t)i;
    if (in->n)
        qsort(in->nodes, in->n, sizeof *in->nodes, by_size);
    for (size_t i = 0, end; !rc && i < in->n; i = end) {
        for (end = i + 1; end < in->n && same_size(&in->nodes[i], &in->nodes[end]);)
            end++;
        rc = add_tree(in, in->nodes + i, end - i);
    }
    return rc;
}

int nrg_dataset_read_irene(struct nrg_dataset *set, const struct nrg_text files[NRG_IRENE_FILES],
                           const char *device, struct nrg_error *err)
{
    struct irene in = {.set = set, .err = err};
    int rc = 0;
    in.device = nrg_dataset_text(set, device, strlen(device));
    if (!in.device)
        return nrg_fail(err, -ENOMEM, device, "out of memory");
    rc = nrg_dataset_counted_by(set, "irene", device, err);
    for (size_t i = 0; !rc && i < NRG_IRENE_FILES; i++) {
        in.level = file_levels[i];
        if (files[i].text)
            rc = nrg_csv_read(files[i], &in, find_columns, read_row, err);
    }
    if (!rc)
        rc = add_trees(&in);
    free(in.nodes);
    nrg_map_release(&in.models);
    nrg_draft_release(&in.draft);
    return rc;
}
