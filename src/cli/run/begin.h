/*
 * What commands share that record this machine with options of the command line (nrg run, nrg llm
 * proxy): the recording's name, the notes and settings that it keeps, and the edges of its runs.
 */
#ifndef NRG_CLI_RUN_BEGIN_H
#define NRG_CLI_RUN_BEGIN_H

#include "cli/cli.h"
#include "record/sampler/recorder.h"

int nrg_store_note_option(const struct nrg_opt_type *type, void *field, const char *value);
/* struct nrg_list: "KEY=VALUE", may be repeated. A key has at most 58 bytes, as with nrg_note(). */
#define NRG_NOTE_KEY  59
#define NRG_OPT_NOTES NRG_OPT_OWN_LIST(nrg_store_note_option, "KEY=VALUE")

/* What the user named, or a file name with the date, in the working directory or else in the
 * temporary one. 0, or 1 after saying that it is too long. */
int nrg_run_output_path(const char *given, char *path, size_t size);

/*
 * Sharing out energy among processes needs the machine's load, so it is read even when sensors are
 * named. Not beside a replay, whose load was another one. 0 or -ENOMEM.
 */
int nrg_run_add_load(struct nrg_list *sensors);

/* What was measured, what nrg was told, on the command line and in nrg.conf (cli/settings.h says
 * what is kept), and the user's notes. */
void nrg_run_write_notes(struct nrg_recorder *recorder, const struct nrg_cli *cli,
                         const char *command_line, const struct nrg_list *notes);

/* Readings at both edges. The number is the run's; a run that has ended is in the recording. */
struct nrg_run nrg_run_begin(struct nrg_recorder *recorder, int64_t id, const char *kind);
void nrg_run_end(struct nrg_recorder *recorder, struct nrg_run *run);

#endif
