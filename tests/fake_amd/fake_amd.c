/*
 * A stand-in of AMD's two management libraries, as documented: compiled with ROCM it is ROCm SMI,
 * else AMD SMI. $NRG_FAKE_AMD names a script that is read at every call, so that a test can change
 * the machine. Declarations are AMD's, as far as needed, and not nrg's: a difference shows.
 *
 *   init CODE           the library does not start
 *   gpu BDF             a GPU, PCI address as 0000:c1:00.0; what follows is about it:
 *   power W             the counter moves with this many watts
 *   start COUNT         what the counter had at time 0 of CLOCK_MONOTONIC; it wraps at 2^64
 *   resolution UJ       of the counter; 15.3
 *   keep MS             values are renewed this often, and keep their stamp meanwhile
 *   still | zero        the counter stands still, at 4711 or at 0
 *   busy P, memory B, celsius C
 *   refuse WORD CODE    energy, busy, memory or celsius answers with this result; bdf, too
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST 16

struct refusal {
    char word[16];
    int code;
};

struct gpu {
    uint64_t bdf, start;
    double power_w, resolution_uj, keep_ms;
    bool still, zero;
    unsigned busy, celsius;
    unsigned long long memory;
    struct refusal refusals[8];
    int n_refusals;
};

struct machine {
    int init, n;
    struct gpu gpus[MOST];
};

static void read_word(struct machine *m, const char *line)
{
    unsigned domain, bus, device, function;
    struct gpu *g = m->n ? &m->gpus[m->n - 1] : NULL;
    if (sscanf(line, "init %d", &m->init) == 1)
        return;
    if (sscanf(line, "gpu %x:%x:%x.%x", &domain, &bus, &device, &function) == 4 && m->n < MOST) {
        m->gpus[m->n++] =
            (struct gpu){.bdf = (uint64_t)domain << 32 | bus << 8 | device << 3 | function,
                         .resolution_uj = 15.3,
                         .celsius = 40};
        return;
    }
    if (!g)
        return;
    struct refusal *r = &g->refusals[g->n_refusals];
    unsigned long long start;
    g->still |= !strncmp(line, "still", 5);
    g->zero |= !strncmp(line, "zero", 4);
    if (sscanf(line, "start %llu", &start) == 1)
        g->start = start;
    sscanf(line, "power %lf", &g->power_w);
    sscanf(line, "resolution %lf", &g->resolution_uj);
    sscanf(line, "keep %lf", &g->keep_ms);
    sscanf(line, "busy %u", &g->busy);
    sscanf(line, "celsius %u", &g->celsius);
    sscanf(line, "memory %llu", &g->memory);
    if (g->n_refusals < 8 && sscanf(line, "refuse %15s %d", r->word, &r->code) == 2)
        g->n_refusals++;
}

static struct machine machine_now(void)
{
    struct machine m = {0};
    char line[128];
    const char *path = getenv("NRG_FAKE_AMD");
    FILE *f = path ? fopen(path, "r") : NULL;
    while (f && fgets(line, sizeof line, f))
        read_word(&m, line);
    if (f)
        fclose(f);
    return m;
}

/* The GPU of a call; a result other than 0 when it refuses or is not there any more. */
static int find(size_t index, const char *word, int not_found, struct gpu *gpu)
{
    struct machine m = machine_now();
    if (index >= (size_t)m.n)
        return not_found;
    *gpu = m.gpus[index];
    for (int i = 0; i < gpu->n_refusals; i++)
        if (!strcmp(gpu->refusals[i].word, word))
            return gpu->refusals[i].code;
    return 0;
}

static void energy_of(const struct gpu *g, uint64_t *count, float *resolution, uint64_t *stamp_ns)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    double ms = (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
    if (g->keep_ms > 0)
        ms = (double)(uint64_t)(ms / g->keep_ms) * g->keep_ms;
    *count = g->start + (uint64_t)(g->power_w * ms * 1e3 / g->resolution_uj);
    if (g->still || g->zero)
        *count = g->zero ? 0 : 4711;
    *resolution = (float)g->resolution_uj;
    *stamp_ns = (uint64_t)(ms * 1e6) + UINT64_C(86400000000000); /* a clock of its own */
}

