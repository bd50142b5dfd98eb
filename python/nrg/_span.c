/*
 * nrg._nrg.Span: a name that can be entered (`with`), and be put before a function.
 *
 * A Span has no state of its own but the number of its name: what is open is known to libnrg, per
 * thread. So one object serves all threads and all depths, and `span("x")` gives the same one each
 * time from a dictionary, which is most of why it is cheap. A number of its own ("step 7") makes a
 * small object that refers to the one of its name.
 *
 * The name's number is asked for when the span is first entered under a recorder, so that names of
 * programs that are not recorded take no room; from then on it is valid.
 */
#include "_nrg.h"

/* Programs that make up names as they go ("request 17") must not fill the memory. */
#define MAX_KEPT 4096

struct span {
    PyObject_HEAD uint32_t id;
    PyObject *name, *kind, *detail; /* bytes; empty: none */
    struct span *base;              /* of a numbered one; the three above are then NULL */
    int64_t number;
};

static PyTypeObject *span_type;
static PyObject *kept;             /* name, or (name, kind, detail): Span */
static PyObject *marks, *counters; /* name: Span that holds the number of its name */
static PyObject *mark_kind, *counter_kind;

static const char *content(PyObject *bytes)
{
    const char *text = PyBytes_AsString(bytes);
    return text && *text ? text : NULL;
}

static uint32_t ask_name(struct span *s)
{
    if (!nrg_py.recording_active())
        return 0;
    const char *name = content(s->name);
    s->id = nrg_py.name_intern(name ? name : "", content(s->kind), content(s->detail));
    return s->id;
}

static inline uint32_t name_of(struct span *s)
{
    return s->id ? s->id : ask_name(s);
}

static inline void begin(struct span *s)
{
    if (s->base)
        nrg_py.span_begin_numbered(name_of(s->base), s->number);
    else
        nrg_py.span_begin_name(name_of(s));
}

static PyObject *span_enter(PyObject *self, PyObject *unused)
{
    begin((struct span *)self);
    Py_INCREF(self);
    return self;
}

static PyObject *span_exit(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    nrg_py.span_end();
    Py_RETURN_NONE;
}

static PyObject *span_begin(PyObject *self, PyObject *unused)
{
    begin((struct span *)self);
    Py_RETURN_NONE;
}

static PyObject *span_end(PyObject *self, PyObject *unused)
{
    nrg_py.span_end();
    Py_RETURN_NONE;
}

