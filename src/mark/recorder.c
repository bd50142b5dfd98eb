/*
 * The recorder's functions of nrg.h, as libnrg.so has them: the first start loads the recorder
 * (inprocess.h) from beside the library, every call is handed on to it. So programs that only mark
 * load neither it nor the libraries that it needs.
 *
 * Loading needs no lock: two threads that do it at once get the same object. It is never unloaded,
 * because its threads, its exit handler and its fork handler stay. Process state, as in
 * mark/client.c: which object was loaded, and each thread's last reason.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mark/client.h"
#include "mark/inprocess.h"

static const struct nrg_inprocess_host host = {
    .attach = nrg_span_client_attach,
    .detach = nrg_span_client_detach,
    .recording_active = nrg_recording_active,
};

static const struct nrg_inprocess *_Atomic loaded;

static struct {
    pthread_once_t once;
    pthread_key_t key; /* of each thread: the text of its last error, owned */
    bool usable;
} reasons = {.once = PTHREAD_ONCE_INIT};

static void make_reasons(void)
{
    reasons.usable = !pthread_key_create(&reasons.key, free);
}

/* Remembers why, for nrg_recorder_reason; returns code. */
static int remember_reason(int code, const struct nrg_error *err)
{
    char text[700];
    pthread_once(&reasons.once, make_reasons);
    if (!reasons.usable)
        return code;
    free(pthread_getspecific(reasons.key));
    pthread_setspecific(reasons.key, code ? strdup(nrg_error_text(err, text, sizeof text)) : NULL);
    return code;
}

const char *nrg_recorder_reason(void)
{
    pthread_once(&reasons.once, make_reasons);
    const char *text = reasons.usable ? pthread_getspecific(reasons.key) : NULL;
    return text ? text : "";
}

/* The recorder lies beside the file that this code is in, or below, whatever links lead there. */
static int find_object(char path[PATH_MAX], struct nrg_error *err)
{
    const char *given = secure_getenv(NRG_INPROCESS_VARIABLE);
    Dl_info own;
    if (given && *given) {
        return snprintf(path, PATH_MAX, "%s", given) < PATH_MAX
                   ? 0
                   : nrg_fail(err, -ENAMETOOLONG, NULL, "%s", strerror(ENAMETOOLONG));
    }
    if (!dladdr(&reasons, &own) || !own.dli_fname || !realpath(own.dli_fname, path))
        return nrg_fail(err, -ELIBACC, NULL,
                        "the recorder can't be looked for: libnrg's own file is not known");
    char *name = strrchr(path, '/') + 1;
    if ((size_t)(name - path) + sizeof NRG_INPROCESS_FILE > PATH_MAX)
        return nrg_fail(err, -ENAMETOOLONG, NULL, "%s", strerror(ENAMETOOLONG));
    memcpy(name, NRG_INPROCESS_FILE, sizeof NRG_INPROCESS_FILE);
    return 0;
}

static const struct nrg_inprocess *open_object(const char *path, struct nrg_error *err)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const struct nrg_inprocess *found = object ? dlsym(object, NRG_INPROCESS_SYMBOL) : NULL;
    if (!found) {
        const char *why = dlerror();
        nrg_fail(err, -ELIBACC, NULL, "the recorder can't be loaded: %s", why ? why : path);
        return NULL;
    }
    if (strncmp(found->version, nrg_version(), sizeof found->version) != 0) {
        nrg_fail(
            err, -ELIBBAD, path,
            "the recorder is of nrg %.*s, libnrg of %s: install both from one wheel or package",
            (int)sizeof found->version, found->version, nrg_version());
        return NULL;
    }
    return found;
}

static const struct nrg_inprocess *load_recorder(struct nrg_error *err)
{
    char path[PATH_MAX];
    const struct nrg_inprocess *recorder = atomic_load(&loaded);
    if (recorder || find_object(path, err))
        return recorder;
    recorder = open_object(path, err);
    if (recorder)
        atomic_store(&loaded, recorder);
    return recorder;
}

/* For all calls but start: a recorder that was never loaded does not run. */
static const struct nrg_inprocess *running_recorder(struct nrg_error *err)
{
    const struct nrg_inprocess *recorder = atomic_load(&loaded);
    if (!recorder)
        nrg_fail(err, -ENOENT, NULL, NRG_INPROCESS_NONE);
    return recorder;
}

int nrg_recorder_start_with(const char *path, const struct nrg_recorder_settings *settings)
{
    struct nrg_error err = {0};
    const struct nrg_inprocess *recorder = load_recorder(&err);
    return remember_reason(recorder ? recorder->start(&host, path, settings, &err) : err.code,
                           &err);
}

int nrg_recorder_start(const char *path)
{
    return nrg_recorder_start_with(path, NULL);
}

int nrg_recorder_note(const char *key, const char *value)
{
    struct nrg_error err = {0};
    const struct nrg_inprocess *recorder = running_recorder(&err);
    return remember_reason(recorder ? recorder->note(key, value, &err) : err.code, &err);
}

int nrg_recorder_model(const char *name, const char *format, const void *bytes, uint64_t size)
{
    struct nrg_error err = {0};
    const struct nrg_inprocess *recorder = running_recorder(&err);
    return remember_reason(recorder ? recorder->model(name, format, bytes, size, &err) : err.code,
                           &err);
}

int nrg_recorder_read(struct nrg_recorder_reading *reading)
{
    struct nrg_error err = {0};
    const struct nrg_inprocess *recorder = running_recorder(&err);
    return remember_reason(recorder ? recorder->read(reading, &err) : err.code, &err);
}

int nrg_recorder_idle(int64_t begin_ns, int64_t end_ns)
{
    struct nrg_error err = {0};
    const struct nrg_inprocess *recorder = running_recorder(&err);
    return remember_reason(recorder ? recorder->idle(begin_ns, end_ns, &err) : err.code, &err);
}

int nrg_recorder_stop(void)
{
    struct nrg_error err = {0};
    const struct nrg_inprocess *recorder = running_recorder(&err);
    return remember_reason(recorder ? recorder->stop(&err) : err.code, &err);
}
