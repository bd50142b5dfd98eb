/*
 * The contract between a sensor driver and the rest of nrg.
 *
 * A driver is one const struct in one file of src/sensors and one line in registry.c. All paths
 * go through ctx->root. A driver never prints: it returns data, -errno, or a reason.
 *
 * Life of a sensor:
 *   probe   finds devices; for each one adds a struct nrg_found (name and channels), and for what
 *           can't be used says what, why, and the exact command or file that would change it.
 *           Called at the start, and again for a sensor that left; may take milliseconds, must
 *           not disturb the machine.
 *   open    gets one found sensor back, with `wanted` telling which of its channels were chosen
 *           (another driver may serve the rest); prepares descriptors; sets *state.
 *   read    called at each deadline, on one thread only. Emits any number of rows through the
 *           sink, each with its own time stamp (the middle of before and after the read) and
 *           width. No allocation, no stdio. A channel that fails is NRG_MISSING in its row plus
 *           nrg_sink_fault(); a return of -errno means that the whole sensor failed this time.
 *           -ENODEV: it is gone. It is closed, and looked for by asking `probe` again, unless the
 *           user named it with an argument (NRG_ON_REQUEST).
 *   fd      optional: a descriptor that becomes readable when the device pushes data; read is
 *           then called for it instead of at deadlines.
 *   share   optional: the descriptors behind the wanted channels, one each and in their order, for
 *           a process that may read them but not open them (nrgd). Only descriptors that can do
 *           nothing but read these channels: a counter's file, a perf event, never a device.
 *           They stay the state's. Their number, or -ENOTSUP where a reading takes more than that.
 *   close   releases *state; called also after a failed read.
 * A driver without open only describes what another part reads (see process.c).
 *
 * Rows: channels of one group are read together. A row has one raw value per channel of that
 * group, in channel order, NRG_MISSING for channels that are not wanted or could not be read.
 */
#ifndef NRG_SENSORS_DRIVER_H
#define NRG_SENSORS_DRIVER_H

#include "base/context.h"
#include "base/error.h"
#include "sensors/channel.h"

struct nrg_driver;

struct nrg_gpu_process;
struct nrg_meter_config;
struct nrg_sensor_profile;

/* What `read` writes to. Implemented by the recorder, the live view and by tests. */
struct nrg_sink {
    void (*row)(struct nrg_sink *, unsigned group, int64_t t_ns, int64_t width_ns,
                const int64_t *raw);
    /* channel: index in the sensor's channels; error: negative errno. */
    void (*fault)(struct nrg_sink *, unsigned channel, int error);
    /* Use of a device by one process over the interval that ends at t_ns (see nvml/driver.c). */
    void (*gpu_process)(struct nrg_sink *, const struct nrg_gpu_process *);
    /* Something about the sensor as a whole that the user should know, sent once when it begins.
     * kind is one word ("silent", "garbage", "gone", "back"). Optional. */
    void (*note)(struct nrg_sink *, const char *kind, const char *text);
    /* A number that stays while the counters of the rows that follow go on. Another one than
     * before, by this state of the sensor or by the one before it: they began anew, and what was
     * used meanwhile is not known. For counters that do not wrap. Optional. */
    void (*epoch)(struct nrg_sink *, int64_t epoch);
};

struct nrg_gpu_process {
    int64_t t_ns;
    unsigned gpu;         /* N of gpu-N */
    int32_t pid;          /* in our pid namespace; -1: it belongs to another one */
    int32_t device_pid;   /* as the device reports it */
    int64_t sm_ppm;       /* share of the device's processors, 1e6 = all; NRG_MISSING */
    int64_t memory_bytes; /* NRG_MISSING when unknown */
    /* What it may use, where sm_ppm is what a MIG instance did and the process is alone in it. On a
     * board without MIG, of a client of MPS: how long it computed, or may have where only its
     * server has a share; sm_ppm is that by what it may use. Else NRG_MISSING. */
    int64_t size_ppm;
};

static inline void nrg_sink_row(struct nrg_sink *sink, unsigned group, int64_t t_ns,
                                int64_t width_ns, const int64_t *raw)
{
    sink->row(sink, group, t_ns, width_ns, raw);
}

/* An error of 0 is no fault. */
static inline void nrg_sink_fault(struct nrg_sink *sink, unsigned channel, int error)
{
    if (error && sink->fault)
        sink->fault(sink, channel, error);
}

