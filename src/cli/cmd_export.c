#include "cli/common.h"
static int run(struct nrg_cli *cli, void *v, int argc, char **argv){(void)cli;(void)v;(void)argc;(void)argv;return 2;}
const struct nrg_command nrg_cmd_export = {.name="export",.summary="",.synopsis="",.about="",.run=run};
