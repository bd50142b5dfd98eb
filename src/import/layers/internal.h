/*
 * Chrome traces as torch.profiler, its predecessors, XLA and ONNX Runtime write them:
 * chrome_event.c reads one event at a time, chrome.c and ort.c turn it into a span, chrome_track.c
 * finds its thread or GPU stream, device.c says which names are those of devices, and chrome_tie.c
 * links kernels to the operators that launched them.
 *
 * Structs are embedded; release those that have a release function. Errors are negative errno. One
 * thread at a time.
 */
#ifndef NRG_IMPORT_LAYERS_INTERNAL_H
#define NRG_IMPORT_LAYERS_INTERNAL_H

#include "base/map.h"
#include "import/layers/read.h"

#define NRG_CHROME_MODULE "nn.Module: "

/* --- device.c --- */

struct nrg_trace_device {
    char family[16]; /* of its energy domain, such as "gpu"; "": the host */
    int number;
};

/* What a line of a device shows; all but work repeat it in other words. */
enum nrg_trace_line {
    NRG_LINE_WORK,
    NRG_LINE_OPERATORS,
    NRG_LINE_MODULES,
    NRG_LINE_STEPS,
    NRG_LINE_DERIVED
};

/* Whether the process of this name is a device, and which. */
bool nrg_trace_device(const char *label, struct nrg_trace_device *device);
/* What a line of a device is, by the names of its process and thread. */
enum nrg_trace_line nrg_trace_line(const char *process, const char *thread);

/* --- chrome traces --- */

/* The fields of an event that are used; long texts are cut. */
struct nrg_chrome_event {
    char ph;
    char cat[32], pid[32], tid[48];
    char label[128];                                     /* args.name: of a process or thread */
    int64_t ts_ns, dur_ns;                               /* NRG_MISSING */
    int64_t correlation, external, device, stream, flow; /* NRG_MISSING */
    char op_name[128]; /* args of ONNX Runtime, XLA: the operator whose work it is */
    bool fraction;     /* ts has digits behind the point */
    size_t name_len;
    char name[NRG_SPAN_NAME_MAX + 1];
};

/*
 * Reads the events of a list whose bracket was just read, one after the other, into *event and
 * calls take(arg) after each; an error of take() means out of memory. Ends at the end of a file
 * that was cut off. 0, or -errno with err.
 */
int nrg_chrome_events_read(struct nrg_layer_import *im, struct nrg_chrome_event *event,
                           int (*take)(void *arg), void *arg, struct nrg_error *err);
/* begin + duration, within what a time can hold. */
int64_t nrg_chrome_event_end(const struct nrg_chrome_event *event);

/* Threads of the host and streams of GPUs. */
struct nrg_chrome_tracks {
    struct nrg_map keys; /* kind, NUL, pid, NUL, tid */
    struct nrg_chrome_track {
        int64_t id; /* in the sink */
        struct nrg_span_track track;
        size_t open;  /* the begin (ph B) that is open on it, + 1 */
        uint8_t line; /* enum nrg_trace_line */
    } * items;
    size_t n, cap;
    struct nrg_map label_keys; /* processes and threads that have a name */
    char (*labels)[128];
    size_t cap_labels;
    struct nrg_map by_name; /* processes of events whose place depends on names */
    bool late;              /* such a name came after events that needed it: read again */
};

/* Where an event without a known category belongs. */
struct nrg_chrome_place {
    struct nrg_trace_device device;
    enum nrg_trace_line line;
};

/* Finds it by the names of process and thread. 0 or -ENOMEM. */
int nrg_chrome_place(struct nrg_chrome_tracks *tracks, const struct nrg_chrome_event *event,
                     struct nrg_chrome_place *place);
/* The track of an event's thread, or of its stream on a device: an index, or -errno. */
int64_t nrg_chrome_thread(struct nrg_chrome_tracks *tracks, struct nrg_span_sink *sink,
                          const struct nrg_chrome_event *event);
int64_t nrg_chrome_stream(struct nrg_chrome_tracks *tracks, struct nrg_span_sink *sink,
                          const struct nrg_chrome_event *event,
                          const struct nrg_chrome_place *place);
/* Takes the name of a process or thread from an event that states one. 0 or -ENOMEM. */
int nrg_chrome_label(struct nrg_chrome_tracks *tracks, struct nrg_span_sink *sink,
                     const struct nrg_chrome_event *event);
/* Forgets all but the names. */
void nrg_chrome_tracks_restart(struct nrg_chrome_tracks *tracks);
void nrg_chrome_tracks_release(struct nrg_chrome_tracks *tracks);
/* Per track of the sink (from 1): whether its lines only repeat what others of its device show.
 * NULL when out of memory; the caller frees it. */
bool *nrg_chrome_repeated(const struct nrg_chrome_tracks *tracks, const struct nrg_span_sink *sink);

/* Gives the streams of GPUs the process of the threads, where there is one only. */
void nrg_chrome_set_process(struct nrg_chrome_tracks *tracks, struct nrg_span_sink *sink);

/* Name and number of a host span: steps and modules are recognised by their names. rank: detail of
 * steps. */
int64_t nrg_chrome_host_name(struct nrg_span_sink *sink, const struct nrg_chrome_event *event,
                             const char *kind, const char *detail, const char *rank,
                             int64_t *number);
/* A pid or tid; 0 when it is not a number in range. */
int32_t nrg_chrome_small_number(const char *text);

/* What links a kernel to a place in the tree of spans. */
enum nrg_chrome_link {
    NRG_LINK_CORRELATION, /* a runtime call: the operator around it */
    NRG_LINK_EXTERNAL     /* an operator: itself */
};

struct nrg_chrome_ties {
    struct nrg_chrome_mark {
        int64_t id, record; /* record: in the sink */
        uint32_t path;      /* found later; 0: none */
        uint8_t link;
    } * marks;
    size_t n_marks, cap_marks;
    struct nrg_chrome_kernel {
        int64_t correlation, external; /* NRG_MISSING */
        uint32_t record;
    } * kernels;
    size_t n_kernels, cap_kernels;
    uint64_t tied;
};

/* Marks a record of the sink as the host's end of a link; records in rising order. */
int nrg_chrome_mark(struct nrg_chrome_ties *ties, size_t record, enum nrg_chrome_link link,
                    int64_t id);
/* The record that the sink got last is a kernel. */
int nrg_chrome_kernel(struct nrg_chrome_ties *ties, const struct nrg_span_sink *sink,
                      int64_t correlation, int64_t external);
/* Takes the spans of the marked tracks (from 1) out of the sink. Returns how many they were. */
uint64_t nrg_chrome_drop(struct nrg_chrome_ties *ties, struct nrg_span_sink *sink,
                         const bool *tracks);
/* Gives each kernel the path of the operator that launched it. */
int nrg_chrome_tie(struct nrg_chrome_ties *ties, struct nrg_span_sink *sink);
void nrg_chrome_ties_release(struct nrg_chrome_ties *ties);

#endif
