/* The actions of nrg llm, and the values of its options. Each returns an exit code. */
#ifndef NRG_CLI_LLM_ACTIONS_H
#define NRG_CLI_LLM_ACTIONS_H

#include "cli/desk.h"
#include "cli/internal.h"
#include "cli/run/pids.h"
#include "record/read/recording.h"

struct nrg_llm_values {
    const char *upstream, *listen, *output, *json;
    bool header, force, ask_usage;
    double rate_hz;
    int64_t for_ns, baseline_ns, gather_ns;
    int requests, connections;
    struct nrg_run_pids given;
    struct nrg_list notes, sensors, allowed;
    struct nrg_desk desk;
    struct nrg_idle_full cpu_watts;
};

int nrg_llm_cmd_proxy(struct nrg_cli *cli, struct nrg_llm_values *values);
int nrg_llm_cmd_report(struct nrg_cli *cli, struct nrg_llm_values *values, const char *path);

/* As many clients at a time as wanted, or as the limit of descriptors allows, which is raised. */
int nrg_llm_most_connections(int wanted);

/* Requests and energies of a recording, as text to `text_out` (NULL: none) and JSON where asked. */
int nrg_llm_show(struct nrg_recording *recording, const struct nrg_llm_values *values,
                 FILE *text_out);

#endif
