/*
 * Writes requests into a recording while they run (requests.h says how they look there). Rows are
 * kept for a moment and handed over a few times a second, in order of time: what the relay tells
 * late (NRG_PROXY_LATE_NS) still finds its place. Pieces of text that follow each other quickly are
 * one row.
 *
 * Names are limited: after NRG_LOG_MODELS models, further ones are "(other models)", and kinds of
 * paths likewise, because clients choose what they send. The path of a request that was not found
 * is not kept: it is nothing that the server has.
 *
 * Embedded: init, release; the recorder has begun and outlives it. Lack of memory loses rows,
 * nothing else. One thread.
 */
#ifndef NRG_LLM_REQUEST_LOG_H
#define NRG_LLM_REQUEST_LOG_H

#include "llm/proxy/proxy.h"
#include "record/rows.h"
#include "record/sampler/recorder.h"

#define NRG_LOG_MODELS   256
#define NRG_LOG_PATHS    64
#define NRG_LOG_STATUSES 64

struct nrg_log_slot {
    bool known;      /* its track was written */
    int64_t waiting; /* pieces of text without a row */
    int64_t text_ns; /* when the last of them came */
    int64_t last_ns; /* of its last row of them */
};

/* Names of one kind, as they come. */
struct nrg_log_names {
    const char *kind, *others; /* what stands for those beyond `most` */
    size_t most, n;
    char **texts;
    int64_t *ids;
};

struct nrg_request_log {
    struct nrg_recorder *recorder;
    struct nrg_rows rows;
    uint64_t begins;
    bool any; /* a request was logged that is some work */
    int64_t handed_ns;
    int64_t next_name;
    struct nrg_log_slot *slots;
    size_t n_slots;
    struct nrg_log_names models, paths, statuses;
};

int nrg_request_log_init(struct nrg_request_log *log, struct nrg_recorder *recorder,
                         size_t connections);
void nrg_request_log_release(struct nrg_request_log *log);

void nrg_request_log_begin(struct nrg_request_log *log, const struct nrg_proxy_request *request);
void nrg_request_log_first(struct nrg_request_log *log, const struct nrg_proxy_request *request);
void nrg_request_log_texts(struct nrg_request_log *log, const struct nrg_proxy_request *request,
                           uint64_t n, int64_t t_ns);
void nrg_request_log_end(struct nrg_request_log *log, const struct nrg_proxy_request *request);
/* Rows so far go to the recording, if the last ones went some time ago, or `now`. */
void nrg_request_log_hand_over(struct nrg_request_log *log, int64_t t_ns, bool now);

#endif
