/*
 * See read.h. The content of a path decides its form: a folder with one of IrEne's files, a folder
 * of the Jetson study (layer types, or statistics with an engine info), a folder of recordings, or
 * a file that starts like a recording, JSON or a CSV header. Folders inside of a folder are read
 * one by one.
 */
#include "predict/dataset/read.h"

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/input.h"
#include "base/mem.h"
#include "predict/dataset/internal.h"
#include "predict/dataset/layer_features.h"

#define FILE_LIMIT ((size_t)4 << 30)
#define PATH_SIZE  4096

int nrg_csv_read(struct nrg_text file, void *arg,
                 int (*header)(void *arg, const struct nrg_csv *csv, struct nrg_error *err),
                 int (*row)(void *arg, const struct nrg_csv *csv, struct nrg_error *err),
                 struct nrg_error *err)
{
    struct nrg_csv csv;
    nrg_csv_init(&csv, file.text, file.size, file.name);
    int rc = nrg_csv_next(&csv, err);
    size_t width = csv.n;
    if (!rc)
        rc = nrg_fail(err, -ENODATA, file.name, "is empty");
    else if (rc > 0)
        rc = header(arg, &csv, err);
    while (!rc && (rc = nrg_csv_next(&csv, err)) > 0)
        rc = csv.n == width ? row(arg, &csv, err)
                            : nrg_fail_at(err, -EBADMSG, file.name, csv.line,
                                          "has %zu cells, the header has %zu", csv.n, width);
    nrg_csv_release(&csv);
    return rc;
}

static int join_path(char *out, const char *folder, const char *name)
{
    int n = snprintf(out, PATH_SIZE, "%s/%s", folder, name);
    return n > 0 && n < PATH_SIZE ? 0 : -ENAMETOOLONG;
}

/* Reads a whole file, plain or gzip. */
static int load_text(const char *path, struct nrg_text *out, struct nrg_error *err)
{
    struct nrg_str text = {0};
    struct nrg_input input;
    char buf[65536];
    size_t n;
    int rc = nrg_input_open(&input, path, err);
    if (rc)
        return rc;
    rc = nrg_str_add(&text, "", 0);
    while (!rc && (n = fread(buf, 1, sizeof buf, input.in)) > 0)
        rc = text.len > FILE_LIMIT ? -EFBIG : nrg_str_add(&text, buf, n);
    if (!rc && ferror(input.in))
        rc = errno ? -errno : -EIO;
    nrg_input_close(&input);
    if (rc) {
        nrg_str_release(&text);
        return nrg_fail(err, rc, path, "cannot read: %s", nrg_input_why(-rc));
    }
    *out = (struct nrg_text){text.text, text.len, path};
    return 0;
}

/* The last part of a path without slashes at its end. */
static void last_part(const char *path, char *out, size_t size)
{
    char copy[PATH_SIZE];
    nrg_copy(copy, sizeof copy, path);
    nrg_copy(out, size, basename(copy));
}

static bool is_file(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISREG(st.st_mode);
}

static bool has_file(const char *folder, const char *name)
{
    char path[PATH_SIZE];
    return !join_path(path, folder, name) && is_file(path);
}

static int read_irene(struct nrg_dataset *set, const char *folder, struct nrg_error *err)
{
    struct nrg_text files[NRG_IRENE_FILES] = {0};
    char paths[NRG_IRENE_FILES][PATH_SIZE], device[256];
    int rc = 0;
    last_part(folder, device, sizeof device);
    for (int i = 0; !rc && i < NRG_IRENE_FILES; i++) {
        if (has_file(folder, nrg_irene_names[i]) &&
            !join_path(paths[i], folder, nrg_irene_names[i]))
            rc = load_text(paths[i], &files[i], err);
        else if (nrg_dataset_note(set, folder, -1, "a file of the four is missing"))
            rc = nrg_fail(err, -ENOMEM, folder, "out of memory");
    }
    if (!rc)
        rc = nrg_dataset_read_irene(set, files, device, err);
    for (int i = 0; i < NRG_IRENE_FILES; i++)
        free(files[i].text);
    return rc;
}

static const char *layer_file(int type, char *name, size_t size)
{
    snprintf(name, size, "%s.csv", nrg_layer_type_names[type]);
    return name;
}

static int read_layers(struct nrg_dataset *set, const char *folder,
                       const struct nrg_read_options *options, struct nrg_error *err)
{
    char path[PATH_SIZE], name[40], model[256];
    int rc = 0;
    last_part(folder, model, sizeof model);
    for (int t = 0; !rc && t < NRG_LAYER_TYPES; t++) {
        struct nrg_text file;
        if (!has_file(folder, layer_file(t, name, sizeof name)) || join_path(path, folder, name) ||
            (rc = load_text(path, &file, err)))
            continue;
        rc = nrg_dataset_read_jetson(set, file, t, model, options, err);
        free(file.text);
    }
    return rc;
}

/* "<folder>/<model>_average_<what>_stats.csv"; the model is named as the folder. */
static int stats_path(char *out, const char *folder, const char *what)
{
    char model[256], name[400];
    last_part(folder, model, sizeof model);
    snprintf(name, sizeof name, "%s_average_%s_stats.csv", model, what);
    return join_path(out, folder, name);
}

