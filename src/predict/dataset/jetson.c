/*
 * The Jetson study's data (edge-vision-power-estimation): per layer, the mean power above idle in
 * microwatts and the mean run time in milliseconds, either with the layer's features
 * (convolutional.csv, pooling.csv, dense.csv in a model's folder) or as statistics by layer name,
 * which a TensorRT engine info or a model summary then describes.
 *
 * Energy is power times time. The study mapped both to layers by time stamps of a board meter that
 * is slower than any layer, so the rows are `derived`, not measured.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/reader.h"
#include "predict/dataset/internal.h"
#include "predict/dataset/layer_features.h"

#define DEVICE "jetson"

static const struct {
    const char *name;
    enum nrg_feature feature;
} columns[] = {
    {"batch_size", NRG_F_BATCH},    {"input_size_0", NRG_F_IN_0},   {"input_size_1", NRG_F_IN_1},
    {"input_size_2", NRG_F_IN_2},   {"output_size_0", NRG_F_OUT_0}, {"output_size_1", NRG_F_OUT_1},
    {"output_size_2", NRG_F_OUT_2}, {"kernel_0", NRG_F_KERNEL_0},   {"kernel_1", NRG_F_KERNEL_1},
    {"padding_0", NRG_F_PADDING_0}, {"padding_1", NRG_F_PADDING_1}, {"stride_0", NRG_F_STRIDE_0},
    {"stride_1", NRG_F_STRIDE_1},   {"input_size", NRG_F_IN_0},     {"output_size", NRG_F_OUT_0},
};
#define COLUMNS (sizeof columns / sizeof *columns)

/* What each layer type must have, by index in `columns`. */
static const unsigned needed[NRG_LAYER_TYPES] = {0x1fff, 0x19ff, 0x6001};

struct header {
    int at[COLUMNS], power, runtime, name;
};

struct jetson {
    struct nrg_dataset *set;
    const char *file, *device, *model;
    int type; /* of rows with features: their layer type, and the file's columns */
    struct header header;
    struct nrg_draft draft;
    struct nrg_error *err;
};

static int no_memory(struct jetson *in)
{
    return nrg_fail(in->err, -ENOMEM, in->file, "out of memory");
}

static int init_jetson(struct jetson *in, struct nrg_dataset *set, const char *file,
                       const char *model, const struct nrg_read_options *options,
                       struct nrg_error *err)
{
    const char *device = options->device ? options->device : DEVICE;
    *in = (struct jetson){.set = set, .file = file, .err = err};
    in->device = nrg_dataset_text(set, device, strlen(device));
    in->model = nrg_dataset_text(set, model, strlen(model));
    nrg_draft_clear(&in->draft);
    return in->device && in->model ? nrg_dataset_counted_by(set, "nrg", file, err) : no_memory(in);
}

/* Adds a row whose draft has its features. */
static int add_layer(struct jetson *in, const char *type, struct nrg_cell name, double power_uw,
                     double time_ms, double repeats, long long line)
{
    struct nrg_row *row = &in->draft.row;
    uint32_t at;
    if (!(power_uw > 0) || !(time_ms > 0))
        return nrg_dataset_note(in->set, in->file, line,
                                "power or run time is not a positive number: row left out")
                   ? no_memory(in)
                   : 0;
    row->device = in->device;
    row->model = in->model;
    row->level = NRG_NODE_OPERATOR;
    row->kind = nrg_dataset_text(in->set, type, strlen(type));
    row->node = nrg_dataset_text(in->set, name.text, name.len);
    row->provenance = nrg_dataset_text(in->set, "derived", 7);
    row->energy_j = power_uw * 1e-6 * time_ms * 1e-3;
    row->repeats = repeats;
    in->draft.features[NRG_F_TIME_S] = time_ms * 1e-3;
    return nrg_dataset_add(in->set, &in->draft, &at) ? no_memory(in) : 0;
}

/* ---- rows with features ---- */

static int read_header(void *arg, const struct nrg_csv *csv, struct nrg_error *err)
{
    int type = ((struct jetson *)arg)->type;
    struct header *h = &((struct jetson *)arg)->header;
    const char *missing = NULL;
    for (size_t i = 0; i < COLUMNS; i++) {
        h->at[i] = nrg_csv_find(csv, columns[i].name);
        if (h->at[i] < 0 && needed[type] >> i & 1)
            missing = columns[i].name;
    }
    h->power = nrg_csv_find(csv, "power");
    h->runtime = nrg_csv_find(csv, "runtime");
    h->name = nrg_csv_find(csv, "layer_name");
    if (h->power < 0 || h->runtime < 0)
        missing = h->power < 0 ? "power" : "runtime";
    return missing ? nrg_fail_at(err, -EBADMSG, csv->name, csv->line,
                                 "misses the column '%s' of %s layers", missing,
                                 nrg_layer_type_names[type])
                   : 0;
}

