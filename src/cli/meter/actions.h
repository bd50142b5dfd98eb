/* The actions of `nrg meter`: watch, list, calibrate. Each returns an exit code. */
#ifndef NRG_CLI_METER_H
#define NRG_CLI_METER_H

#include "cli/common.h"
#include "cli/desk.h"

struct nrg_meter_values {
    struct nrg_desk desk;
    bool raw, json;
    int count, seed;
    int64_t for_ns, max_delay_ns;
    const char *against, *output, *from;
};

int nrg_meter_cmd_watch(struct nrg_cli *cli, struct nrg_meter_values *values, const char *uri);
int nrg_meter_cmd_list(struct nrg_cli *cli, struct nrg_meter_values *values);
int nrg_meter_cmd_calibrate(struct nrg_cli *cli, struct nrg_meter_values *values, const char *uri);

/* True once Ctrl-C or a termination was asked for; install first. */
void nrg_meter_stop_on_signals(void);
bool nrg_meter_stopped(void);

#endif
