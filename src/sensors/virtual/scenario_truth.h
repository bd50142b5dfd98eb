/*
 * The true power and energy of a scenario's domains, in closed form. Pure functions, any thread.
 */
#ifndef NRG_SENSORS_VIRTUAL_SCENARIO_TRUTH_H
#define NRG_SENSORS_VIRTUAL_SCENARIO_TRUTH_H

#include "sensors/virtual/scenario.h"

/*
 * Energy that flows from t0_ns to t1_ns of the scenario's time, in closed form, without
 * the live per-busy-cpu part. Before time 0 nothing flows; 0 when t1_ns <= t0_ns.
 */
double nrg_scenario_true_j(const struct nrg_scenario_domain *domain, int64_t t0_ns, int64_t t1_ns);
/* True power at an instant; at a step it is already the new one. */
double nrg_scenario_true_w(const struct nrg_scenario_domain *domain, int64_t t_ns);
/*
 * What a first-order averaging sensor shows at t1_ns when it showed shown_w at t0_ns; exact for
 * every shape. Without lag it is the true power.
 */
double nrg_scenario_lagged_w(const struct nrg_scenario_domain *domain, int64_t t0_ns,
                             double shown_w, int64_t t1_ns);
/* One exact step of this filter over h_s seconds of power_w + slope_w_per_s * t. */
double nrg_lag_step_w(double shown_w, double power_w, double slope_w_per_s, double h_s,
                      double tau_s);

#endif
