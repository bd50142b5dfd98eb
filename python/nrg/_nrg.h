/*
 * Inside the extension module nrg._nrg: libnrg's functions, and the type Span.
 *
 * The module is written against the limited API of Python 3.8, so that one file serves every
 * CPython from there on, and does not link libnrg: it is looked for when the module is imported,
 * and without it every span is a call of an empty function. Its state is the process's, as
 * libnrg's is; the interpreter's lock guards it.
 */
#ifndef NRG_PYTHON_NRG_H
#define NRG_PYTHON_NRG_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

#include "nrg/nrg.h"

/* The flag has had this value and meaning since 3.7, and is in the limited API from 3.10 on. */
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif
typedef PyObject *(*nrg_py_fast)(PyObject *self, PyObject *const *args, Py_ssize_t n);
typedef PyObject *(*nrg_py_fast_keywords)(PyObject *self, PyObject *const *args, Py_ssize_t n,
                                          PyObject *names);

/* The calls of nrg.h that are used, by their names without `nrg_`. */
#define NRG_PY_FUNCTIONS(X)                                                                        \
    X(const char *, version, (void))                                                               \
    X(int, recording_active, (void))                                                               \
    X(uint32_t, name_intern, (const char *text, const char *kind, const char *detail))             \
    X(void, span_begin_name, (uint32_t name))                                                      \
    X(void, span_begin_numbered, (uint32_t name, int64_t number))                                  \
    X(void, span_end, (void))                                                                      \
    X(unsigned, span_depth, (void))                                                                \
    X(void, span_unwind, (unsigned depth))                                                         \
    X(void, span_past,                                                                             \
      (uint32_t name, const char *track, const char *domain, int64_t begin_ns, int64_t end_ns))    \
    X(void, mark_name, (uint32_t name))                                                            \
    X(void, count_add_name, (uint32_t name, int64_t amount))                                       \
    X(int, recorder_start_with, (const char *path, const struct nrg_recorder_settings *settings))  \
    X(int, recorder_note, (const char *key, const char *value))                                    \
    X(int, recorder_model,                                                                         \
      (const char *name, const char *format, const void *bytes, uint64_t size))                    \
    X(int, recorder_read, (struct nrg_recorder_reading * reading))                                 \
    X(int, recorder_idle, (int64_t begin_ns, int64_t end_ns))                                      \
    X(int, recorder_stop, (void))                                                                  \
    X(const char *, recorder_reason, (void))

#define NRG_PY_MEMBER(result, name, arguments) result(*name) arguments;

/* Functions of the library, or ones that do nothing when there is none: never NULL. */
struct nrg_py_library {
    NRG_PY_FUNCTIONS(NRG_PY_MEMBER)
    int loaded, lacking; /* lacking: one was found that does not fit */
    uint32_t generation; /* raised with each recorder started here */
    char path[4096];     /* of the file, once loaded */
    char reason[4096];   /* why it is not */
};
extern struct nrg_py_library nrg_py;

/* Looks for libnrg; afterwards `loaded`, or `reason` and functions that do nothing. */
void nrg_py_load(void);

/*
 * A text for libnrg: bytes that must be released, and in *out their content. None gives an empty
 * object and NULL. NULL with an exception when it is not a text or has a zero byte in it.
 */
PyObject *nrg_py_text(PyObject *text, const char *what, const char **out);
/* 0, or -1 with an exception. */
int nrg_py_int64(PyObject *number, int64_t *out);

/* The type Span, and what finds its objects by name; -1 with an exception. */
int nrg_py_add_span(PyObject *module);
PyObject *nrg_py_span(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *nrg_py_mark_named(PyObject *module, PyObject *name);
PyObject *nrg_py_count_named(PyObject *module, PyObject *const *args, Py_ssize_t n);

#endif
