/* See gpu_agents.h. */
#include "import/layers/gpu_agents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/parse.h"
#include "import/internal.h"
#include "sensors/channel.h"

/* A GPU of agent_info.csv. */
struct listed {
    int64_t node, relative;
    int64_t address; /* PCI: domain, then bus, device and function */
};

struct list {
    struct listed *items;
    size_t n, cap;
};

/* "NVIDIA A100 (0)", "GPU 0", "Agent 4", "4". */
static void read_device(const char *text, struct nrg_gpu_agent *agent)
{
    struct nrg_trace_device device;
    size_t len = strlen(text);
    const char *open = strrchr(text, '(');
    if (nrg_trace_device(text, &device)) {
        agent->number = device.number;
        agent->kind = NRG_AGENT_OF_TYPE;
    } else if (open && len && text[len - 1] == ')' &&
               !nrg_parse_i64(open + 1, (size_t)(text + len - open) - 2, &agent->number)) {
        agent->kind = NRG_AGENT_GPU;
    } else if (!strncasecmp(text, "Agent ", 6) &&
               !nrg_parse_i64(text + 6, len - 6, &agent->number)) {
        agent->kind = NRG_AGENT_RELATIVE;
    } else if (!nrg_parse_i64(text, len, &agent->number)) {
        agent->kind = NRG_AGENT_NODE;
    }
}

int64_t nrg_gpu_agents_track(struct nrg_gpu_agents *a, struct nrg_layer_import *im,
                             struct nrg_cell device, const char *stream)
{
    char text[128], key[224];
    nrg_copy_clean(text, sizeof text, device.text, device.len);
    int len = snprintf(key, sizeof key, "%s%c%s", text, 0, stream);
    int64_t number = nrg_map_intern(&a->keys, key, (size_t)len);
    if (number < 0 || (size_t)number <= a->n)
        return number < 0 ? number : a->items[number - 1].track;
    struct nrg_gpu_agent agent = {.kind = NRG_AGENT_GPU};
    struct nrg_span_track track = {.kind = "gpu"};
    read_device(text, &agent);
    nrg_copy(agent.stream, sizeof agent.stream, stream);
    snprintf(track.name, sizeof track.name, "%.60s %.60s", text, stream); /* until it is known */
    agent.track = nrg_span_sink_track(im->sink, &track);
    if (agent.track < 0)
        return agent.track;
    int rc = nrg_append(&a->items, &a->n, &a->cap, &agent, sizeof agent);
    return rc ? rc : agent.track;
}

static int64_t number_at(const struct nrg_csv *row, int column)
{
    int64_t number;
    if (column < 0 || (size_t)column >= row->n)
        return -1;
    struct nrg_cell cell = row->cells[column];
    nrg_trim(&cell.text, &cell.len);
    return nrg_parse_i64(cell.text, cell.len, &number) ? -1 : number;
}

static int take_listed(struct list *list, const struct nrg_csv *row, const int *columns)
{
    struct nrg_cell type =
        row->n > (size_t)columns[2] ? row->cells[columns[2]] : (struct nrg_cell){"", 0};
    nrg_trim(&type.text, &type.len);
    if (type.len != 3 || strncasecmp(type.text, "GPU", 3) != 0)
        return 0;
    int64_t domain = number_at(row, columns[4]), location = number_at(row, columns[3]);
    const struct listed gpu = {.node = number_at(row, columns[0]),
                               .relative = number_at(row, columns[1]),
                               .address = (domain > 0 ? domain & 0xffffffff : 0) << 16 |
                                          (location > 0 ? location & 0xffff : 0)};
    return nrg_append(&list->items, &list->n, &list->cap, &gpu, sizeof gpu);
}

