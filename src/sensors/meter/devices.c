/*
 * nvidia-smi prints a line per GPU, and how many there are shows in its output only. So a program
 * of that name is listened to before a run, until a GPU comes for the second time, and what was
 * heard is added to the URI as rows=. Other programs are not started twice: their users give rows=.
 * Lines that come several at a time and name no GPU are refused: nobody could tell them apart.
 * What it shows is GPUs, so unless the user says otherwise it is not the machine's plug.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sensors/meter/internal.h"
#include "sensors/meter/text/table.h"
#include "sensors/nvidia_smi.h"

#define LISTEN_NS (3 * NRG_NS_PER_S)
#define TOGETHER  (NRG_NS_PER_S / 4) /* of lines of one moment, before a long silence */

enum { SPACINGS = 64 };

struct listener {
    struct nrg_table table;
    struct nrg_meter_field fields[NRG_METER_FIELDS];
    char line[1024], devices[NRG_TABLE_DEVICES][NRG_TABLE_KEY_BYTES];
    size_t len, n_fields, n_devices;
    int64_t last_ns, spacings_ns[SPACINGS]; /* of lines that name no device, by their own times */
    size_t n_unnamed;
    bool enough;
};

static void hear_time(struct listener *l)
{
    double values[NRG_METER_FIELDS];
    struct nrg_table_row row = {.values = values};
    int64_t t_ns;
    if (nrg_table_read(&l->table, l->line, l->len, l->fields, l->n_fields, &row) != NRG_TABLE_ROW ||
        !row.time || nrg_smi_read_time((struct nrg_cell){row.time, row.time_len}, &t_ns))
        return;
    if (l->n_unnamed && l->n_unnamed <= SPACINGS)
        l->spacings_ns[l->n_unnamed - 1] = t_ns - l->last_ns;
    l->last_ns = t_ns;
    l->n_unnamed++;
}

/* How many GPUs the lines are of that name none; 0: of one. */
static size_t unnamed_devices(const struct listener *l)
{
    size_t n = l->n_unnamed > SPACINGS ? SPACINGS : l->n_unnamed ? l->n_unnamed - 1 : 0;
    size_t at_once = nrg_smi_lines_at_once(l->spacings_ns, n);
    int64_t all_ns = 0;
    for (size_t i = 0; i < n; i++)
        all_ns += l->spacings_ns[i];
    bool one_moment = n && l->n_unnamed <= NRG_TABLE_DEVICES && all_ns < TOGETHER;
    return !at_once && one_moment ? n + 1 : at_once;
}

static void hear_line(struct listener *l)
{
    char device[NRG_TABLE_KEY_BYTES];
    size_t i = 0;
    if (!nrg_table_device(&l->table, l->line, l->len, l->fields, device, sizeof device)) {
        hear_time(l);
        return;
    }
    while (i < l->n_devices && strcmp(l->devices[i], device))
        i++;
    l->enough |= i < l->n_devices || l->n_devices == NRG_TABLE_DEVICES;
    if (!l->enough)
        memcpy(l->devices[l->n_devices++], device, sizeof device);
}

static void hear_bytes(struct listener *l, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n && !l->enough; i++) {
        bool end = bytes[i] == '\n' || bytes[i] == '\r';
        if (end && l->len)
            hear_line(l);
        if (end || l->len == sizeof l->line - 1)
            l->len = 0;
        else
            l->line[l->len++] = bytes[i];
    }
}

static int listen_to(const char *command, struct listener *l, struct nrg_error *err)
{
    char bytes[4096];
    pid_t pid;
    int pidfd, fd = nrg_program_start(command, &pid, &pidfd, err);
    int64_t until_ns = nrg_now_ns() + LISTEN_NS, left_ns;
    ssize_t n = 1;
    if (fd < 0)
        return fd;
    while (n > 0 && !l->enough && (left_ns = until_ns - nrg_now_ns()) > 0) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (poll(&ready, 1, (int)(left_ns / NRG_NS_PER_MS) + 1) <= 0)
            break;
        n = read(fd, bytes, sizeof bytes);
        if (n > 0)
            hear_bytes(l, bytes, (size_t)n);
    }
    close(fd);
    nrg_program_stop(pid, pidfd, false);
    return 0;
}

static int complete_uri(struct nrg_uri *uri, const struct listener *l, struct nrg_error *err)
{
    struct nrg_str text = {0};
    char mark = uri->n_query ? '&' : '?';
    bool more = l->n_devices > 1;
    int rc = nrg_str_addf(&text, "%s", uri->given);
    if (!rc && !nrg_uri_text(uri, "covers")) {
        rc = nrg_str_addf(&text, "%ccovers=none", mark);
        mark = '&';
    }
    if (!rc && more)
        rc = nrg_str_addf(&text, "%crows=%s:", mark, l->table.key);
    for (size_t i = 0; !rc && more && i < l->n_devices; i++)
        rc = nrg_str_addf(&text, "%s%s", i ? "," : "", l->devices[i]);
    rc = rc ? nrg_fail(err, rc, uri->text, "out of memory") : nrg_uri_parse(uri, text.text, err);
    nrg_str_release(&text);
    return rc;
}

int nrg_meter_find_devices(struct nrg_uri *uri, struct nrg_error *err)
{
    if (strcmp(uri->scheme, "exec") || !strstr(uri->place, "nvidia-smi") ||
        nrg_uri_text(uri, "rows") || nrg_uri_text(uri, "pattern"))
        return 0;
    struct listener *l = calloc(1, sizeof *l);
    if (!l)
        return nrg_fail(err, -ENOMEM, uri->text, "out of memory");
    int rc = nrg_table_init(&l->table, nrg_uri_text(uri, "columns"), NULL,
                            nrg_uri_text(uri, "separator"), l->fields, &l->n_fields, err);
    rc = rc ? rc : listen_to(uri->place, l, err);
    size_t unnamed = rc || l->n_devices ? 0 : unnamed_devices(l);
    if (unnamed)
        rc = nrg_fail(err, -EINVAL, uri->text,
                      "its lines come %zu at a time, as of %zu GPUs, and nothing tells which is "
                      "whose: add index to nvidia-smi's --query-gpu",
                      unnamed, unnamed);
    rc = rc ? rc : complete_uri(uri, l, err);
    free(l);
    return rc;
}
