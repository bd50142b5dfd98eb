/*
 * Between libnrg.so and libnrg-recorder.so, the recorder inside a marked program. libnrg.so needs
 * libc alone; the recorder needs sqlite, zstd and jansson, so it is an object of its own that
 * nrg_recorder_start loads (mark/recorder.c). Marks are libnrg.so's: there is one span client per
 * process, and the recorder gets at it through struct nrg_inprocess_host.
 *
 * Both are built together. `version` comes first and is compared before anything else is used, so
 * all that follows may change freely. Depends on nothing but libc.
 */
#ifndef NRG_MARK_INPROCESS_H
#define NRG_MARK_INPROCESS_H

#include <nrg/nrg.h>

#include "base/error.h"
#include "mark/ring.h"

/* Where it lies from libnrg.so's folder: beside it, or in a folder of nrg's own in a system's. */
#ifndef NRG_INPROCESS_PLACE
#define NRG_INPROCESS_PLACE ""
#endif
#define NRG_INPROCESS_FILE     NRG_INPROCESS_PLACE "libnrg-recorder.so"
#define NRG_INPROCESS_SYMBOL   "nrg_inprocess"
#define NRG_INPROCESS_VARIABLE "NRG_RECORDER_LIBRARY" /* the file, instead of the one beside us */
#define NRG_INPROCESS_NONE     "there is no recorder in this process"

/* The span client of the process (mark/client.h). */
struct nrg_inprocess_host {
    int (*attach)(struct nrg_ring_header *segment);
    void (*detach)(void);
    int (*recording_active)(void);
};

/* The functions of nrg.h, with their reason in err. The host is the same in every start. */
struct nrg_inprocess {
    char version[16];
    int (*start)(const struct nrg_inprocess_host *host, const char *path,
                 const struct nrg_recorder_settings *settings, struct nrg_error *err);
    int (*note)(const char *key, const char *value, struct nrg_error *err);
    int (*model)(const char *name, const char *format, const void *bytes, uint64_t size,
                 struct nrg_error *err);
    int (*read)(struct nrg_recorder_reading *reading, struct nrg_error *err);
    int (*idle)(int64_t begin_ns, int64_t end_ns, struct nrg_error *err);
    int (*stop)(struct nrg_error *err);
};

/* What the loaded object exports, under the name NRG_INPROCESS_SYMBOL. */
extern const struct nrg_inprocess nrg_inprocess;

#endif