#ifdef ROCM

typedef uint32_t rsmi_status_t;
enum { INVALID_ARGS = 1, NOT_FOUND = 10 };

#define API __attribute__((visibility("default")))
API rsmi_status_t rsmi_init(uint64_t flags);
API rsmi_status_t rsmi_shut_down(void);
API rsmi_status_t rsmi_status_string(rsmi_status_t status, const char **text);
API rsmi_status_t rsmi_num_monitor_devices(uint32_t *n);
API rsmi_status_t rsmi_dev_pci_id_get(uint32_t i, uint64_t *bdf);
API rsmi_status_t rsmi_dev_energy_count_get(uint32_t i, uint64_t *c, float *r, uint64_t *t);
API rsmi_status_t rsmi_dev_busy_percent_get(uint32_t i, uint32_t *percent);
API rsmi_status_t rsmi_dev_memory_usage_get(uint32_t i, uint32_t type, uint64_t *used);
API rsmi_status_t rsmi_dev_temp_metric_get(uint32_t i, uint32_t type, uint32_t metric, int64_t *t);

rsmi_status_t rsmi_init(uint64_t flags)
{
    return flags ? INVALID_ARGS : (rsmi_status_t)machine_now().init;
}

rsmi_status_t rsmi_shut_down(void)
{
    return 0;
}

rsmi_status_t rsmi_status_string(rsmi_status_t status, const char **text)
{
    (void)status;
    *text = "RSMI_STATUS: as scripted";
    return 0;
}

rsmi_status_t rsmi_num_monitor_devices(uint32_t *n)
{
    *n = (uint32_t)machine_now().n;
    return 0;
}

rsmi_status_t rsmi_dev_pci_id_get(uint32_t i, uint64_t *bdf)
{
    struct gpu g;
    int rc = find(i, "bdf", INVALID_ARGS, &g);
    if (!rc)
        *bdf = g.bdf;
    return (rsmi_status_t)rc;
}

rsmi_status_t rsmi_dev_energy_count_get(uint32_t i, uint64_t *c, float *r, uint64_t *t)
{
    struct gpu g;
    int rc = find(i, "energy", NOT_FOUND, &g);
    if (!rc)
        energy_of(&g, c, r, t);
    return (rsmi_status_t)rc;
}

rsmi_status_t rsmi_dev_busy_percent_get(uint32_t i, uint32_t *percent)
{
    struct gpu g;
    int rc = find(i, "busy", NOT_FOUND, &g);
    if (!rc)
        *percent = g.busy;
    return (rsmi_status_t)rc;
}

rsmi_status_t rsmi_dev_memory_usage_get(uint32_t i, uint32_t type, uint64_t *used)
{
    struct gpu g;
    int rc = type ? INVALID_ARGS : find(i, "memory", NOT_FOUND, &g);
    if (!rc)
        *used = g.memory;
    return (rsmi_status_t)rc;
}

rsmi_status_t rsmi_dev_temp_metric_get(uint32_t i, uint32_t type, uint32_t metric, int64_t *t)
{
    struct gpu g;
    int rc = metric ? INVALID_ARGS : find(i, type ? "junction" : "celsius", NOT_FOUND, &g);
    if (!rc)
        *t = g.celsius * 1000;
    return (rsmi_status_t)rc;
}

#else

typedef uint32_t amdsmi_status_t;
typedef void *amdsmi_socket_handle;
typedef void *amdsmi_processor_handle;
enum { INVAL = 1, NOT_FOUND = 31 };

typedef struct {
    uint32_t gfx_activity, umc_activity, mm_activity, reserved[13];
} amdsmi_engine_usage_t;

#define API __attribute__((visibility("default")))
API amdsmi_status_t amdsmi_init(uint64_t flags);
API amdsmi_status_t amdsmi_shut_down(void);
API amdsmi_status_t amdsmi_status_code_to_string(amdsmi_status_t status, const char **text);
API amdsmi_status_t amdsmi_get_socket_handles(uint32_t *n, amdsmi_socket_handle *handles);
API amdsmi_status_t amdsmi_get_processor_handles(amdsmi_socket_handle socket, uint32_t *n,
                                                 amdsmi_processor_handle *handles);