static int by_address(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* All rows of an open file; what does not fit is as if it were not there. */
static int read_rows(FILE *in, struct list *list)
{
    static const char *const names[] = {"Node_Id", "Logical_Node_Id", "Agent_Type", "Location_Id",
                                        "Domain"};
    int columns[] = {-1, -1, -1, -1, -1}, rc = 0;
    struct nrg_lines lines = {.in = in};
    while (!rc && nrg_lines_next(&lines) > 0) {
        struct nrg_csv cells;
        if (nrg_import_cells(&cells, lines.text.text, lines.text.len, NULL))
            break;
        if (lines.number == 1)
            for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                columns[i] = nrg_csv_find(&cells, names[i]);
        else if (columns[2] >= 0)
            rc = take_listed(list, &cells, columns);
        nrg_csv_release(&cells);
    }
    nrg_str_release(&lines.text);
    return rc;
}

/* "x_kernel_trace.csv" lies beside "x_agent_info.csv". */
static int read_list(const char *path, struct list *list)
{
    static const char *const ends[] = {"kernel_trace.csv", "memory_copy_trace.csv"};
    char beside[4200];
    struct nrg_input input;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t len = strlen(path), end = strlen(ends[i]);
        if (!nrg_ends_with(path, ends[i]) || len > 4000)
            continue;
        snprintf(beside, sizeof beside, "%.*sagent_info.csv", (int)(len - end), path);
        if (nrg_input_open(&input, beside, NULL))
            return 0;
        int rc = read_rows(input.in, list);
        nrg_input_close(&input);
        if (list->n)
            qsort(list->items, list->n, sizeof *list->items, by_address);
        return rc;
    }
    return 0;
}

/* How many agents that have work come before this one. */
static int64_t rank_of(const struct nrg_gpu_agents *a, int64_t number)
{
    int64_t rank = 0;
    for (size_t i = 0; i < a->n; i++) {
        bool counted = a->items[i].number >= number;
        for (size_t k = 0; k < i && !counted; k++)
            counted = a->items[k].number == a->items[i].number;
        rank += !counted;
    }
    return rank;
}

/* The number that an agent of the list has, of that kind. */
static int64_t number_of(const struct list *list, size_t at, int kind)
{
    int64_t before = 0;
    if (kind != NRG_AGENT_OF_TYPE)
        return kind == NRG_AGENT_RELATIVE ? list->items[at].relative : list->items[at].node;
    for (size_t i = 0; i < list->n; i++)
        before += list->items[i].node < list->items[at].node;
    return before;
}

static int64_t find_listed(const struct list *list, int64_t number, int kind)
{
    for (size_t i = 0; i < list->n; i++)
        if (number == number_of(list, i, kind))
            return (int64_t)i;
    return -1;
}

/* rocprofv3 writes "Agent 4" both of relative numbers and of nodes (--agent-index absolute): they
 * are the latter, where the former are not all GPUs. */
static int agents_are(const struct nrg_gpu_agents *a, const struct list *list)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->items[i].kind == NRG_AGENT_RELATIVE &&
            find_listed(list, a->items[i].number, NRG_AGENT_RELATIVE) < 0)
            return NRG_AGENT_NODE;
    return NRG_AGENT_RELATIVE;
}

static int64_t gpu_of(const struct nrg_gpu_agents *a, const struct list *list,
                      const struct nrg_gpu_agent *agent, int agents)
{
    int64_t gpu = -1;
    if (agent->kind != NRG_AGENT_GPU)
        gpu = find_listed(list, agent->number,
                          agent->kind == NRG_AGENT_RELATIVE ? agents : (int)agent->kind);
    if (gpu >= 0)
        return gpu;
    bool counted = agent->kind == NRG_AGENT_GPU || agent->kind == NRG_AGENT_OF_TYPE;
    return counted ? agent->number : rank_of(a, agent->number);
}

int nrg_gpu_agents_finish(struct nrg_gpu_agents *a, struct nrg_layer_import *im,
                          struct nrg_error *err)
{
    struct list list = {0};
    const char *domain = im->options->domain;
    bool guessed = false;
    if (read_list(im->file->path, &list)) {
        free(list.items);
        return nrg_layer_out_of_memory(im, err);
    }
    int agents = agents_are(a, &list);
    for (size_t i = 0; i < a->n; i++) {
        struct nrg_gpu_agent *agent = &a->items[i];
        struct nrg_span_track track = {.kind = "gpu"};
        int64_t gpu = gpu_of(a, &list, agent, agents);
        guessed |= agent->kind > NRG_AGENT_OF_TYPE && !list.n;
        snprintf(track.domain, sizeof track.domain, "gpu-%lld", (long long)gpu);
        nrg_copy(track.domain, sizeof track.domain, domain ? domain : track.domain);
        snprintf(track.name, sizeof track.name, "GPU %lld %.64s", (long long)gpu, agent->stream);
        nrg_span_sink_set_track(im->sink, agent->track, &track);
    }
    if (guessed)
        nrg_layer_note(im, "no agent_info.csv beside it: GPUs are counted in the order of the "
                           "agents that have work");
    free(list.items);
    return 0;
}

void nrg_gpu_agents_release(struct nrg_gpu_agents *a)
{
    nrg_map_release(&a->keys);
    free(a->items);
    *a = (struct nrg_gpu_agents){0};
}
