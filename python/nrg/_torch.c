/*
 * The parts of nrg.torch that are known by both sides: State, Thread and Entry, which its Python
 * classes derive from, and connect(), by which it hands in what is called back (_torch.h).
 */
#include "_torch.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

struct nrg_py_torch nrg_py_torch;
static PyObject *thread_key;
static PyTypeObject *state_type, *entry_type, *thread_type;

void nrg_py_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF((PyObject *)type);
}

int nrg_py_add_type(PyObject *module, const char *name, PyType_Spec *spec, PyTypeObject **type)
{
    *type = (PyTypeObject *)PyType_FromSpec(spec);
    if (!*type)
        return -1;
    Py_INCREF((PyObject *)*type);
    return PyModule_AddObject(module, name, (PyObject *)*type);
}

int nrg_py_trouble(const char *where)
{
    PyObject *type, *value, *trace;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *done = PyObject_CallFunction(nrg_py_torch.trouble, "sO", where, value);
    int rc = !done && !PyErr_ExceptionMatches(PyExc_Exception) ? -1 : 0;
    if (!rc)
        PyErr_Clear();
    Py_XDECREF(done);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return rc;
}

/* Kept where Python keeps what belongs to a thread, so it ends with the thread. */
struct nrg_py_thread *nrg_py_thread(void)
{
    PyObject *dict = PyThreadState_GetDict();
    PyObject *found = dict ? PyDict_GetItemWithError(dict, thread_key) : NULL;
    if (found) {
        Py_INCREF(found);
        return (struct nrg_py_thread *)found;
    }
    if (PyErr_Occurred() || !nrg_py_torch.make_thread)
        return NULL;
    found = PyObject_CallObject(nrg_py_torch.make_thread, NULL);
    if (found && !PyObject_TypeCheck(found, thread_type)) {
        PyErr_SetString(PyExc_TypeError, "make_thread() must make a Thread");
        Py_DECREF(found);
        return NULL;
    }
    if (found && dict && PyDict_SetItem(dict, thread_key, found)) {
        Py_DECREF(found);
        return NULL;
    }
    return (struct nrg_py_thread *)found;
}

void nrg_py_cuda_mark(uint32_t name)
{
    if (!((struct nrg_py_state *)nrg_py_torch.state)->cuda)
        return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *done = name ? PyObject_CallFunction(nrg_py_torch.cuda_mark, "I", (unsigned)name)
                          : PyObject_CallFunctionObjArgs(nrg_py_torch.cuda_mark, Py_None, NULL);
    if (!done)
        PyErr_Clear();
    Py_XDECREF(done);
    PyErr_Restore(type, value, trace);
}

static uint32_t ask_name(struct nrg_py_entry *entry, const char *method)
{
    PyObject *number = PyObject_CallMethod((PyObject *)entry, method, NULL);
    unsigned long id = number ? PyLong_AsUnsignedLong(number) : 0;
    Py_XDECREF(number);
    return PyErr_Occurred() ? 0 : (uint32_t)id;
}

uint32_t nrg_py_forward_name(struct nrg_py_entry *entry)
{
    return entry->forward ? entry->forward : ask_name(entry, "number");
}

uint32_t nrg_py_backward_name(struct nrg_py_entry *entry)
{
    return entry->backward ? entry->backward : ask_name(entry, "backward_number");
}

static void plain_dealloc(PyObject *self)
{
    nrg_py_free(self);
}

