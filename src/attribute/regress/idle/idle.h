/*
 * Idle power and a regression, in the order of the calls: a guess where nothing is known of it,
 * what the regression is told, what it found, and what is said of a guess. Nothing can fail.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_IDLE_IDLE_H
#define NRG_ATTRIBUTE_REGRESS_IDLE_IDLE_H

struct nrg_engine;
struct nrg_part;
struct nrg_regress_options;

void nrg_regress_guess_idle(struct nrg_engine *engine, struct nrg_part *part);
void nrg_regress_know_idle(struct nrg_engine *engine, struct nrg_part *part,
                           struct nrg_regress_options *options);
/* part->regressed holds the result. */
void nrg_regress_take_idle(struct nrg_engine *engine, struct nrg_part *part);
/* The same where the domain is integrated: what that can't know of idle power, and what it takes
 * over as far as the regression is surer. */
double nrg_regress_idle_doubt_w(struct nrg_engine *engine, const struct nrg_part *part);
void nrg_regress_leave_idle(struct nrg_engine *engine, struct nrg_part *part);
/* Also where the method became another one. */
void nrg_regress_settle_guess(struct nrg_engine *engine, struct nrg_part *part);

#endif
