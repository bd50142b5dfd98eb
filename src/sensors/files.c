/*
 * See files.h. State is two arrays: the distinct files (descriptor, last value, last error) and
 * the channels, each naming one file or two. Both are made at open; read only fills them in.
 * Files of one group are adjacent because the channels of a group are.
 */
#include "sensors/files.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define NO_FILE SIZE_MAX
#define LOOK_NS (NRG_NS_PER_S / 4)

struct file {
    char path[160];
    unsigned group;
    int fd;
    int fault;
    int64_t value;
};

struct column {
    unsigned group;
    size_t a, b; /* indices of files; NO_FILE: not wanted, or no second factor */
    int fault;
};

struct files {
    struct file *items;
    size_t n, cap;
    struct column *columns;
    int64_t *raw;
    size_t n_columns;
    int64_t looked_ns; /* when it was last checked that the files are still there */
};

void nrg_files_close(void *state)
{
    struct files *f = state;
    for (size_t i = 0; i < f->n; i++)
        close(f->items[i].fd);
    free(f->items);
    free(f->columns);
    free(f->raw);
    free(f);
}

/* Index of the file, opened now unless this group has it already. */
static int add_file(struct files *f, const struct nrg_root *root, const char *path, unsigned group,
                    size_t *index)
{
    for (size_t i = f->n; i-- > 0 && f->items[i].group == group;) {
        if (!strcmp(f->items[i].path, path)) {
            *index = i;
            return 0;
        }
    }
    int rc = nrg_reserve(&f->items, &f->cap, f->n + 1, sizeof *f->items);
    if (rc)
        return rc;
    int fd = nrg_root_open(root, path, O_RDONLY);
    if (fd < 0)
        return fd;
    f->items[f->n] = (struct file){.fd = fd, .group = group};
    nrg_copy(f->items[f->n].path, sizeof f->items->path, path);
    *index = f->n++;
    return 0;
}

/* Splits "DIR/a*b" into "DIR/a" and "DIR/b"; false when there is no second factor. */
static bool split_source(const char *source, char *a, char *b, size_t size)
{
    const char *star = strchr(source, '*'), *slash = strrchr(source, '/');
    nrg_copy(a, size, source);
    if (!star || !slash || slash > star)
        return false;
    a[star - source] = '\0';
    snprintf(b, size, "%.*s%s", (int)(slash + 1 - source), source, star + 1);
    return true;
}

static int add_column(struct files *f, const struct nrg_root *root,
                      const struct nrg_channel *channel, bool wanted)
{
    char a[160], b[160];
    struct column *column = &f->columns[f->n_columns++];
    *column = (struct column){.group = channel->group, .a = NO_FILE, .b = NO_FILE};
    if (!wanted)
        return 0;
    bool product = split_source(channel->source, a, b, sizeof a);
    int rc = add_file(f, root, a, channel->group, &column->a);
    if (!rc && product)
        rc = add_file(f, root, b, channel->group, &column->b);
    return rc;
}

int nrg_files_open(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                   struct nrg_error *err)
{
    struct files *f = calloc(1, sizeof *f);
    if (!f)
        return nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    f->columns = calloc(found->n_channels + 1, sizeof *f->columns);
    f->raw = calloc(found->n_channels + 1, sizeof *f->raw);
    if (!f->columns || !f->raw) {
        nrg_files_close(f);
        return nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    }
    for (size_t c = 0; c < found->n_channels; c++) {
        int rc = add_column(f, &ctx->root, &found->channels[c], found->wanted[c]);
        if (rc) {
            nrg_files_close(f);
            return nrg_fail(err, rc, found->channels[c].source, "cannot open: %s", strerror(-rc));
        }
    }
    *state = f;
    return 0;
}

static int column_value(const struct files *f, const struct column *column, int64_t *raw)
{
    static const struct file one = {.value = 1};
    *raw = NRG_MISSING;
    if (column->a == NO_FILE)
        return 0;
    const struct file *a = &f->items[column->a];
    const struct file *b = column->b == NO_FILE ? &one : &f->items[column->b];
    if (a->fault || b->fault)
        return a->fault ? a->fault : b->fault;
    bool overflow = __builtin_mul_overflow(a->value, b->value, raw);
    if (overflow)
        *raw = NRG_MISSING;
    return *raw == NRG_MISSING ? -ERANGE : 0;
}

