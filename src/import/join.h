/*
 * Layer times of other programs, alone or joined with a power log or a recording: one recording
 * in which `nrg attribute` finds both. Formats are a table in layers/read.c (docs/import.md).
 *
 * The result is a copy of the power source (a .nrg, or whatever nrg_import and the replay driver
 * read: a Jetson log, AIPowerMeter's records, a CSV) plus, for each layer file, one series of
 * spans (format.h):
 *
 *   - TensorRT's profiler, the PyTorch-phase latencies, trtexec: spans of kind "layer" on tracks of
 *     kind "log", each with its cycle (from 1) as number and the window that the file states, exact
 *     to the ns. Names have rising ids in the file's order of layers. Where the windows of the file
 *     do not overlap they are on one track, inside spans of kind "cycle" of the same number.
 *     Where they overlap (time stamps of TensorRT are taken in a burst after the inference) no
 *     window is cut: each layer has a track of its own, there are no cycle spans, and `parent` is
 *     the path of "cycle". layer_runs.h gives executions back in the file's order either way.
 *   - torch.profiler, ONNX Runtime: threads and GPU streams as tracks, see docs/import.md.
 *
 * Metadata of layer file N, from 1: `import.N.file`, `import.N.format`, `import.N.clock` ("wall" or
 * "file"), `import.N.placed` ("clock", "offset", "align", "none"), `import.N.offset_ns`,
 * `import.N.offset_uncertainty_ns`, and `import.N.note` (lines for people).
 *
 * Files are streamed; memory is 40 bytes a span. Errors are -errno with the file and the place.
 * One thread at a time. Release the result, also after an error.
 */
#ifndef NRG_IMPORT_JOIN_H
#define NRG_IMPORT_JOIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct nrg_recording;

enum nrg_layer_layout {
    NRG_LAYOUT_RECORDED, /* windows as in the file */
    NRG_LAYOUT_PACKED    /* layers of a cycle end to end, up to its first time stamp: for TensorRT,
                            whose time stamps come in a burst after the inference */
};

struct nrg_import_join_options {
    const char *power;         /* NULL: none, the recording has spans only */
    const char *const *layers; /* files */
    size_t n_layers;
    const char *times;      /* trtexec --exportTimes for the profile among `layers`; NULL */
    const char *output;     /* NULL: a temporary file, see result->recording */
    bool overwrite;         /* output */
    int64_t zone_offset_ns; /* local time minus UTC, for dates without a zone */
    double idle_w;          /* kept as metadata; NAN: not known */
    bool has_offset;        /* offset_ns is given */
    int64_t offset_ns;      /* added to the times of the layer files */
    bool align;             /* find the offset (from there) by correlating activity with power */
    double align_range_s;   /* how far to look; 0: 10 s, or everywhere without a wall clock */
    enum nrg_layer_layout layout;
    const char *domain; /* energy domain of the layers' work, "gpu-0"; NULL: as in the file */
    /* Called now and then while a file is read; may be NULL. */
    void (*progress)(void *arg, const char *path, uint64_t done_bytes, uint64_t all_bytes);
    void *progress_arg;
};

/* The outcome for one layer file. */
struct nrg_import_layers {
    const char *path;   /* the caller's */
    const char *format; /* "tensorrt-profiler", ... */
    bool wall_clock;    /* its times are dates; else they count from a start of its own */
    bool since_boot;    /* that start is the machine's, which recordings count from, too */
    uint64_t spans, cycles;
    int64_t first_ns, last_ns; /* in the recording */
    const char *placed;        /* "clock", "offset", "align", "none" */
    int64_t offset_ns;         /* recording's time minus the file's, in the middle of the file */
    int64_t offset_uncertainty_ns; /* 95 %; NRG_MISSING: not known */
    double correlation;            /* of activity and power at that offset; NAN */
    char (*notes)[256];            /* one line each, for the user; owned */
    size_t n_notes, cap_notes;
};

struct nrg_import_join_result {
    struct nrg_import_layers *files;
    size_t n_files;
    int64_t begin_ns, end_ns; /* of the power source's samples; 0, 0 without one */
    /* Without an output: open, its file already removed. Released with the result. */
    struct nrg_recording *recording;
};

int nrg_import_join(const struct nrg_import_join_options *options,
                    struct nrg_import_join_result *result, struct nrg_error *err);
void nrg_import_join_release(struct nrg_import_join_result *result);

/* Whether a file, compressed or not, looks like layer times; false also when it is unreadable. */
bool nrg_import_is_layers(const char *path);

#endif
