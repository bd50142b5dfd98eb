/*
 * See libraries.h. Whether a library is bundled says the dynamic linker: its functions then lie in
 * the file that this function lies in. nrg_inside.h is the build's (src/meson.build).
 */
#include "record/libraries.h"

#include <dlfcn.h>
#include <jansson.h>
#include <nrg_inside.h>
#include <sqlite3.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/inflate.h"
#include "base/mem.h"

typedef void (*any_function)(void);

/* POSIX lets the address of a function be looked at as one of data; ISO C has no cast for it. */
static bool find_file(any_function function, Dl_info *info)
{
    void *address;
    memcpy(&address, &function, sizeof address);
    return dladdr(address, info) && info->dli_fbase;
}

static void describe(struct nrg_library *library, const char *name, const char *version,
                     any_function function, const char *package)
{
    Dl_info own, other = {0};
    *library = (struct nrg_library){.name = name};
    nrg_copy(library->version, sizeof library->version, version);
    library->bundled =
        !find_file(function, &other) ||
        (find_file((any_function)nrg_libraries_list, &own) && own.dli_fbase == other.dli_fbase);
    nrg_copy(library->place, sizeof library->place,
             library->bundled  ? package
             : other.dli_fname ? other.dli_fname
                               : "");
}

/* It may not be there: it is loaded when something compressed is read. */
static void describe_zlib(struct nrg_library *library)
{
    const char *(*version)(void) = NULL;
    void *zlib = nrg_inflate_load();
    if (zlib)
        nrg_inflate_find(zlib, "zlibVersion", &version, sizeof version);
    if (version)
        describe(library, "zlib", version(), (any_function)version, NRG_INSIDE_ZLIB);
    else
        *library = (struct nrg_library){.name = "zlib"};
    nrg_inflate_unload(zlib);
}

static const char *jansson_version(void)
{
#if JANSSON_VERSION_HEX >= 0x020d00
    return jansson_version_str();
#else
    return JANSSON_VERSION; /* it can't be asked; that of its header */
#endif
}

void nrg_libraries_list(struct nrg_library libraries[NRG_LIBRARIES])
{
    describe(&libraries[0], "sqlite", sqlite3_libversion(), (any_function)sqlite3_libversion,
             NRG_INSIDE_SQLITE);
    describe(&libraries[1], "zstd", ZSTD_versionString(), (any_function)ZSTD_versionString,
             NRG_INSIDE_ZSTD);
    describe(&libraries[2], "jansson", jansson_version(), (any_function)json_object,
             NRG_INSIDE_JANSSON);
    describe_zlib(&libraries[3]);
}
