/*
 * For tests: a throw-away root with fake /sys and /proc files, and a sink that keeps what a
 * driver emits. Every function aborts the test (via assert) when it can't do its job.
 */
#ifndef NRG_TESTS_TREE_H
#define NRG_TESTS_TREE_H

#include "sensors/registry.h"

struct tree {
    char path[128];
    struct nrg_context ctx; /* root points into the tree; no log */
};

void tree_init(struct tree *tree);
/* Creates directories as needed and (over)writes the file. */
void tree_write(struct tree *tree, const char *path, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void tree_write_bytes(struct tree *tree, const char *path, const void *bytes, size_t len);
void tree_link(struct tree *tree, const char *target, const char *path);
void tree_remove(struct tree *tree, const char *path);
void tree_release(struct tree *tree); /* removes everything */

/* Probes with one driver ("name" or "name:argument") and no other option. */
int tree_try_probe(struct tree *tree, struct nrg_probe *probe, const char *driver,
                   struct nrg_error *err);
void tree_probe(struct tree *tree, struct nrg_probe *probe, const char *driver);
/* The argument is a file of the tree, or nothing (NULL). */
int tree_probe_file(struct tree *tree, struct nrg_probe *probe, const char *driver,
                    const char *file, struct nrg_error *err);

#define KEEP_ROWS     4096
#define KEEP_CHANNELS 32

struct keep_sink {
    struct nrg_sink sink; /* first: the callbacks cast back */
    const struct nrg_found *found;
    void *sensor; /* of keep_open */
    size_t n_rows;
    struct {
        unsigned group;
        int64_t t_ns, width_ns;
        int64_t raw[KEEP_CHANNELS]; /* one per channel of the group, in order */
    } rows[KEEP_ROWS];
    size_t n_faults;
    struct {
        unsigned channel;
        int error;
    } faults[KEEP_ROWS];
    size_t n_gpu;
    struct nrg_gpu_process gpu[KEEP_ROWS];
};

void keep_sink_init(struct keep_sink *sink, const struct nrg_found *found);
/* Opens a sensor that was found, reads it once more into the sink, closes it. */
void keep_open(struct keep_sink *keep, struct tree *tree, const struct nrg_found *found);
int keep_try_read(struct keep_sink *keep);
void keep_read(struct keep_sink *keep);
void keep_close(struct keep_sink *keep);

/* A found sensor / channel / reason by name; NULL when it is not there. */
struct nrg_found *probe_sensor(struct nrg_probe *probe, const char *driver, const char *sensor);
const struct nrg_channel *probe_channel(const struct nrg_probe *probe, const char *name,
                                        const struct nrg_found **found);
const struct nrg_unavailable *probe_why(const struct nrg_probe *probe, const char *what);

#endif