static PyMemberDef state_members[] = {
    {"on", T_BOOL, offsetof(struct nrg_py_state, on), 0, NULL},
    {"cuda", T_BOOL, offsetof(struct nrg_py_state, cuda), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot state_slots[] = {
    {Py_tp_members, state_members},
    {Py_tp_dealloc, (void *)(intptr_t)plain_dealloc},
    {0, NULL},
};

static PyType_Spec state_spec = {"nrg._nrg.State", sizeof(struct nrg_py_state), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, state_slots};

static PyMemberDef entry_members[] = {
    {"forward", T_UINT, offsetof(struct nrg_py_entry, forward), 0, NULL},
    {"backward", T_UINT, offsetof(struct nrg_py_entry, backward), 0, NULL},
    {"wants_backward", T_BOOL, offsetof(struct nrg_py_entry, wants_backward), 0, NULL},
    {"compiled", T_BOOL, offsetof(struct nrg_py_entry, compiled), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot entry_slots[] = {
    {Py_tp_members, entry_members},
    {Py_tp_dealloc, (void *)(intptr_t)plain_dealloc},
    {0, NULL},
};

static PyType_Spec entry_spec = {"nrg._nrg.Entry", sizeof(struct nrg_py_entry), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, entry_slots};

static PyObject *thread_close_all(PyObject *self, PyObject *unused)
{
    nrg_py_close_from((struct nrg_py_thread *)self, 0);
    Py_RETURN_NONE;
}

/* What it had open belongs to a recorder that is gone. */
static PyObject *thread_clear(PyObject *self, PyObject *unused)
{
    struct nrg_py_thread *t = (struct nrg_py_thread *)self;
    struct nrg_py_call *call = t->call;
    t->call = NULL;
    Py_XDECREF((PyObject *)call);
    while (t->n_open)
        Py_DECREF((PyObject *)t->open[--t->n_open].call);
    if (t->hooked)
        PyDict_Clear(t->hooked);
    Py_RETURN_NONE;
}

static PyObject *get_busy(PyObject *self, void *unused)
{
    return PyBool_FromLong(((struct nrg_py_thread *)self)->call != NULL);
}

static PyObject *get_backward(PyObject *self, void *unused)
{
    return PyBool_FromLong(((struct nrg_py_thread *)self)->n_open > 0);
}

/* The Entry of the module whose call is running; None. */
static PyObject *get_entry(PyObject *self, void *unused)
{
    struct nrg_py_call *call = ((struct nrg_py_thread *)self)->call;
    PyObject *entry = call ? (PyObject *)call->entry : Py_None;
    Py_INCREF(entry);
    return entry;
}

static void thread_dealloc(PyObject *self)
{
    struct nrg_py_thread *t = (struct nrg_py_thread *)self;
    PyObject *done = thread_clear(self, NULL);
    Py_XDECREF(done);
    Py_XDECREF(t->hooked);
    PyMem_Free(t->open);
    nrg_py_free(self);
}

static PyMethodDef thread_methods[] = {
    {"close_all", thread_close_all, METH_NOARGS, "Ends all backward spans."},
    {"clear", thread_clear, METH_NOARGS, "Forgets what is open."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef thread_attributes[] = {
    {"in_call", get_busy, NULL, "A module's call is running.", NULL},
    {"in_backward", get_backward, NULL, "A backward span is open.", NULL},
    {"entry", get_entry, NULL, "Entry of the module whose call is running, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot thread_slots[] = {
    {Py_tp_methods, thread_methods},
    {Py_tp_getset, thread_attributes},
    {Py_tp_dealloc, (void *)(intptr_t)thread_dealloc},
    {0, NULL},
};

static PyType_Spec thread_spec = {"nrg._nrg.Thread", sizeof(struct nrg_py_thread), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, thread_slots};

static PyObject *connect(PyObject *module, PyObject *args, PyObject *keywords)
{
#define NAME(name)  #name,
#define PLACE(name) , &given.name
#define ONE(name)   "O"
#define KEEP(name)                                                                                 \
    Py_INCREF(given.name);                                                                         \
    Py_XDECREF(nrg_py_torch.name);                                                                 \
    nrg_py_torch.name = given.name;
    static char *known[] = {NRG_PY_TORCH_PARTS(NAME) NULL};
    struct nrg_py_torch given;
    memset(&given, 0, sizeof given);
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "$" NRG_PY_TORCH_PARTS(ONE) ":connect",
                                     known NRG_PY_TORCH_PARTS(PLACE)))
        return NULL;
    if (!PyObject_TypeCheck(given.state, state_type) || !PyType_Check(given.tensor) ||
        !PyDict_Check(given.table)) {
        PyErr_SetString(PyExc_TypeError, "connect() wants a State, a class of tensors and a dict");
        return NULL;
    }
    NRG_PY_TORCH_PARTS(KEEP)
    Py_RETURN_NONE;
#undef NAME
#undef PLACE
#undef ONE
#undef KEEP
}

static PyObject *this_thread(PyObject *module, PyObject *unused)
{
    struct nrg_py_thread *thread = nrg_py_thread();
    if (!thread && !PyErr_Occurred())
        PyErr_SetString(PyExc_RuntimeError, "connect() was not called");
    return (PyObject *)thread;
}

/* After a fork: the child has nothing open. */
static PyObject *drop_thread(PyObject *module, PyObject *unused)
{
    PyObject *dict = PyThreadState_GetDict();
    if (dict && PyDict_DelItem(dict, thread_key))
        PyErr_Clear();
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"connect", (PyCFunction)(void (*)(void))connect, METH_VARARGS | METH_KEYWORDS,
     "connect(**parts): what nrg.torch is called back by"},
    {"thread", this_thread, METH_NOARGS, "thread() -> Thread of the caller"},
    {"drop_thread", drop_thread, METH_NOARGS, "drop_thread(): the caller's, after a fork"},
    {NULL, NULL, 0, NULL},
};

int nrg_py_add_torch(PyObject *module)
{
    thread_key = PyUnicode_InternFromString("nrg.torch");
    if (!thread_key || nrg_py_add_type(module, "State", &state_spec, &state_type) ||
        nrg_py_add_type(module, "Entry", &entry_spec, &entry_type) ||
        nrg_py_add_type(module, "Thread", &thread_spec, &thread_type) ||
        nrg_py_add_torch_backward() || nrg_py_add_torch_call() || nrg_py_add_wrapper(module))
        return -1;
    return PyModule_AddFunctions(module, functions);
}
