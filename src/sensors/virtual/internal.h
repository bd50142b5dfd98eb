/*
 * The parts of the scenario parser, private to virtual/. scenario_words.c is the vocabulary of
 * small text formats: numbers with a unit and errno names. scenario_check.c checks the whole file.
 * Nothing is allocated; any thread.
 */
#ifndef NRG_SENSORS_VIRTUAL_INTERNAL_H
#define NRG_SENSORS_VIRTUAL_INTERNAL_H

#include "sensors/virtual/scenario.h"

/* A scenario that is being parsed. scenario_check.c sets `domain` and `line` to what it checks. */
struct nrg_parser {
    struct nrg_scenario *scenario;
    struct nrg_scenario_domain *domain; /* the current one, NULL before the first */
    const char *where;
    int line;
    const char *p, *end; /* rest of the line, comment cut off */
    struct nrg_error *err;
    char word[64];  /* the last one taken, terminated */
    char shown[72]; /* the same, for messages */
};

#define REFUSE(s, ...) nrg_fail_at((s)->err, -EINVAL, (s)->where, (s)->line, __VA_ARGS__)

/* The last step of parsing: also sets default quanta. 0, or -EINVAL with the line. */
int nrg_scenario_check(struct nrg_parser *parser);

struct nrg_word_unit {
    const char *name; /* the first one names the table in messages */
    double factor;
};

extern const struct nrg_word_unit nrg_units_w[];     /* W, mW, uW, kW; bare is W */
extern const struct nrg_word_unit nrg_units_j[];     /* J, mJ, uJ, nJ, kJ, MJ, Wh; bare is J */
extern const struct nrg_word_unit nrg_units_ratio[]; /* %; bare is a ratio */

/* "61uJ" in the table's base unit. 0 or -EINVAL; never infinite, never NaN. */
int nrg_word_number(const char *text, const struct nrg_word_unit *units, double *out);

/* "EIO" -> -EIO; 0: not a known name. */
int nrg_word_errno(const char *name);

#endif