static int read_row(void *arg, const struct nrg_csv *csv, struct nrg_error *err)
{
    struct jetson *in = arg;
    const struct header *h = &in->header;
    int type = in->type;
    double power, runtime;
    int rc = nrg_cell_number(csv->cells[h->power], &power);
    if (!rc)
        rc = nrg_cell_number(csv->cells[h->runtime], &runtime);
    nrg_draft_clear(&in->draft);
    for (size_t i = 0; !rc && i < COLUMNS; i++)
        if (h->at[i] >= 0 && needed[type] >> i & 1) {
            double *value = &in->draft.features[columns[i].feature];
            rc = nrg_cell_number(csv->cells[h->at[i]], value);
            if (!rc && !(*value >= 0))
                return nrg_dataset_note(in->set, in->file, csv->line,
                                        "a feature is missing or negative: row left out")
                           ? no_memory(in)
                           : 0;
        }
    if (rc)
        return nrg_fail_at(in->err, -EBADMSG, in->file, csv->line, "a cell is not a number");
    struct nrg_cell name = h->name >= 0 ? csv->cells[h->name] : (struct nrg_cell){"", 0};
    return add_layer(in, nrg_layer_type_names[type], name, power, runtime, NAN, csv->line);
}

int nrg_dataset_read_jetson(struct nrg_dataset *set, struct nrg_text file, int type,
                            const char *model, const struct nrg_read_options *options,
                            struct nrg_error *err)
{
    struct jetson in;
    int rc = init_jetson(&in, set, file.name, model, options, err);
    in.type = type;
    if (!rc)
        rc = nrg_csv_read(file, &in, read_header, read_row, err);
    if (rc == -ENODATA) /* as the study writes them for models without such layers */
        rc = nrg_dataset_note(set, file.name, -1, "holds no layers") ? no_memory(&in) : 0;
    nrg_draft_release(&in.draft);
    return rc;
}

/* ---- statistics by layer name ---- */

struct layer_stat {
    struct nrg_cell name;
    double count, mean;
    long long line;
};

struct stats {
    struct layer_stat *items;
    size_t n, cap;
    int name, count, mean; /* columns */
};

static int read_stats_header(void *arg, const struct nrg_csv *csv, struct nrg_error *err)
{
    struct stats *stats = arg;
    stats->name = nrg_csv_find(csv, "layer_name");
    stats->count = nrg_csv_find(csv, "count");
    stats->mean = nrg_csv_find(csv, "mean");
    return stats->name >= 0 && stats->count >= 0 && stats->mean >= 0
               ? 0
               : nrg_fail(err, -EBADMSG, csv->name,
                          "misses one of the columns layer_name, count, mean");
}

static int read_stats_row(void *arg, const struct nrg_csv *csv, struct nrg_error *err)
{
    struct stats *stats = arg;
    struct layer_stat s = {.name = csv->cells[stats->name], .line = csv->line};
    if (nrg_cell_number(csv->cells[stats->count], &s.count) ||
        nrg_cell_number(csv->cells[stats->mean], &s.mean))
        return nrg_fail_at(err, -EBADMSG, csv->name, csv->line, "is not a row of statistics");
    return nrg_append(&stats->items, &stats->n, &stats->cap, &s, sizeof s)
               ? nrg_fail(err, -ENOMEM, csv->name, "out of memory")
               : 0;
}

static const struct nrg_op *layer_by_name(const struct nrg_model *model, struct nrg_cell name)
{
    const struct nrg_block *body = model->n_graphs ? model->graphs[0]->body : NULL;
    for (size_t i = 0; body && i < body->n_ops; i++) {
        const char *label = body->ops[i]->label;
        if (label && strlen(label) == name.len && !memcmp(label, name.text, name.len))
            return body->ops[i];
    }
    return NULL;
}

static int add_stat(struct jetson *in, const struct layer_stat *power,
                    const struct layer_stat *run_time, const struct nrg_model *model, bool original)
{
    const struct nrg_op *op = layer_by_name(model, power->name);
    nrg_draft_clear(&in->draft);
    int type = op ? nrg_layer_of(op, original, in->draft.features) : -1;
    const char *why = !run_time  ? "layers without a run time: left out"
                      : !op      ? "layers that their description does not name: left out"
                      : type < 0 ? "layers other than convolution, pool and dense: left out"
                                 : NULL;
    if (why)
        return nrg_dataset_note(in->set, in->file, power->line, why) ? no_memory(in) : 0;
    return add_layer(in, nrg_layer_type_names[type], power->name, power->mean, run_time->mean,
                     power->count, power->line);
}

static const struct layer_stat *find_stat(const struct stats *stats, struct nrg_cell name)
{
    for (size_t i = 0; i < stats->n; i++)
        if (stats->items[i].name.len == name.len &&
            !memcmp(stats->items[i].name.text, name.text, name.len))
            return &stats->items[i];
    return NULL;
}

int nrg_dataset_read_jetson_stats(struct nrg_dataset *set, struct nrg_text power,
                                  struct nrg_text run_time, const char *layers, const char *model,
                                  const struct nrg_read_options *options, struct nrg_error *err)
{
    struct jetson in;
    struct stats powers = {0}, times = {0};
    struct nrg_model described = {0};
    int rc = init_jetson(&in, set, power.name, model, options, err);
    if (!rc)
        rc = nrg_csv_read(power, &powers, read_stats_header, read_stats_row, err);
    if (!rc)
        rc = nrg_csv_read(run_time, &times, read_stats_header, read_stats_row, err);
    if (!rc)
        rc = nrg_model_read(layers, NULL, &described, err);
    for (size_t i = 0; !rc && i < powers.n; i++)
        rc = add_stat(&in, &powers.items[i], find_stat(&times, powers.items[i].name), &described,
                      options->original_layers);
    nrg_model_release(&described);
    nrg_draft_release(&in.draft);
    free(powers.items);
    free(times.items);
    return rc;
}
