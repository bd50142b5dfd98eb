/*
 * A machine that runs a model step by step, with known joules per layer, and a sensor that looks at
 * it as real ones do. It shares no code with src/: what it says is the truth that the program is
 * tested against.
 *
 * Power is constant within a layer's call and between calls, so the energy up to any moment is
 * exact; sensors are made from that.
 *
 * sim_run fills the machine from the options, sim_release frees. Aborts when memory runs out.
 */
#ifndef TESTS_SIMULATOR_SIM_H
#define TESTS_SIMULATOR_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_sensor {
    SIM_COUNTER, /* joules, updated every update_s, read every period_s */
    SIM_INSTANT, /* watts of the moment */
    SIM_MEAN,    /* mean watts since the last reading */
    SIM_AVERAGE, /* running average, continuous, time constant memory_s */
    SIM_FILTER,  /* INA3221: new = old + (sample - old) / N, a sample every update_s */
    SIM_WINDOW   /* mean watts of the last memory_s */
};

struct sim_options {
    uint64_t seed;
    size_t layers, steps;
    double shortest_s, longest_s; /* of a layer, evenly spread in the logarithm */
    double jitter;                /* relative, of every call */
    double low_w, high_w;         /* of layers, above idle */
    double idle_w;                /* always there; a run has up to 5 % more or less */
    double gap_s;                 /* idle between steps, with the same jitter */
    size_t seldom;                /* this many layers run in every 50th step only */
    size_t twins;                 /* this many pairs: the second lasts twice the first, always */
    double span_stamp_s;          /* resolution of the layers' time stamps; 0: ns */

    enum sim_sensor sensor;
    double period_s, update_s, memory_s;
    double quantum;        /* J or W */
    double noise;          /* relative, of each interval or reading */
    double read_jitter_s;  /* readings come so much later, at most */
    double stamp_s;        /* resolution of the sensor's time stamps */
    double stamp_jitter_s; /* stamps are wrong by this, as a deviation */
    double wrap_j;         /* of a counter; 0: none */
    double drift;          /* power of all layers changes by this part over the run, slowly */
};

struct sim_call {
    int64_t begin_ns, end_ns; /* as the program stamped it */
    uint32_t layer;
};

struct sim_reading {
    int64_t t_ns;
    int64_t raw; /* times quantum */
};

struct sim_piece {
    double begin_s, power_w, sum_j; /* power until the next piece; energy before this one */
};

struct sim_machine {
    struct sim_options options;
    int64_t start_ns;
    double end_s;
    double *energy_j, *time_s, *nominal_s, *power_w; /* per layer; energy_j above idle: the truth */
    double idle_j, total_j;                          /* idle_j: of the whole run */
    struct sim_call *calls;
    size_t n_calls;
    struct sim_reading *readings;
    size_t n_readings;
    struct sim_piece *pieces;
    size_t n_pieces, cap_pieces;
    uint64_t random;
};

void sim_run(struct sim_machine *machine, const struct sim_options *options);
void sim_release(struct sim_machine *machine);

/* The machine: 50 layers of 20 us to 5 ms, 3 % jitter, counter of 1 ms. */
struct sim_options sim_defaults(void);

#endif
