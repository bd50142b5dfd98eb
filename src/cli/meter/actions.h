/* The actions of `nrg meter`: watch, list, calibrate. Each returns an exit code. */
#ifndef NRG_CLI_METER_ACTIONS_H
#define NRG_CLI_METER_ACTIONS_H

#include "cli/desk.h"
#include "cli/internal.h"

struct nrg_meter_values {
    struct nrg_desk desk;
    bool raw, json;
    int count, seed;
    int64_t for_ns, max_delay_ns;
    const char *against, *output, *from;
};

#define NRG_METER_NO_URI "wants a URI: nrg.conf names no meter (nrg meter list)"

int nrg_meter_cmd_watch(struct nrg_cli *cli, struct nrg_meter_values *values, const char *uri);
int nrg_meter_cmd_list(struct nrg_cli *cli, struct nrg_meter_values *values);
int nrg_meter_cmd_calibrate(struct nrg_cli *cli, struct nrg_meter_values *values, const char *uri);

#endif
