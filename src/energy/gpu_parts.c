/* See gpu_parts.h. */
#include "energy/gpu_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define ALL_PPM 1e6

static int on_rows(void *arg, const struct nrg_rows *rows)
{
    struct nrg_gpu_uses *uses = arg;
    int rc = nrg_reserve(&uses->items, &uses->cap, uses->n + rows->n, sizeof *uses->items);
    for (size_t i = 0; !rc && i < rows->n; i++) {
        int64_t sm = nrg_rows_column(rows, NRG_G_SM_PPM)[i];
        if (sm == NRG_MISSING || sm < 0)
            continue;
        int64_t size = rows->n_columns > NRG_G_SIZE_PPM ? nrg_rows_column(rows, NRG_G_SIZE_PPM)[i]
                                                        : NRG_MISSING;
        uses->items[uses->n++] = (struct nrg_gpu_use){
            rows->t_ns[i], nrg_rows_column(rows, NRG_G_GPU)[i], nrg_rows_column(rows, NRG_G_PID)[i],
            sm, size < 0 ? NRG_MISSING : size};
    }
    return rc;
}

static int by_gpu_and_time(const void *a, const void *b)
{
    const struct nrg_gpu_use *x = a, *y = b;
    if (x->gpu != y->gpu)
        return x->gpu < y->gpu ? -1 : 1;
    return x->t_ns < y->t_ns ? -1 : x->t_ns > y->t_ns;
}

int nrg_gpu_uses_read(struct nrg_gpu_uses *uses, struct nrg_recording *recording)
{
    *uses = (struct nrg_gpu_uses){0};
    int rc = nrg_recording_read_kind(recording, NRG_GPU_PROCESSES, 0, on_rows, uses, NULL);
    if (!rc && uses->n)
        qsort(uses->items, uses->n, sizeof *uses->items, by_gpu_and_time);
    return rc;
}

void nrg_gpu_uses_release(struct nrg_gpu_uses *uses)
{
    free(uses->items);
    *uses = (struct nrg_gpu_uses){0};
}

size_t nrg_gpu_uses_end(const struct nrg_gpu_uses *uses, size_t from)
{
    size_t end = from;
    while (end < uses->n && uses->items[end].gpu == uses->items[from].gpu &&
           uses->items[end].t_ns == uses->items[from].t_ns)
        end++;
    return end;
}

void nrg_gpu_report_add(struct nrg_gpu_report *r, const struct nrg_gpu_use *use, bool mine)
{
    double sm = (double)use->sm_ppm, size = (double)use->size_ppm;
    r->sm[mine] += sm;
    if (use->size_ppm == NRG_MISSING) {
        r->unsized = true;
        return;
    }
    double most = fmax(size, sm); /* less is a file's lie */
    r->sizes[mine] += size;
    r->clients[mine].sm += sm;
    r->clients[mine].least = fmax(r->clients[mine].least, most);
    r->clients[mine].most = fmin(ALL_PPM, r->clients[mine].most + most);
}

/* Watts of a client that computes alone, against one that has all processors to itself. */
static double weight(const struct nrg_gpu_report *r, bool mine)
{
    return r->sizes[mine] > 0 ? fmin(1, r->clients[mine].sm / r->sizes[mine]) : 0;
}

/*
 * The workload's part of what clients did: in time that one side had alone, that side used it
 * all, as many watts as processors that it may use; in time that both had, either may have. They
 * had as much time together as their times allow.
 */
static struct nrg_gpu_part clients_part(const struct nrg_gpu_report *r)
{
    double all = r->clients[0].sm + r->clients[1].sm;
    struct nrg_gpu_part p = {.part = r->clients[1].sm / all, .doubt = NRG_GPU_BY_CLIENT};
    double alone = fmax(0, r->clients[1].least - r->clients[0].most) * weight(r, true);
    double without = fmax(0, r->clients[0].least - r->clients[1].most) * weight(r, false);
    p.low = fmin(p.part, alone / (alone + r->clients[0].most));
    p.high = fmax(p.part, r->clients[1].most / (r->clients[1].most + without));
    return p;
}

/* Clients are a part of all that computed; of the rest it is known whose it is. */
static void widen_by_clients(const struct nrg_gpu_report *r, double all, struct nrg_gpu_part *part)
{
    if (!(r->clients[0].sm > 0 && r->clients[1].sm > 0))
        return;
    struct nrg_gpu_part c = clients_part(r);
    double clients = (r->clients[0].sm + r->clients[1].sm) / all;
    part->low -= (c.part - c.low) * clients;
    part->high += (c.high - c.part) * clients;
    part->doubt = c.doubt;
}

static void widen_by_instances(const struct nrg_gpu_report *r, struct nrg_gpu_part *part)
{
    double sizes = r->sizes[0] + r->sizes[1];
    if (!r->unsized && sizes > 0) {
        double by_size = r->sizes[1] / sizes;
        part->low = fmin(part->part, by_size);
        part->high = fmax(part->part, by_size);
        part->doubt = by_size > 0 && by_size < 1 ? NRG_GPU_BY_ACTIVITY : NRG_GPU_CERTAIN;
    } else if (part->part > 0 && part->part < 1 - 1e-9) {
        *part = (struct nrg_gpu_part){part->part, 0, 1, NRG_GPU_BY_SIZE};
    }
}

struct nrg_gpu_part nrg_gpu_report_part(const struct nrg_gpu_report *r, bool instances)
{
    double all = r->sm[0] + r->sm[1], part = all > 0 ? r->sm[1] / all : 0;
    struct nrg_gpu_part p = {part, part, part, NRG_GPU_CERTAIN};
    if (instances)
        widen_by_instances(r, &p);
    else
        widen_by_clients(r, all, &p);
    return p;
}

bool nrg_gpu_has_instances(const struct nrg_frame *frame, const char *gpu)
{
    size_t len = strlen(gpu);
    for (size_t i = 0; i < frame->n; i++) {
        const char *name = frame->channels[i].channel.name;
        if (!strncmp(name, gpu, len) && !strncmp(name + len, ".mig-", 5))
            return true;
    }
    return false;
}
