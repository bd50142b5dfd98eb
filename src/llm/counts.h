/*
 * What a server counted, from a recording (channels llm.*, sensors/llm): its readings in order of
 * time, and slots of them for the regression (fit.h).
 *
 * Read, release. 0, -ENOMEM or -EIO. One thread at a time.
 */
#ifndef NRG_LLM_COUNTS_H
#define NRG_LLM_COUNTS_H

#include "llm/fit.h"
#include "record/read/recording.h"
#include "sensors/llm/families.h"

struct nrg_server_reading {
    int64_t t_ns;
    double value[NRG_SERVER_COUNTS]; /* NAN: not counted */
};

struct nrg_server_counts {
    bool asked;      /* the recording has such channels */
    const char *url; /* belongs to the recording */
    char family[64]; /* "vLLM"; "" when no page was understood */
    struct nrg_server_reading *readings;
    size_t n, cap;
};

int nrg_server_counts_read(struct nrg_server_counts *counts, struct nrg_recording *recording,
                           int64_t begin_ns, int64_t end_ns);
void nrg_server_counts_release(struct nrg_server_counts *counts);

/* Growth between two readings; NAN where it is not counted or went back. */
double nrg_server_growth(const struct nrg_server_counts *counts, size_t from, size_t to,
                         enum nrg_server_count count);

/*
 * Slots from reading `first` on, without their energy. With lump_s > 0 they are as long as that,
 * and until no sequence runs: then all is counted; but no longer than ten times that. The array has
 * room for counts->n. A slot in which a count went back (the server began anew), or that lasts far
 * longer than the others, is left out. Returns how many there are.
 */
size_t nrg_server_slots(const struct nrg_server_counts *counts, size_t first, double lump_s,
                        struct nrg_serving_slot *slots);

/*
 * 0 when tokens are counted as they are made. Else they come in lumps, when requests end: how long
 * the making of a lump takes, by Little's law.
 */
double nrg_server_lump_s(const struct nrg_server_counts *counts, size_t first);

#endif