static int read_stats(struct nrg_dataset *set, const char *folder,
                      const struct nrg_read_options *options, struct nrg_error *err)
{
    static const char engine[] = "trt_engine_info.json";
    char power_path[PATH_SIZE], time_path[PATH_SIZE], layers[PATH_SIZE], model[256];
    struct nrg_text power = {0}, run_time = {0};
    last_part(folder, model, sizeof model);
    if (stats_path(power_path, folder, "power") || stats_path(time_path, folder, "run_time") ||
        join_path(layers, folder, engine))
        return nrg_fail(err, -ENAMETOOLONG, folder, "%s", strerror(ENAMETOOLONG));
    int rc = load_text(power_path, &power, err);
    if (!rc)
        rc = load_text(time_path, &run_time, err);
    if (!rc && !options->layers && !has_file(folder, engine))
        rc = nrg_fail(err, -ENOENT, folder,
                      "has no trt_engine_info.json that describes its layers: name one, or a "
                      "model_summary.json, with --layers");
    if (!rc)
        rc = nrg_dataset_read_jetson_stats(
            set, power, run_time, options->layers ? options->layers : layers, model, options, err);
    free(power.text);
    free(run_time.text);
    return rc;
}

static int is_recording(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return entry->d_name[0] != '.' && dot && !strcmp(dot, ".nrg");
}

/* By number where names have one: measure-10.nrg after measure-9.nrg. */
static int read_recordings(struct nrg_dataset *set, const char *folder,
                           const struct nrg_read_options *options, bool *found,
                           struct nrg_error *err)
{
    struct dirent **names = NULL;
    int n = scandir(folder, &names, is_recording, versionsort), rc = 0;
    char(*paths)[PATH_SIZE] = n > 0 ? nrg_calloc((size_t)n, sizeof *paths) : NULL;
    const char **list = n > 0 ? nrg_calloc((size_t)n, sizeof *list) : NULL;
    *found = n > 0;
    if (n > 0 && (!paths || !list))
        rc = nrg_fail(err, -ENOMEM, folder, "out of memory");
    for (int i = 0; i < n; i++) {
        if (!rc && (rc = join_path(paths[i], folder, names[i]->d_name)))
            nrg_fail(err, rc, folder, "%s", strerror(-rc));
        if (!rc)
            list[i] = paths[i];
        free(names[i]);
    }
    free(names);
    if (!rc && n > 0)
        rc = nrg_dataset_read_recordings(set, list, (size_t)n, options, err);
    free(list);
    free(paths);
    return rc;
}

static int read_folder(struct nrg_dataset *set, const char *path,
                       const struct nrg_read_options *options, bool *found, struct nrg_error *err)
{
    char stats[PATH_SIZE], name[40];
    *found = true;
    for (int i = 0; i < NRG_IRENE_FILES; i++)
        if (has_file(path, nrg_irene_names[i]))
            return read_irene(set, path, err);
    if (!stats_path(stats, path, "power") && is_file(stats))
        return read_stats(set, path, options, err);
    for (int t = 0; t < NRG_LAYER_TYPES; t++)
        if (has_file(path, layer_file(t, name, sizeof name)))
            return read_layers(set, path, options, err);
    return read_recordings(set, path, options, found, err);
}

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* A folder of folders, one for each model or device. */
static int read_below(struct nrg_dataset *set, const char *path,
                      const struct nrg_read_options *options, struct nrg_error *err)
{
    struct dirent **names = NULL;
    int n = scandir(path, &names, not_hidden, alphasort), rc = 0;
    bool any = false;
    if (n < 0)
        return nrg_fail(err, -errno, path, "%s", strerror(errno));
    for (int i = 0; i < n; i++) {
        char below[PATH_SIZE];
        struct stat st;
        bool found = false;
        if (!rc && !join_path(below, path, names[i]->d_name) && !stat(below, &st) &&
            S_ISDIR(st.st_mode))
            rc = read_folder(set, below, options, &found, err);
        any |= found;
        free(names[i]);
    }
    free(names);
    if (!rc && !any)
        rc = nrg_fail(err, -ENODATA, path,
                      "is a folder without data that nrg knows: see nrg dataset --help");
    return rc;
}

int nrg_dataset_read(struct nrg_dataset *set, const char *path,
                     const struct nrg_read_options *options, struct nrg_error *err)
{
    struct stat st;
    struct nrg_text file;
    bool found = false;
    if (stat(path, &st))
        return nrg_fail(err, -errno, path, "%s", strerror(errno));
    if (S_ISDIR(st.st_mode)) {
        int rc = read_folder(set, path, options, &found, err);
        return rc || found ? rc : read_below(set, path, options, err);
    }
    if (nrg_is_database(path))
        return nrg_dataset_read_recordings(set, &path, 1, options, err);
    int rc = load_text(path, &file, err);
    if (rc)
        return rc;
    size_t at = 0;
    while (at < file.size && strchr(" \t\r\n", file.text[at]))
        at++;
    if (at < file.size && file.text[at] == '{')
        rc = nrg_dataset_read_json(set, file.text, file.size, path, options, err);
    else if (at < file.size && file.text[at] == '[')
        rc = nrg_dataset_read_mlenergy(set, file.text, file.size, path, options, err);
    else
        rc = nrg_dataset_read_csv(set, file.text, file.size, path, options, err);
    free(file.text);
    return rc;
}
