/*
 * nrg._nrg: libnrg's calls for Python. The package's own modules are the ones meant to be used;
 * here is what must be fast (marking) or can't be done in Python (the recorder).
 *
 *   span(name, kind, number, detail)   a Span, kept by name (_span.c)
 *   name(text, kind, detail)           a number for begin(), mark(), count(), past()
 *   begin(id) begin_numbered(id, n) end() depth() unwind(depth) past(id, track, domain, t0, t1)
 *   mark(id) count(id, amount) active() generation()
 *   mark_named(name) count_named(name, amount)   the same by name, as nrg.mark and nrg.count
 *   start(path, rate_hz, sensors, root, overwrite) note(key, value) model(name, format, bytes)
 *   read()                             (energy_j, provenance, t_ns) since start, by a reading now
 *   idle(begin_ns, end_ns)             the program did nothing then
 *   stop()                             the recorder of this process; raise Error
 *   library() reason() version()       what was found, or why nothing was
 *   built                              the version that this module is of
 *   around() around_module() connect() thread() drop_thread() State Thread Entry   nrg.torch's part
 *                                      (_torch.h)
 *
 * Marking keeps the interpreter's lock: it takes less time than giving it away. The recorder's
 * calls wait for sensors and disks, and let other threads run.
 */
#include <string.h>

#include "_torch.h"

static PyObject *error_type;

PyObject *nrg_py_text(PyObject *text, const char *what, const char **out)
{
    *out = NULL;
    if (text == Py_None)
        return PyBytes_FromStringAndSize("", 0);
    if (!PyUnicode_Check(text)) {
        PyErr_Format(PyExc_TypeError, "%s must be a str", what);
        return NULL;
    }
    PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
    char *content;
    if (bytes && !PyBytes_AsStringAndSize(bytes, &content, NULL)) {
        *out = content;
        return bytes;
    }
    Py_XDECREF(bytes);
    if (PyErr_ExceptionMatches(PyExc_ValueError))
        PyErr_Format(PyExc_ValueError, "%s has a zero character in it", what);
    return NULL;
}

int nrg_py_int64(PyObject *number, int64_t *out)
{
    *out = PyLong_AsLongLong(number);
    return *out == -1 && PyErr_Occurred() ? -1 : 0;
}

static int as_id(PyObject *number, uint32_t *out)
{
    unsigned long id = PyLong_AsUnsignedLong(number);
    if (id == (unsigned long)-1 && PyErr_Occurred())
        return -1;
    *out = id <= UINT32_MAX ? (uint32_t)id : 0;
    return 0;
}

static int count_is(Py_ssize_t n, Py_ssize_t least, Py_ssize_t most, const char *function)
{
    if (n >= least && n <= most)
        return 0;
    PyErr_Format(PyExc_TypeError, "%s() was given %zd arguments", function, n);
    return -1;
}

/*
 * The same of a name that was found (of a module, a layer), which its program need not have chosen
 * for us: a zero character is written \x00, because no model may fail by what it is called.
 */
static PyObject *found_text(PyObject *text, const char *what, const char **out)
{
    if (!PyUnicode_Check(text))
        return nrg_py_text(text, what, out);
    PyObject *clean = PyObject_CallMethod(text, "replace", "Cs", 0, "\\x00");
    PyObject *bytes = clean ? nrg_py_text(clean, what, out) : NULL;
    Py_XDECREF(clean);
    return bytes;
}

static PyObject *get_name(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *known[] = {"text", "kind", "detail", NULL};
    PyObject *given[3] = {NULL, Py_None, Py_None}, *bytes[3] = {NULL};
    const char *text[3] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|OO:name", known, &given[0], &given[1],
                                     &given[2]))
        return NULL;
    int i = 0;
    while (i < 3 && (bytes[i] = found_text(given[i], known[i], &text[i])))
        i++;
    PyObject *id = NULL;
    if (i == 3)
        id = PyLong_FromUnsignedLong(nrg_py.name_intern(text[0] ? text[0] : "", text[1], text[2]));
    for (i = 0; i < 3; i++)
        Py_XDECREF(bytes[i]);
    return id;
}

static PyObject *begin(PyObject *module, PyObject *id)
{
    uint32_t name;
    if (as_id(id, &name))
        return NULL;
    nrg_py.span_begin_name(name);
    Py_RETURN_NONE;
}

static PyObject *begin_numbered(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    uint32_t name;
    int64_t number;
    if (count_is(n, 2, 2, "begin_numbered") || as_id(args[0], &name) ||
        nrg_py_int64(args[1], &number))
        return NULL;
    nrg_py.span_begin_numbered(name, number);
    Py_RETURN_NONE;
}

static PyObject *end(PyObject *module, PyObject *unused)
{
    nrg_py.span_end();
    Py_RETURN_NONE;
}

