/*
 * Fuzz target: nrgd's side of its connections. The input is the views and versions of three clients
 * (one byte) and what happens, each behind its length (two bytes, of which the upper four bits are
 * who or what: a packet of a client, a second that is over, a counter that is moved, a client that
 * leaves, a list of sensors that is too old). Every reply must be of a size that its type has in
 * the client's version, carry descriptors only in the full view, and leave nothing open. All coarse
 * clients must get one row, and within an epoch their counters may not fall. Descriptors may be
 * few (two more bits), or not be sent (one more).
 */
#include <fcntl.h>
#include <ftw.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct nrg_context ctx;
static char root[] = "/tmp/nrg-fuzz-XXXXXX";

static void write_file(const char *zone, const char *name, const char *text, mode_t mode)
{
    char path[256];
    snprintf(path, sizeof path, "%s/sys/class/powercap/%s/%s", root, zone, name);
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) || chmod(path, mode))
        abort();
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

static void remove_tree(void)
{
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const struct nrg_context *tree(void)
{
    static const char *const folders[] = {"sys", "sys/class", "sys/class/powercap",
                                          "sys/class/powercap/intel-rapl:0",
                                          "sys/class/powercap/intel-rapl:0:0"};
    if (ctx.root.path[0])
        return &ctx;
    if (!mkdtemp(root) || atexit(remove_tree))
        abort();
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        if (mkdir(path, 0755))
            abort();
    }
    write_file("intel-rapl:0", "name", "package-0\n", 0644);
    write_file("intel-rapl:0", "energy_uj", "5000000\n", 0600);
    write_file("intel-rapl:0:0", "name", "core\n", 0644);
    write_file("intel-rapl:0:0", "energy_uj", "1000000\n", 0600);
    if (nrg_root_init(&ctx.root, root, NULL))
        abort();
    return &ctx;
}

#define CLIENTS 3

enum { TICK = CLIENTS, MOVE, LEAVE, RELOAD };

/* What a coarse client got last of a counter; not all ask for both. */
struct seen {
    int64_t t_ns, epoch, raw;
};

struct fixture {
    struct nrg_catalogs catalogs;
    struct nrg_session clients[CLIENTS];
    bool ended[CLIENTS];
    uint8_t how;   /* the first byte */
    int64_t epoch; /* of the coarse view */
    struct seen seen[2];
};

static void check_reply(const struct nrg_session *session, const struct nrg_reply *reply, int rc)
{
    unsigned version = reply->packet.head.version;
    if (!nrg_wire_speaks(version) ||
        reply->size != nrg_wire_size(version, reply->packet.head.type, false) ||
        (session->version && version != session->version && !rc) ||
        (rc && reply->packet.head.type != NRG_WIRE_REFUSED) ||
        (reply->n_fds && session->view != NRG_VIEW_FULL) || reply->n_fds > 2 ||
        reply->n_fds > session->spare_fds)
        abort();
    if (reply->packet.head.type == NRG_WIRE_SENSOR && nrg_wire_check_sensor(&reply->packet.sensor))
        abort();
    for (size_t i = 0; i < reply->n_fds; i++)
        if ((fcntl(reply->fds[i], F_GETFL) & O_ACCMODE) != O_RDONLY)
            abort();
}

/* The two counters, whoever asks for which: one row of a moment, and none falls in its epoch. */
static void check_coarse(struct fixture *f, const struct nrg_wire_row *row)
{
    if (!row->epoch || row->t_ns < row->epoch || row->epoch < f->epoch)
        abort();
    f->epoch = row->epoch;
    for (size_t i = 0; i < 2; i++) {
        struct seen *seen = &f->seen[i];
        if (row->raw[i] == NRG_MISSING)
            continue;
        if (row->raw[i] < 0 || (row->t_ns == row->epoch && row->raw[i]) ||
            (seen->epoch == row->epoch && row->raw[i] < seen->raw) ||
            (seen->t_ns == row->t_ns && row->raw[i] != seen->raw))
            abort();
        *seen = (struct seen){row->t_ns, row->epoch, row->raw[i]};
    }
}

static void come(struct fixture *f, size_t client)
{
    nrg_session_init(&f->clients[client], &f->catalogs,
                     f->how >> client & 1 ? NRG_VIEW_FULL : NRG_VIEW_COARSE);
    f->clients[client].spare_fds = 3 - (f->how >> CLIENTS & 3);
    f->ended[client] = false;
}

static void leave(struct fixture *f, size_t client)
{
    nrg_session_release(&f->clients[client]);
    come(f, client);
}

static void take(struct fixture *f, size_t client, const uint8_t *data, size_t n)
{
    struct nrg_session *session = &f->clients[client];
    union nrg_wire_packet packet;
    struct nrg_reply reply;
    if (f->ended[client])
        return;
    n = n < sizeof packet ? n : sizeof packet;
    memset(&packet, 0xa5, sizeof packet);
    memcpy(&packet, data, n);
    int rc = nrg_session_take(session, &packet, n, &reply);
    check_reply(session, &reply, rc);
    if (reply.n_fds && f->how >> 5 & 1) {
        rc = nrg_session_stream(session, &reply);
        check_reply(session, &reply, rc);
    }
    if (reply.packet.head.type == NRG_WIRE_ROW && session->view == NRG_VIEW_COARSE)
        check_coarse(f, &reply.packet.row);
    nrg_reply_release(&reply);
    f->ended[client] = rc != 0;
}

static void move(const uint8_t *data, size_t n)
{
    char text[32];
    uint64_t energy_uj = 0;
    memcpy(&energy_uj, data, n < sizeof energy_uj ? n : sizeof energy_uj);
    snprintf(text, sizeof text, "%llu\n", (unsigned long long)(energy_uj & INT64_MAX));
    write_file("intel-rapl:0", "energy_uj", text, 0600);
}

/* The next list is a new one, if the counter that never moves got another range. */
static void reload(struct fixture *f, size_t n)
{
    char text[32];
    snprintf(text, sizeof text, "%zu\n", 2000000000 + n);
    write_file("intel-rapl:0:0", "max_energy_range_uj", text, 0644);
    f->catalogs.newest->made_ns = 0;
}

static void happen(struct fixture *f, unsigned what, const uint8_t *data, size_t n)
{
    if (what < CLIENTS)
        take(f, what, data, n);
    else if (what == TICK)
        nrg_catalogs_tick(&f->catalogs);
    else if (what == MOVE)
        move(data, n);
    else if (what == LEAVE && n)
        leave(f, data[0] % CLIENTS);
    else if (what == RELOAD && f->catalogs.newest)
        reload(f, n);
    for (struct nrg_sensor_reader *r = f->catalogs.readers.first; r; r = r->next)
        r->now.t_ns = 0; /* a moment later */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fixture f = {.catalogs = {.ctx = tree()}};
    if (!size)
        return 0;
    f.how = data[0];
    for (size_t i = 0; i < CLIENTS; i++)
        come(&f, i);
    for (size_t at = 1; at + 2 <= size;) {
        size_t n = data[at] | (size_t)(data[at + 1] & 0x0f) << 8;
        unsigned what = data[at + 1] >> 4;
        at += 2;
        n = n < size - at ? n : size - at;
        happen(&f, what, data + at, n);
        at += n;
    }
    for (size_t i = 0; i < CLIENTS; i++)
        nrg_session_release(&f.clients[i]);
    nrg_catalogs_release(&f.catalogs);
    if (f.catalogs.newest || f.catalogs.readers.first)
        abort();
    return 0;
}
