/*
 * The vocabulary of small text formats: numbers with a unit, errno names, and how far two words
 * are apart (for "did you mean"). Pure functions on terminated strings.
 */
#ifndef NRG_SENSORS_SCENARIO_WORDS_H
#define NRG_SENSORS_SCENARIO_WORDS_H

struct nrg_word_unit {
    const char *name; /* the first one names the table in messages */
    double factor;
};

extern const struct nrg_word_unit nrg_units_w[];     /* W, mW, uW, kW; bare is W */
extern const struct nrg_word_unit nrg_units_j[];     /* J, mJ, uJ, nJ, kJ, MJ, Wh; bare is J */
extern const struct nrg_word_unit nrg_units_ratio[]; /* %; bare is a ratio */

/* "61uJ" in the table's base unit. 0 or -EINVAL; never infinite, never NaN. */
int nrg_word_number(const char *text, const struct nrg_word_unit *units, double *out);

/* "EIO" -> -EIO; 0 when it is no name that we know. */
int nrg_word_errno(const char *name);

/* Typing errors between two words: letters added, left out, changed, or two swapped. Words
 * longer than 31 bytes are "far" (99). */
unsigned nrg_word_distance(const char *a, const char *b);

#endif