/*
 * Reads the n channels from `first` on, at most NRG_POLL_MAX, which are one group, and emits their
 * row and their faults. `read` leaves *raw, NRG_MISSING, for a channel that is not wanted.
 */
#define NRG_POLL_MAX 32
void nrg_sink_poll(struct nrg_sink *sink, unsigned group, size_t first, size_t n,
                   int (*read)(void *state, size_t channel, int64_t *raw), void *state);

static inline void nrg_sink_note(struct nrg_sink *sink, const char *kind, const char *text)
{
    if (sink->note)
        sink->note(sink, kind, text);
}

static inline void nrg_sink_epoch(struct nrg_sink *sink, int64_t epoch)
{
    if (sink->epoch)
        sink->epoch(sink, epoch);
}

/* One device that probe found. Channels are owned by the list. */
struct nrg_found {
    const struct nrg_driver *driver;
    char sensor[64];    /* "intel-rapl:0", "GPU 0 (Tesla V100)" */
    char locator[1024]; /* for open: directory, index, file, URI; private to the driver */
    struct nrg_channel *channels;
    size_t n_channels, cap_channels;
    bool *wanted;  /* per channel: chosen, by nrg_probe_all */
    bool hidden;   /* works, but is used only when the user names its driver */
    bool required; /* the user asked for it: a run must not begin without it */
};

/* Something that can't be read here. */
struct nrg_unavailable {
    const struct nrg_driver *driver;
    char what[128];
    char why[256];
    char fix[2048]; /* commands or files, one per line; "" when there is nothing to do */
};

/* What the user asked of the sensors; all optional. */
struct nrg_sensor_options {
    /* Driver names or "driver:argument", NULL-terminated; NULL: automatic. */
    const char *const *only;
    const char *const *meters; /* URIs (meter/uri.h), NULL-terminated; besides all others */
    const char *const *covers; /* "RAIL=machine" and so on (covers.h), NULL-terminated */
    const struct nrg_meter_config *config;    /* of nrg.conf: meter/config.h */
    const struct nrg_sensor_profile *profile; /* nvml: how a GPU's power sensor samples */
    double cpu_idle_w, cpu_full_w;            /* --cpu-watts, 0: not given */
    const char *llm;                          /* URL of a language model's server (llm/driver.c) */
    bool per_cpu;                             /* machine: one utilisation channel per CPU */
};

/* The result of probing all drivers. */
struct nrg_probe {
    const struct nrg_context *ctx;
    const struct nrg_sensor_options *options;
    const struct nrg_driver *driver; /* the one being asked now */
    const char *argument;            /* text after "driver:" when asked for by name, else NULL */
    struct nrg_found *found;
    size_t n_found, cap_found;
    struct nrg_unavailable *unavailable;
    size_t n_unavailable, cap_unavailable;
};

enum {
    NRG_MAY_BLOCK = 1,      /* read may take long: give it a thread of its own */
    NRG_ON_REQUEST = 2,     /* only probed when named (--sensor simulate:FILE) */
    NRG_WITH_PROCESSES = 4, /* to be compared with processes' CPU times: read right after them */
    NRG_MAY_BE_SILENT = 8   /* may have no reading in a short run: an estimate is kept ready */
};

/* How a descriptor of `share` is read. */
enum nrg_share {
    NRG_SHARE_NUMBER, /* pread from its start: the text is one number */
    NRG_SHARE_COUNT,  /* read: eight bytes, the count of a perf event */
    NRG_SHARE_KINDS
};
#define NRG_SHARE_MAX 32

struct nrg_driver {
    const char *name;
    const char *summary;
    unsigned flags;
    /* Adds to the probe. 0, or -errno with err only for a bad argument given by the user. */
    int (*probe)(struct nrg_probe *probe, struct nrg_error *err);
    int (*open)(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                struct nrg_error *err);
    int (*read)(void *state, struct nrg_sink *sink);
    int (*fd)(void *state);
    int (*share)(void *state, enum nrg_share *how, int fds[NRG_SHARE_MAX]);
    void (*close)(void *state);
};

/* Helpers for probe functions. Both return NULL or -ENOMEM when out of memory. */
struct nrg_found *nrg_probe_found(struct nrg_probe *probe, const char *sensor);
struct nrg_channel *nrg_found_channel(struct nrg_found *found, const char *name,
                                      enum nrg_quantity quantity, enum nrg_kind kind);
/* `fix` may be NULL. */
int nrg_probe_unavailable(struct nrg_probe *probe, const char *what, const char *fix,
                          const char *why, ...) __attribute__((format(printf, 4, 5)));

#endif
