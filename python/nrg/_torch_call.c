/*
 * A call of a module, from nn.Module.__call__ (a Wrapper stands there while a model is watched).
 *
 * Not PyTorch's own hooks, on any version: before 2.0 they see no keyword arguments; global hooks
 * turn the fast paths of nn.TransformerEncoder off, make torch.compile warn and trace them, send
 * every call through the slow way of _call_impl, and are not called when KeyboardInterrupt passes.
 *
 * What a call costs here: finding thread and Entry in two dictionaries, a begin and an end; with
 * gradients also an object per call and a hook per node that made a tensor.
 */
#include "_torch.h"

static PyObject *dict_name, *compiled_name;

/* A call between its begin and its end. */
struct running {
    struct nrg_py_thread *thread;
    struct nrg_py_call *call;
    PyObject *nodes; /* that made the arguments; NULL: no backward spans */
    unsigned level;
};

/* A new reference; NULL with or without an exception: not to be marked. */
static struct nrg_py_entry *entry_of(PyObject *module, struct nrg_py_thread *thread)
{
    PyObject *key = PyLong_FromVoidPtr(module);
    PyObject *found = key ? PyDict_GetItemWithError(nrg_py_torch.table, key) : NULL;
    Py_XDECREF(key);
    Py_XINCREF(found);
    if (!found && !PyErr_Occurred())
        found = PyObject_CallFunctionObjArgs(nrg_py_torch.unknown, module, thread, NULL);
    if (found != Py_None)
        return (struct nrg_py_entry *)found;
    Py_DECREF(found);
    return NULL;
}

/* module.compile() has been called: PyTorch 2 keeps the result in the module. */
static int has_compiled_call(PyObject *module)
{
    PyObject *attributes = PyObject_GetAttr(module, dict_name);
    PyObject *found = attributes ? PyDict_GetItemWithError(attributes, compiled_name) : NULL;
    Py_XDECREF(attributes);
    if (!found)
        PyErr_Clear();
    return found != NULL;
}