/* Reads the files of one group and emits its row; `first` is its first column. */
static size_t read_group(struct files *f, size_t first, size_t *file, struct nrg_sink *sink)
{
    unsigned group = f->columns[first].group;
    size_t end = first;
    int64_t before = nrg_now_ns();
    for (; *file < f->n && f->items[*file].group == group; ++*file)
        f->items[*file].fault = nrg_pread_i64(f->items[*file].fd, &f->items[*file].value);
    int64_t after = nrg_now_ns();
    while (end < f->n_columns && f->columns[end].group == group)
        end++;
    for (size_t c = first; c < end; c++)
        f->columns[c].fault = column_value(f, &f->columns[c], &f->raw[c]);
    nrg_sink_row(sink, group, before + (after - before) / 2, after - before, &f->raw[first]);
    for (size_t c = first; c < end; c++)
        nrg_sink_fault(sink, (unsigned)c, f->columns[c].fault);
    return end;
}

/* The kernel's files end with their device. Any other file system lets us read on what was
 * removed, so that a sensor which left would show its last value for ever. */
static bool are_removed(struct files *f)
{
    struct stat st;
    size_t i = 0;
    int64_t now = nrg_now_ns();
    if (now - f->looked_ns < LOOK_NS)
        return false;
    f->looked_ns = now;
    while (i < f->n && !fstat(f->items[i].fd, &st) && st.st_nlink == 0)
        i++;
    return f->n && i == f->n;
}

int nrg_files_read(void *state, struct nrg_sink *sink)
{
    struct files *f = state;
    size_t gone = 0, file = 0;
    if (are_removed(f))
        return -ENODEV;
    for (size_t c = 0; c < f->n_columns;)
        c = read_group(f, c, &file, sink);
    for (size_t i = 0; i < f->n; i++)
        gone += f->items[i].fault == -ENODEV;
    return f->n && gone == f->n ? -ENODEV : 0;
}

int nrg_files_share(void *state, enum nrg_share *how, int fds[NRG_SHARE_MAX])
{
    const struct files *f = state;
    int n = 0;
    *how = NRG_SHARE_NUMBER;
    for (size_t c = 0; c < f->n_columns; c++) {
        if (f->columns[c].a == NO_FILE)
            continue;
        if (f->columns[c].b != NO_FILE || n == NRG_SHARE_MAX)
            return -ENOTSUP;
        fds[n++] = f->items[f->columns[c].a].fd;
    }
    return n;
}

bool nrg_cpu_is_covered(const struct nrg_probe *probe)
{
    for (size_t f = 0; f < probe->n_found; f++) {
        const struct nrg_found *found = &probe->found[f];
        for (size_t c = 0; !found->hidden && c < found->n_channels; c++)
            if (found->channels[c].covers_cpu && found->channels[c].provenance != NRG_ESTIMATED)
                return true;
    }
    return false;
}

struct nrg_channel *nrg_find_channel(const struct nrg_probe *probe, const char *name,
                                     enum nrg_quantity quantity)
{
    for (size_t f = 0; f < probe->n_found; f++) {
        struct nrg_found *found = &probe->found[f];
        for (size_t c = 0; c < found->n_channels; c++)
            if ((quantity == NRG_QUANTITIES || found->channels[c].quantity == quantity) &&
                !strcmp(found->channels[c].name, name))
                return &found->channels[c];
    }
    return NULL;
}

void nrg_unique_name(const struct nrg_probe *probe, enum nrg_quantity quantity, char *name,
                     size_t size)
{
    char base[48];
    nrg_copy(base, sizeof base, name);
    for (unsigned i = 2; i < 1000 && nrg_find_channel(probe, name, quantity); i++)
        snprintf(name, size, "%.40s-%u", base, i);
}

unsigned nrg_next_gpu(const struct nrg_probe *probe)
{
    unsigned next = 0;
    for (size_t f = 0; f < probe->n_found; f++) {
        const struct nrg_found *found = &probe->found[f];
        for (size_t c = 0; c < found->n_channels; c++) {
            const char *name = found->channels[c].name;
            if (strncmp(name, "gpu-", 4) || !isdigit((unsigned char)name[4]))
                continue;
            unsigned long number = strtoul(name + 4, NULL, 10);
            if (number < 10000 && number >= next)
                next = (unsigned)number + 1;
        }
    }
    return next;
}
