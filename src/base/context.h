/*
 * What every part needs and none may keep in a global: the root of the machine that is inspected,
 * and where log lines go. Created by the caller (CLI, library user, test), outlives all that is
 * made with it, immutable while threads run. The log function may be called from any thread.
 */
#ifndef NRG_BASE_CONTEXT_H
#define NRG_BASE_CONTEXT_H

#include "base/root.h"

struct nrg_replay_source;

enum nrg_level { NRG_DEBUG, NRG_INFO, NRG_WARNING, NRG_ERROR };

struct nrg_context {
    struct nrg_root root;
    void (*log)(void *arg, enum nrg_level level, const char *line); /* NULL: silence */
    void *log_arg;
    bool gave_up_privileges; /* what was opened with capabilities can't be opened again */
    /*
     * Opens a recording as something to play back (sensors/virtual/replay_source.h). Sensors stand
     * left of recordings in the flow and know nothing of them, so the program hands the function
     * in: nrg_replay_recording_open of record/read/replay.h. NULL: recordings can't be played.
     */
    int (*open_recording)(struct nrg_replay_source **source, const char *path,
                          struct nrg_error *err);
};

void nrg_log(const struct nrg_context *ctx, enum nrg_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