static int note_compiled(struct nrg_py_entry *entry, PyObject *module)
{
    if (!entry->compiled && !has_compiled_call(module))
        return 0;
    PyObject *done = PyObject_CallFunctionObjArgs(nrg_py_torch.compiled, entry, NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* 1: it is to be marked; 0: not; -1 with an exception. */
static int enter_outermost(PyObject *module, struct nrg_py_entry *entry,
                           struct nrg_py_thread *thread, PyObject *args, PyObject *kwargs)
{
    if (thread->call)
        return 1;
    PyObject *yes = PyObject_CallFunctionObjArgs(nrg_py_torch.enter, module, entry, thread, args,
                                                 kwargs ? kwargs : Py_None, NULL);
    int answer = yes ? PyObject_IsTrue(yes) : -1;
    Py_XDECREF(yes);
    return answer;
}

/* Without a caller, but with a backward pass open, a call is recomputed in that one. */
static struct nrg_py_call *enclosing(const struct nrg_py_thread *thread)
{
    if (thread->call || !thread->n_open)
        return thread->call;
    return thread->open[thread->n_open - 1].call;
}

static int wants_gradients(const struct nrg_py_entry *entry)
{
    if (!entry->wants_backward)
        return 0;
    PyObject *yes = PyObject_CallObject(nrg_py_torch.grad_enabled, NULL);
    int answer = yes ? PyObject_IsTrue(yes) : -1;
    Py_XDECREF(yes);
    return answer;
}

static int watch_arguments(struct running *r, PyObject *args, PyObject *kwargs)
{
    int wanted = wants_gradients(r->call->entry);
    if (wanted <= 0)
        return wanted;
    r->nodes = PyList_New(0);
    if (!r->nodes)
        return -1;
    return nrg_py_watch_inputs(r->thread, r->call, args, kwargs, r->nodes);
}

static void begin_span(struct running *r, uint32_t name)
{
    r->level = nrg_py.span_depth();
    nrg_py.span_begin_name(name);
    struct nrg_py_call *was = r->thread->call;
    Py_INCREF((PyObject *)r->call);
    r->thread->call = r->call;
    Py_XDECREF((PyObject *)was); /* the call holds its caller */
    nrg_py_cuda_mark(name);
}

/* The way back from enter_outermost() when something of ours fails before the span is open. */
static int abandon(struct running *r)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (!r->thread->call) {
        PyObject *done =
            PyObject_CallFunctionObjArgs(nrg_py_torch.leave, r->thread, Py_False, NULL);
        Py_XDECREF(done);
    }
    PyErr_Restore(type, value, trace);
    return -1;
}

/* 1: the span is open; 0: not to be marked; -1 with an exception. */
static int begin_with(struct running *r, struct nrg_py_entry *entry, PyObject *args,
                      PyObject *kwargs)
{
    PyObject *module = PyTuple_GetItem(args, 0);
    int rc = enter_outermost(module, entry, r->thread, args, kwargs);
    if (rc <= 0)
        return rc;
    if (note_compiled(entry, module))
        return abandon(r);
    r->call = nrg_py_call_new(entry, r->thread->call, enclosing(r->thread));
    if (!r->call || watch_arguments(r, args, kwargs))
        return abandon(r);
    uint32_t name = nrg_py_forward_name(entry);
    if (PyErr_Occurred())
        return abandon(r);
    begin_span(r, name);
    return 1;
}

static int begin(struct running *r, PyObject *args, PyObject *kwargs)
{
    if (PyTuple_Size(args) < 1 || !(r->thread = nrg_py_thread()))
        return PyErr_Occurred() ? -1 : 0;
    struct nrg_py_call *outer = enclosing(r->thread);
    if (outer && outer->entry->compiled)
        return 0;
    struct nrg_py_entry *entry = entry_of(PyTuple_GetItem(args, 0), r->thread);
    int rc = entry ? begin_with(r, entry, args, kwargs) : PyErr_Occurred() ? -1 : 0;
    Py_XDECREF((PyObject *)entry);
    return rc;
}

static void end_span(struct running *r)
{
    struct nrg_py_call *parent = r->call->caller, *was = r->thread->call;
    Py_XINCREF((PyObject *)parent);
    r->thread->call = parent;
    Py_XDECREF((PyObject *)was);
    nrg_py.span_unwind(r->level);
    nrg_py_cuda_mark(parent ? parent->entry->forward : 0);
}

/* 0, or -1 with an exception that is the program's. */
static int leave(struct running *r, PyObject *result)
{
    if (result && r->nodes && nrg_py_watch_outputs(r->thread, r->call, result, r->nodes) &&
        nrg_py_trouble("output of a module"))
        return -1;
    if (r->call->caller && !r->call->entry->compiled)
        return 0;
    if (!r->call->caller && r->thread->hooked) /* a node holds its whole graph */
        PyDict_Clear(r->thread->hooked);
    PyObject *done = PyObject_CallFunctionObjArgs(nrg_py_torch.leave, r->thread,
                                                  result ? Py_False : Py_True, NULL);
    int rc = done ? 0 : nrg_py_trouble("end of a call");
    Py_XDECREF(done);
    return rc;
}

/* What the module has returned or raised, unless Ctrl-C came in between. */
static PyObject *end(struct running *r, PyObject *result)
{
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    if (!result)
        PyErr_Fetch(&type, &value, &trace);
    end_span(r);
    if (!leave(r, result)) {
        if (!result)
            PyErr_Restore(type, value, trace);
        return result;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    Py_XDECREF(result);
    return NULL;
}

PyObject *nrg_py_call_module(PyObject *original, PyObject *args, PyObject *kwargs)
{
    struct running r = {NULL, NULL, NULL, 0};
    if (!nrg_py_torch_on())
        return PyObject_Call(original, args, kwargs);
    int rc = begin(&r, args, kwargs);
    PyObject *result = NULL;
    if (rc >= 0 || !nrg_py_trouble("call of a module"))
        result = PyObject_Call(original, args, kwargs);
    if (rc > 0)
        result = end(&r, result);
    Py_XDECREF((PyObject *)r.thread);
    Py_XDECREF((PyObject *)r.call);
    Py_XDECREF(r.nodes);
    return result;
}

int nrg_py_add_torch_call(void)
{
    dict_name = PyUnicode_InternFromString("__dict__");
    compiled_name = PyUnicode_InternFromString("_compiled_call_impl");
    return dict_name && compiled_name ? 0 : -1;
}
