/*
 * The word that was probably meant: "did you mean". {.typed = TEXT}, then offer every word there
 * is; best is the nearest, or NULL when none is near. Keeps pointers, allocates nothing; any
 * thread.
 */
#ifndef NRG_BASE_WORDS_H
#define NRG_BASE_WORDS_H

struct nrg_guess {
    const char *typed, *best;
    unsigned distance; /* typing errors between them */
};

void nrg_guess_offer(struct nrg_guess *guess, const char *word);

#endif
