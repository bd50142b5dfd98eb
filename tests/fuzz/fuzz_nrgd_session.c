/*
 * Fuzz target: nrgd's side of a connection. The input is a view and how many descriptors there are
 * to spare (one byte) and packets, each behind its length (two bytes), for one session on a
 * powercap tree of two counters. Every reply must be of a size that its type has, carry descriptors
 * only in the full view and as many as can be spared, and leave nothing open, also where they can't
 * be sent.
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

static void check_reply(const struct nrg_session *session, const struct nrg_reply *reply, int rc)
{
    if (reply->size != nrg_wire_size(reply->packet.head.type, false) ||
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nrg_catalogs catalogs = {.ctx = tree()};
    struct nrg_session session;
    if (!size)
        return 0;
    nrg_session_init(&session, &catalogs, data[0] & 1 ? NRG_VIEW_FULL : NRG_VIEW_COARSE);
    session.spare_fds = 3 - (data[0] >> 1 & 3);
    int rc = 0;
    for (size_t at = 1; !rc && at + 2 <= size;) {
        union nrg_wire_packet packet;
        struct nrg_reply reply;
        size_t n = data[at] | (size_t)data[at + 1] << 8;
        at += 2;
        n = n < size - at ? n : size - at;
        n = n < sizeof packet ? n : sizeof packet;
        memset(&packet, 0xa5, sizeof packet);
        memcpy(&packet, data + at, n);
        at += n;
        rc = nrg_session_take(&session, &packet, n, &reply);
        check_reply(&session, &reply, rc);
        if (reply.n_fds && data[0] & 8) {
            rc = nrg_session_stream(&session, &reply);
            check_reply(&session, &reply, rc);
        }
        nrg_reply_release(&reply);
        nrg_catalogs_tick(&catalogs);
    }
    nrg_session_release(&session);
    nrg_catalogs_release(&catalogs);
    if (catalogs.newest)
        abort();
    return 0;
}