static PyObject *depth(PyObject *module, PyObject *unused)
{
    return PyLong_FromUnsignedLong(nrg_py.span_depth());
}

static PyObject *unwind(PyObject *module, PyObject *left)
{
    unsigned long n = PyLong_AsUnsignedLong(left);
    if (n == (unsigned long)-1 && PyErr_Occurred())
        return NULL;
    nrg_py.span_unwind(n < UINT_MAX ? (unsigned)n : UINT_MAX);
    Py_RETURN_NONE;
}

static PyObject *past(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    const char *track, *domain = NULL;
    int64_t begin_ns, end_ns;
    uint32_t name;
    if (count_is(n, 5, 5, "past") || as_id(args[0], &name) || nrg_py_int64(args[3], &begin_ns) ||
        nrg_py_int64(args[4], &end_ns))
        return NULL;
    PyObject *track_bytes = nrg_py_text(args[1], "a track", &track);
    PyObject *domain_bytes = track_bytes ? nrg_py_text(args[2], "a domain", &domain) : NULL;
    if (domain_bytes)
        nrg_py.span_past(name, track, domain, begin_ns, end_ns);
    Py_XDECREF(track_bytes);
    Py_XDECREF(domain_bytes);
    if (!domain_bytes)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *mark(PyObject *module, PyObject *id)
{
    uint32_t name;
    if (as_id(id, &name))
        return NULL;
    nrg_py.mark_name(name);
    Py_RETURN_NONE;
}

static PyObject *count(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    uint32_t name;
    int64_t amount;
    if (count_is(n, 2, 2, "count") || as_id(args[0], &name) || nrg_py_int64(args[1], &amount))
        return NULL;
    nrg_py.count_add_name(name, amount);
    Py_RETURN_NONE;
}

static PyObject *active(PyObject *module, PyObject *unused)
{
    return PyBool_FromLong(nrg_py.recording_active());
}

static PyObject *generation(PyObject *module, PyObject *unused)
{
    return PyLong_FromUnsignedLong(nrg_py.generation);
}

/* None, or NULL with an Error that has the library's reason and the code as `errno`. */
static PyObject *done(int rc)
{
    if (!rc)
        Py_RETURN_NONE;
    const char *reason = nrg_py.recorder_reason();
    PyObject *text =
        PyUnicode_DecodeUTF8(*reason ? reason : strerror(-rc),
                             (Py_ssize_t)strlen(*reason ? reason : strerror(-rc)), "replace");
    PyObject *error = text ? PyObject_CallFunctionObjArgs(error_type, text, NULL) : NULL;
    PyObject *code = error ? PyLong_FromLong(-rc) : NULL;
    if (code && !PyObject_SetAttrString(error, "errno", code))
        PyErr_SetObject(error_type, error);
    Py_XDECREF(text);
    Py_XDECREF(code);
    Py_XDECREF(error);
    return NULL;
}

static int have_library(void)
{
    if (nrg_py.loaded)
        return 1;
    PyErr_Format(
        error_type,
        "cannot record: there is no libnrg to use (%s). Install nrg, or set NRG_LIBRARY to "
        "the path of libnrg.so.0",
        nrg_py.reason);
    return 0;
}

static PyObject *start(PyObject *module, PyObject *args)
{
    struct nrg_recorder_settings settings = {.size = sizeof settings};
    const char *path;
    int overwrite, rc;
    if (!PyArg_ParseTuple(args, "sdzzp:start", &path, &settings.rate_hz, &settings.sensors,
                          &settings.root, &overwrite) ||
        !have_library())
        return NULL;
    settings.overwrite = overwrite;
    Py_BEGIN_ALLOW_THREADS;
    rc = nrg_py.recorder_start_with(path, &settings);
    Py_END_ALLOW_THREADS;
    if (!rc)
        nrg_py.generation++;
    return done(rc);
}

static PyObject *note(PyObject *module, PyObject *args)
{
    const char *key, *value;
    if (!PyArg_ParseTuple(args, "ss:note", &key, &value) || !have_library())
        return NULL;
    return done(nrg_py.recorder_note(key, value));
}

static PyObject *model(PyObject *module, PyObject *args)
{
    const char *name, *format;
    PyObject *content;
    char *bytes;
    Py_ssize_t size;
    int rc;
    if (!PyArg_ParseTuple(args, "szO:model", &name, &format, &content) || !have_library() ||
        PyBytes_AsStringAndSize(content, &bytes, &size))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    rc = nrg_py.recorder_model(name, format, bytes, (uint64_t)size);
    Py_END_ALLOW_THREADS;
    return done(rc);
}

static PyObject *read_now(PyObject *module, PyObject *unused)
{
    struct nrg_recorder_reading reading = {.size = sizeof reading};
    static const char *const words[] = {
        [NRG_MEASURED] = "measured", [NRG_DERIVED] = "derived", [NRG_ESTIMATED] = "estimated"};
    int rc;
    if (!have_library())
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    rc = nrg_py.recorder_read(&reading);
    Py_END_ALLOW_THREADS;
    if (rc)
        return done(rc);
    int worst = reading.provenance > NRG_ESTIMATED ? NRG_ESTIMATED : (int)reading.provenance;
    return Py_BuildValue("(dsL)", reading.energy_j, words[worst], (long long)reading.t_ns);
}

static PyObject *idle(PyObject *module, PyObject *args)
{
    long long begin_ns, end_ns;
    if (!PyArg_ParseTuple(args, "LL:idle", &begin_ns, &end_ns) || !have_library())
        return NULL;
    return done(nrg_py.recorder_idle(begin_ns, end_ns));
}

static PyObject *stop(PyObject *module, PyObject *unused)
{
    int rc;
    if (!have_library())
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    rc = nrg_py.recorder_stop();
    Py_END_ALLOW_THREADS;
    return done(rc);
}

static PyObject *library(PyObject *module, PyObject *unused)
{
    if (!nrg_py.loaded)
        Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefault(nrg_py.path);
}

static PyObject *reason(PyObject *module, PyObject *unused)
{
    return PyUnicode_DecodeFSDefault(nrg_py.reason);
}

static PyObject *version(PyObject *module, PyObject *unused)
{
    return PyUnicode_FromString(nrg_py.version());
}

#define FAST(f)          ((PyCFunction)(void (*)(void))(nrg_py_fast)(f))
#define FAST_KEYWORDS(f) ((PyCFunction)(void (*)(void))(nrg_py_fast_keywords)(f))
#define KEYWORDS(f)      ((PyCFunction)(void (*)(void))(f))

static PyMethodDef functions[] = {
    {"span", FAST_KEYWORDS(nrg_py_span), METH_FASTCALL | METH_KEYWORDS,
     "span(name, kind=None, number=None, detail=None)\n\n"
     "A named interval: use it with `with`, or before a function."},
    {"name", KEYWORDS(get_name), METH_VARARGS | METH_KEYWORDS,
     "name(text, kind=None, detail=None) -> int"},
    {"begin", begin, METH_O, "begin(id)"},
    {"begin_numbered", FAST(begin_numbered), METH_FASTCALL, "begin_numbered(id, number)"},
    {"end", end, METH_NOARGS, "end()"},
    {"depth", depth, METH_NOARGS, "depth() -> int: open spans of the calling thread"},
    {"unwind", unwind, METH_O, "unwind(depth): ends spans until so many are left"},
    {"past", FAST(past), METH_FASTCALL, "past(id, track, domain, begin_ns, end_ns)"},
    {"mark", mark, METH_O, "mark(id)"},
    {"count", FAST(count), METH_FASTCALL, "count(id, amount)"},
    {"mark_named", nrg_py_mark_named, METH_O, "mark(name)\n\nSomething that happened now."},
    {"count_named", FAST(nrg_py_count_named), METH_FASTCALL,
     "count(name, amount=1)\n\n"
     "Work done: tokens, samples, requests. Adds up; reports give joules per unit."},
    {"active", active, METH_NOARGS, "active() -> bool: a recorder listens to this process"},
    {"generation", generation, METH_NOARGS, "generation() -> int: another one with each recorder"},
    {"start", start, METH_VARARGS, "start(path, rate_hz, sensors, root, overwrite)"},
    {"note", note, METH_VARARGS, "note(key, value)"},
    {"model", model, METH_VARARGS, "model(name, format, bytes)"},
    {"read", read_now, METH_NOARGS, "read() -> (joules since start, provenance, t_ns)"},
    {"idle", idle, METH_VARARGS, "idle(begin_ns, end_ns)"},
    {"stop", stop, METH_NOARGS, "stop()"},
    {"library", library, METH_NOARGS, "library() -> str or None: the file of libnrg"},
    {"reason", reason, METH_NOARGS, "reason() -> str: why there is no library"},
    {"version", version, METH_NOARGS, "version() -> str: libnrg's"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "nrg._nrg", "libnrg's calls", -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__nrg(void);
PyMODINIT_FUNC PyInit__nrg(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (!module)
        return NULL;
    nrg_py_load();
    error_type = PyErr_NewExceptionWithDoc("nrg.Error", "nrg could not do it, and says why.",
                                           PyExc_RuntimeError, NULL);
    if (error_type) {
        Py_INCREF(error_type);
        if (!PyModule_AddObject(module, "Error", error_type) && !nrg_py_add_span(module) &&
            !nrg_py_add_torch(module) &&
            !PyModule_AddStringConstant(module, "built", NRG_VERSION) &&
            !PyModule_AddStringConstant(module, "program_place", NRG_PY_PROGRAM_PLACE))
            return module;
    }
    Py_DECREF(module);
    return NULL;
}
