/* nrg profile: what trained profiles know. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/parse.h"
#include "cli/internal.h"
#include "report/prediction/report.h"

struct values {
    const char *json;
};

static const struct nrg_opt options[] = {
    {"json", 'j', NRG_OPT_FILE, "FILE", "as JSON, to stdout or FILE",
     offsetof(struct values, json)},
    {0},
};

static void list_one(const char *path, json_t *list)
{
    struct nrg_profile profile;
    if (nrg_profile_read(&profile, path, NULL))
        return; /* some other JSON file */
    if (list) {
        json_t *o = nrg_profile_json(&profile);
        json_object_set_new(o, "file", json_string(path));
        json_array_append_new(list, o);
    } else {
        nrg_profile_line(&profile, path, stdout);
    }
    nrg_profile_release(&profile);
}

static int only_json(const struct dirent *entry)
{
    return nrg_ends_with(entry->d_name, ".json");
}

static int list_folder(const char *path, json_t *list)
{
    struct dirent **names;
    int n = scandir(path, &names, only_json, alphasort);
    if (n < 0) {
        nrg_say("%s: %s", path, strerror(errno));
        return 1;
    }
    for (int i = 0; i < n; i++) {
        char file[4096];
        int len = strcmp(path, ".") ? snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name)
                                    : snprintf(file, sizeof file, "%s", names[i]->d_name);
        if (len > 0 && (size_t)len < sizeof file)
            list_one(file, list);
        free(names[i]);
    }
    free(names);
    return 0;
}

static int list_all(const struct values *v, int argc, char **argv)
{
    json_t *list = v->json ? json_array() : NULL;
    int code = 0;
    for (int i = 0; !code && i < (argc ? argc : 1); i++) {
        const char *path = argc ? argv[i] : ".";
        struct stat st;
        if (!stat(path, &st) && !S_ISDIR(st.st_mode))
            list_one(path, list);
        else
            code = list_folder(path, list);
    }
    if (!list)
        return code;
    return nrg_print_json(json_pack("{s:s, s:o}", "schema", "nrg.profile-list/1", "profiles", list),
                          v->json) ||
           code;
}

/* Shows one profile, or compares two. */
static int show_profiles(const struct values *v, char **paths, int n)
{
    struct nrg_profile a = {0}, b = {0};
    struct nrg_error err;
    int rc = nrg_profile_read(&a, paths[0], &err), code = 0;
    if (!rc && n > 1)
        rc = nrg_profile_read(&b, paths[1], &err);
    if (rc)
        code = nrg_complain(&err, 1);
    else if (v->json)
        code = nrg_print_json(n > 1 ? nrg_profile_compare_json(&a, &b) : nrg_profile_json(&a),
                              v->json);
    else if (n > 1)
        nrg_profile_compare_text(&a, &b, stdout);
    else
        nrg_profile_text(&a, paths[0], stdout);
    nrg_profile_release(&a);
    nrg_profile_release(&b);
    return code;
}

static int run_profile(struct nrg_cli *cli, void *values, int argc, char **argv)
{
    const struct values *v = values;
    if (argc >= 1 && !strcmp(argv[0], "list"))
        return list_all(v, argc - 1, argv + 1);
    if (argc == 2 && !strcmp(argv[0], "show"))
        return show_profiles(v, argv + 1, 1);
    if (argc == 3 && !strcmp(argv[0], "compare"))
        return show_profiles(v, argv + 1, 2);
    return nrg_usage(cli, "list [FOLDER], show FILE or compare FILE FILE");
}

const struct nrg_command nrg_cmd_profile = {
    .name = "profile",
    .summary = "what trained profiles know",
    .synopsis = "list [FOLDER...] | show FILE | compare FILE FILE",
    .about =
        "list shows the profiles of a folder (default: here), show the coefficients, ranges and\n"
        "expected errors of one, compare two devices coefficient by coefficient.",
    .examples = "  nrg profile show device_1.json\n"
                "  nrg profile compare device_1.json device_2.json\n",
    .actions = "list show compare",
    .options = options,
    .values_size = sizeof(struct values),
    .run = run_profile,
};
