/*
 * Threads that do different work under the same names: two models that are both evaluated in
 * "evaluation", say. A class of a path has one power, so a regression with a class per path and
 * thread is made as well, and stays where it explains more than so many more columns do by chance.
 * Its classes are joined again then: a row has the energy of all threads.
 *
 * The arrays are the arena's. 0 or -errno. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_LOAD_SPLIT_H
#define NRG_ATTRIBUTE_REGRESS_LOAD_SPLIT_H

#include "attribute/internal.h"
#include "attribute/regress/rows/slice_log.h"

struct nrg_class_split {
    bool by_age; /* time without spans has classes by its age, and that is all */
    /* Of a GPU: spans that are open at the same time share it (0), have all of their time each (1),
     * or are between the two. */
    double adds;
    size_t rest_class;                /* the one of these that lasts longest */
    struct nrg_updates_found updates; /* of the sensor, where they are not to be sought again */
    size_t n_whole, n_classes; /* of paths, and with those of threads, which come after them */
    size_t n_tracks;
    uint32_t *of;    /* [class * n_tracks + track]; UINT32_MAX: never together */
    uint32_t *whole; /* per class: that of its path */
};

/* n_classes is n_whole where no path is on two threads, or too many are. */
int nrg_split_find(struct nrg_class_split *split, const struct nrg_engine *engine,
                   const struct nrg_slice_log *log, struct nrg_arena *memory);
/* Of time without spans in a pool, by its age; false: there is none after the first span. */
bool nrg_split_ages(struct nrg_class_split *split, const struct nrg_engine *engine,
                    const struct nrg_slice_log *log, uint32_t pool);
/* Whether spans are open at the same time in a pool; false: hardly any, or processes share it. */
bool nrg_split_overlaps(const struct nrg_engine *engine, const struct nrg_slice_log *log,
                        uint32_t pool);
size_t nrg_split_class(const struct nrg_class_split *split, const struct nrg_slice *slice);
/* How much better a result explains the readings than another, by Schwarz's criterion with as many
 * columns; -INFINITY where they are not of the same rows. */
double nrg_split_gain(const struct nrg_regress_result *than,
                      const struct nrg_regress_result *result);
/* Whether it explains enough more than the classes of paths do. */
bool nrg_split_earns(const struct nrg_class_split *split, const struct nrg_regress_result *whole,
                     const struct nrg_regress_result *parts);
/* A result of classes of paths, from one of threads; both are the caller's to release. */
int nrg_split_join(const struct nrg_class_split *split, const struct nrg_regress_result *parts,
                   struct nrg_regress_result *joined);
/* Whether threads that are always busy can't be told apart (alike.c), and their paths are mostly
 * their own: then classes of paths only seem to tell it. */
bool nrg_split_tells_less(const struct nrg_class_split *split,
                          const struct nrg_regress_result *parts,
                          const struct nrg_regress_result *joined);

#endif