API amdsmi_status_t amdsmi_get_gpu_bdf_id(amdsmi_processor_handle h, uint64_t *bdf);
API amdsmi_status_t amdsmi_get_energy_count(amdsmi_processor_handle h, uint64_t *c, float *r,
                                            uint64_t *t);
API amdsmi_status_t amdsmi_get_gpu_activity(amdsmi_processor_handle h, amdsmi_engine_usage_t *u);
API amdsmi_status_t amdsmi_get_gpu_memory_usage(amdsmi_processor_handle h, uint32_t type,
                                                uint64_t *used);
API amdsmi_status_t amdsmi_get_temp_metric(amdsmi_processor_handle h, uint32_t type,
                                           uint32_t metric, int64_t *t);

/* Handles are addresses in here: a wrong one is noticed. */
static char handles[MOST];

static size_t index_of(const void *handle)
{
    const char *at = handle;
    return at >= handles && at < handles + MOST ? (size_t)(at - handles) : MOST;
}

amdsmi_status_t amdsmi_init(uint64_t flags)
{
    return flags != 2 ? INVAL : (amdsmi_status_t)machine_now().init;
}

amdsmi_status_t amdsmi_shut_down(void)
{
    return 0;
}

amdsmi_status_t amdsmi_status_code_to_string(amdsmi_status_t status, const char **text)
{
    (void)status;
    *text = "AMDSMI_STATUS: as scripted";
    return 0;
}

/* One socket per GPU, as on boards of their own. */
amdsmi_status_t amdsmi_get_socket_handles(uint32_t *n, amdsmi_socket_handle *out)
{
    uint32_t have = (uint32_t)machine_now().n;
    for (uint32_t i = 0; out && i < have && i < *n; i++)
        out[i] = &handles[i];
    *n = have;
    return 0;
}

amdsmi_status_t amdsmi_get_processor_handles(amdsmi_socket_handle socket, uint32_t *n,
                                             amdsmi_processor_handle *out)
{
    if (index_of(socket) == MOST)
        return INVAL;
    if (out && *n)
        out[0] = socket;
    *n = 1;
    return 0;
}

amdsmi_status_t amdsmi_get_gpu_bdf_id(amdsmi_processor_handle h, uint64_t *bdf)
{
    struct gpu g;
    int rc = find(index_of(h), "bdf", INVAL, &g);
    if (!rc)
        *bdf = g.bdf;
    return (amdsmi_status_t)rc;
}

amdsmi_status_t amdsmi_get_energy_count(amdsmi_processor_handle h, uint64_t *c, float *r,
                                        uint64_t *t)
{
    struct gpu g;
    int rc = find(index_of(h), "energy", NOT_FOUND, &g);
    if (!rc)
        energy_of(&g, c, r, t);
    return (amdsmi_status_t)rc;
}

amdsmi_status_t amdsmi_get_gpu_activity(amdsmi_processor_handle h, amdsmi_engine_usage_t *u)
{
    struct gpu g;
    int rc = find(index_of(h), "busy", NOT_FOUND, &g);
    if (!rc)
        *u = (amdsmi_engine_usage_t){.gfx_activity = g.busy, .umc_activity = 1, .mm_activity = 2};
    return (amdsmi_status_t)rc;
}

amdsmi_status_t amdsmi_get_gpu_memory_usage(amdsmi_processor_handle h, uint32_t type,
                                            uint64_t *used)
{
    struct gpu g;
    int rc = type ? INVAL : find(index_of(h), "memory", NOT_FOUND, &g);
    if (!rc)
        *used = g.memory;
    return (amdsmi_status_t)rc;
}

amdsmi_status_t amdsmi_get_temp_metric(amdsmi_processor_handle h, uint32_t type, uint32_t metric,
                                       int64_t *t)
{
    struct gpu g;
    int rc = metric ? INVAL : find(index_of(h), type ? "junction" : "celsius", NOT_FOUND, &g);
    if (!rc)
        *t = g.celsius;
    return (amdsmi_status_t)rc;
}

#endif