/* As a decorator; rarely called, so the wrapper is made in Python. */
static PyObject *span_call(PyObject *self, PyObject *args, PyObject *keywords)
{
    PyObject *function, *wrapped = NULL;
    if (keywords && PyDict_Size(keywords)) {
        PyErr_SetString(PyExc_TypeError, "a span takes the function that it decorates");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O:span", &function))
        return NULL;
    PyObject *module = PyImport_ImportModule("nrg._decorate");
    if (module)
        wrapped = PyObject_CallMethod(module, "wrap", "OO", self, function);
    Py_XDECREF(module);
    return wrapped;
}

static void span_dealloc(PyObject *self)
{
    struct span *s = (struct span *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(s->name);
    Py_XDECREF(s->kind);
    Py_XDECREF(s->detail);
    Py_XDECREF((PyObject *)s->base);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF((PyObject *)type);
}

static struct span *allocate(void)
{
    allocfunc make = (allocfunc)PyType_GetSlot(span_type, Py_tp_alloc);
    return (struct span *)make(span_type, 0);
}

static PyObject *make_named(PyObject *name, PyObject *kind, PyObject *detail)
{
    struct span *s = allocate();
    const char *unused;
    if (s && (s->name = nrg_py_text(name, "the name of a span", &unused)) &&
        (s->kind = nrg_py_text(kind, "the kind of a span", &unused)) &&
        (s->detail = nrg_py_text(detail, "the detail of a span", &unused)))
        return (PyObject *)s;
    Py_XDECREF((PyObject *)s);
    return NULL;
}

static PyObject *make_numbered(PyObject *base, PyObject *number)
{
    struct span *s = allocate();
    if (s && !nrg_py_int64(number, &s->number)) {
        s->base = (struct span *)base;
        return (PyObject *)s;
    }
    Py_XDECREF((PyObject *)s);
    Py_DECREF(base);
    return NULL;
}

/* A new reference to the one Span of the key. */
static PyObject *keep(PyObject *in, PyObject *key, PyObject *name, PyObject *kind, PyObject *detail)
{
    PyObject *found = PyDict_GetItemWithError(in, key);
    if (found) {
        Py_INCREF(found);
        return found;
    }
    if (PyErr_Occurred() || !(found = make_named(name, kind, detail)))
        return NULL;
    if (PyDict_Size(in) >= MAX_KEPT)
        PyDict_Clear(in);
    if (PyDict_SetItem(in, key, found)) {
        Py_DECREF(found);
        return NULL;
    }
    return found;
}

static PyObject *make(PyObject *name, PyObject *kind, PyObject *number, PyObject *detail)
{
    PyObject *base;
    if (!PyUnicode_Check(name)) {
        PyErr_SetString(PyExc_TypeError, "the name of a span must be a str");
        return NULL;
    }
    if (kind == Py_None && detail == Py_None) {
        base = keep(kept, name, name, kind, detail);
    } else {
        PyObject *key = PyTuple_Pack(3, name, kind, detail);
        base = key ? keep(kept, key, name, kind, detail) : NULL;
        Py_XDECREF(key);
    }
    return base && number != Py_None ? make_numbered(base, number) : base;
}

/* Which of the four arguments a keyword names; -1 with an exception. */
static int place_of(PyObject *keyword)
{
    static const char *const known[] = {"name", "kind", "number", "detail"};
    for (int i = 0; i < 4; i++)
        if (!PyUnicode_CompareWithASCIIString(keyword, known[i]))
            return i;
    PyErr_Format(PyExc_TypeError, "span() has no argument %R", keyword);
    return -1;
}

PyObject *nrg_py_span(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *values[4] = {NULL, Py_None, Py_None, Py_None};
    if (n == 1 && !names) {
        PyObject *found = PyUnicode_Check(args[0]) ? PyDict_GetItemWithError(kept, args[0]) : NULL;
        Py_XINCREF(found);
        return found || PyErr_Occurred() ? found : make(args[0], Py_None, Py_None, Py_None);
    }
    if (n > 4) {
        PyErr_SetString(PyExc_TypeError, "span() takes name, kind, number and detail");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        values[i] = args[i];
    for (Py_ssize_t i = 0, count = names ? PyTuple_Size(names) : 0; i < count; i++) {
        int at = place_of(PyTuple_GetItem(names, i));
        if (at < 0)
            return NULL;
        values[at] = args[n + i];
    }
    if (!values[0]) {
        PyErr_SetString(PyExc_TypeError, "span() wants a name");
        return NULL;
    }
    return make(values[0], values[1], values[2], values[3]);
}

/* The number of a mark's or counter's name; -1 with an exception. */
static int64_t named(PyObject *in, PyObject *name, PyObject *kind)
{
    if (!PyUnicode_Check(name)) {
        PyErr_SetString(PyExc_TypeError, "a name must be a str");
        return -1;
    }
    PyObject *s = keep(in, name, name, kind, Py_None);
    int64_t id = s ? (int64_t)name_of((struct span *)s) : -1;
    Py_XDECREF(s);
    return id;
}

PyObject *nrg_py_mark_named(PyObject *module, PyObject *name)
{
    int64_t id = named(marks, name, mark_kind);
    if (id < 0)
        return NULL;
    nrg_py.mark_name((uint32_t)id);
    Py_RETURN_NONE;
}

PyObject *nrg_py_count_named(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    int64_t amount = 1;
    if (n < 1 || n > 2) {
        PyErr_SetString(PyExc_TypeError, "count() takes a name and an amount");
        return NULL;
    }
    if (n == 2 && nrg_py_int64(args[1], &amount))
        return NULL;
    int64_t id = named(counters, args[0], counter_kind);
    if (id < 0)
        return NULL;
    nrg_py.count_add_name((uint32_t)id, amount);
    Py_RETURN_NONE;
}

static PyObject *span_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *known[] = {"name", "kind", "number", "detail", NULL};
    PyObject *name, *kind = Py_None, *number = Py_None, *detail = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|OOO:Span", known, &name, &kind, &number,
                                     &detail))
        return NULL;
    return make(name, kind, number, detail);
}

static PyObject *span_repr(PyObject *self)
{
    struct span *s = (struct span *)self, *named = s->base ? s->base : s;
    const char *name = content(named->name);
    PyObject *text =
        PyUnicode_DecodeUTF8(name ? name : "", name ? PyBytes_Size(named->name) : 0, "replace");
    PyObject *result = text ? PyUnicode_FromFormat("<nrg span %R>", text) : NULL;
    Py_XDECREF(text);
    return result;
}

static PyMethodDef span_methods[] = {
    {"__enter__", span_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))(nrg_py_fast)span_exit, METH_FASTCALL, NULL},
    {"begin", span_begin, METH_NOARGS, "Begins it in the calling thread."},
    {"end", span_end, METH_NOARGS, "Ends what the calling thread began last."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot span_slots[] = {
    {Py_tp_new, (void *)(intptr_t)span_new},
    {Py_tp_dealloc, (void *)(intptr_t)span_dealloc},
    {Py_tp_call, (void *)(intptr_t)span_call},
    {Py_tp_repr, (void *)(intptr_t)span_repr},
    {Py_tp_methods, span_methods},
    {Py_tp_doc, "A named interval: use it with `with`, or before a function."},
    {0, NULL},
};

static PyType_Spec span_spec = {"nrg._nrg.Span", sizeof(struct span), 0, Py_TPFLAGS_DEFAULT,
                                span_slots};

int nrg_py_add_span(PyObject *module)
{
    span_type = (PyTypeObject *)PyType_FromSpec(&span_spec);
    kept = PyDict_New();
    marks = PyDict_New();
    counters = PyDict_New();
    mark_kind = PyUnicode_FromString("mark");
    counter_kind = PyUnicode_FromString("counter");
    if (!span_type || !kept || !marks || !counters || !mark_kind || !counter_kind)
        return -1;
    Py_INCREF((PyObject *)span_type);
    return PyModule_AddObject(module, "Span", (PyObject *)span_type);
}
