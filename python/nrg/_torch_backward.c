/*
 * Backward spans: from when the gradient of a module's output is there until its own work is done.
 *
 * The autograd engine runs the nodes of a graph in the reverse order of their creation: among the
 * nodes that are ready it takes the youngest, and a node's consumers are all younger than itself.
 * So the backward pass of nested calls is nested too, mirrored, and two events are enough. Both are
 * hooks of autograd nodes, which alter neither the graph nor the tensors (in-place operators and
 * views after a module go on working):
 *
 *   opens   (a Call) the node that made an output of the call is about to run: the gradient of the
 *           output is complete. Enclosing calls that are not open yet are opened first, calls that
 *           do not enclose it are closed.
 *   closes  (a Closing) the node that made an input of the call is about to run: whatever began
 *           after that node is done, the accumulation into parameters too (the engine does that at
 *           once).
 *
 * What is open when the engine ends is closed by a callback of the engine (_backward.py). Work
 * between the modules (an addition, a softmax in the forward of the enclosing module) is so charged
 * to the enclosing module, unless it stands before a call whose inputs need no gradient: then that
 * call ends with the next event.
 *
 * Nodes carry the hooks as long as they live, and nothing refers back to a node: no cycle, no leak.
 * A node is given its hook by way of a tensor of ours (`carrier`), as PyTorch itself does it with
 * the hooks of tensors. That costs a third of node.register_prehook(), which is a function in
 * Python.
 */
#include "_torch.h"

#define MAX_HOOKED 32
#define DEEP       2 /* levels of tuples and dicts in a result that are looked into */

struct closing {
    PyObject_HEAD int64_t serial;
};

static PyTypeObject *call_type, *closing_type;
static PyObject *grad_fn_name, *hooks_name, *register_name, *zero;
static int64_t last_serial;

struct nrg_py_call *nrg_py_call_new(struct nrg_py_entry *entry, struct nrg_py_call *caller,
                                    struct nrg_py_call *parent)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(call_type, Py_tp_alloc);
    struct nrg_py_call *call = (struct nrg_py_call *)allocate(call_type, 0);
    if (!call)
        return NULL;
    Py_INCREF((PyObject *)entry);
    Py_XINCREF((PyObject *)caller);
    Py_XINCREF((PyObject *)parent);
    call->entry = entry;
    call->caller = caller;
    call->parent = parent;
    call->serial = ++last_serial;
    return call;
}

static void call_dealloc(PyObject *self)
{
    struct nrg_py_call *call = (struct nrg_py_call *)self;
    Py_XDECREF((PyObject *)call->entry);
    Py_XDECREF((PyObject *)call->caller);
    Py_XDECREF((PyObject *)call->parent);
    nrg_py_free(self);
}

static void closing_dealloc(PyObject *self)
{
    nrg_py_free(self);
}

void nrg_py_close_from(struct nrg_py_thread *thread, size_t i)
{
    if (i >= thread->n_open)
        return;
    nrg_py.span_unwind(thread->open[i].level);
    while (thread->n_open > i) {
        struct nrg_py_call *call = thread->open[--thread->n_open].call;
        Py_DECREF((PyObject *)call);
    }
    nrg_py_cuda_mark(i ? thread->open[i - 1].call->entry->backward : 0);
}

static int open_span(struct nrg_py_thread *thread, struct nrg_py_call *call)
{
    if (thread->n_open == thread->room) {
        size_t room = thread->room ? 2 * thread->room : 16;
        void *more = PyMem_Realloc(thread->open, room * sizeof *thread->open);
        if (!more) {
            PyErr_NoMemory();
            return -1;
        }
        thread->open = more;
        thread->room = room;
    }
    uint32_t name = nrg_py_backward_name(call->entry);
    if (PyErr_Occurred())
        return -1;
    Py_INCREF((PyObject *)call);
    thread->open[thread->n_open++] = (struct nrg_py_open){call, nrg_py.span_depth()};
    nrg_py.span_begin_name(name);
    nrg_py_cuda_mark(name);
    return 0;
}

static int encloses(const struct nrg_py_call *outer, const struct nrg_py_call *call)
{
    while (call && call != outer)
        call = call->parent;
    return call != NULL;
}

/* Opens a call and those of its callers that are not open. */
static int open_with_callers(struct nrg_py_thread *thread, struct nrg_py_call *call)
{
    if (thread->n_open && thread->open[thread->n_open - 1].call == call)
        return 0;
    if (call->parent && open_with_callers(thread, call->parent))
        return -1;
    return open_span(thread, call);
}

static int open_call(struct nrg_py_thread *thread, struct nrg_py_call *call)
{
    size_t keep = 0;
    if (!thread->n_open) {
        PyObject *done = PyObject_CallFunctionObjArgs(nrg_py_torch.begin_engine, thread, NULL);
        Py_XDECREF(done);
        if (!done)
            return -1;
    }
    while (keep < thread->n_open && encloses(thread->open[keep].call, call))
        keep++;
    if (keep && thread->open[keep - 1].call == call)
        return 0; /* open already: another of its outputs */
    nrg_py_close_from(thread, keep);
    return open_with_callers(thread, call);
}

static void close_since(struct nrg_py_thread *thread, int64_t serial)
{
    for (size_t i = 0; i < thread->n_open; i++) {
        if (thread->open[i].call->serial >= serial) {
            nrg_py_close_from(thread, i);
            return;
        }
    }
}

/* The engine calls it with gradients, which None leaves as they are. */
static PyObject *opens(PyObject *self, PyObject *args, PyObject *kwargs)
{
    if (!nrg_py_torch_on())
        Py_RETURN_NONE;
    struct nrg_py_thread *thread = nrg_py_thread();
    int rc = thread ? open_call(thread, (struct nrg_py_call *)self) : -1;
    Py_XDECREF((PyObject *)thread);
    if (rc && nrg_py_trouble("backward"))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *closes(PyObject *self, PyObject *args, PyObject *kwargs)
{
    if (!nrg_py_torch_on())
        Py_RETURN_NONE;
    struct nrg_py_thread *thread = nrg_py_thread();
    if (thread)
        close_since(thread, ((struct closing *)self)->serial);
    Py_XDECREF((PyObject *)thread);
    if (!thread && nrg_py_trouble("backward"))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *closing_new(int64_t serial)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(closing_type, Py_tp_alloc);
    struct closing *made = (struct closing *)allocate(closing_type, 0);
    if (made)
        made->serial = serial;
    return (PyObject *)made;
}

static int give_hook(PyObject *node, PyObject *hook)
{
    PyObject *carrier = nrg_py_torch.carrier, *hooks = PyDict_New(), *done = NULL;
    if (hooks && !PyDict_SetItem(hooks, zero, hook) &&
        !PyObject_SetAttr(carrier, hooks_name, hooks)) {
        PyObject *give = PyObject_GetAttr(node, register_name);
        done = give ? PyObject_CallFunctionObjArgs(give, carrier, NULL) : NULL;
        Py_XDECREF(give);
    }
    Py_XDECREF(hooks);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Serial of the call whose hook the node has, negative: it closes; 0: none; or with an exception.
 */
static int64_t hooked_serial(struct nrg_py_thread *thread, PyObject *node)
{
    PyObject *known = thread->hooked ? PyDict_GetItemWithError(thread->hooked, node) : NULL;
    return known ? (int64_t)PyLong_AsLongLong(known) : 0;
}

static int remember(struct nrg_py_thread *thread, PyObject *node, int64_t serial)
{
    if (!thread->hooked && !(thread->hooked = PyDict_New()))
        return -1;
    if (PyDict_Size(thread->hooked) >= MAX_HOOKED)
        PyDict_Clear(thread->hooked); /* a hook more does no harm; keeping nodes alive would */
    PyObject *number = PyLong_FromLongLong(serial);
    int rc = number ? PyDict_SetItem(thread->hooked, node, number) : -1;
    Py_XDECREF(number);
    return rc;
}

/* By its class alone: isinstance() may run code of the program. */
static int is_tensor(PyObject *value)
{
    return PyObject_TypeCheck(value, (PyTypeObject *)nrg_py_torch.tensor);
}

/* What made a tensor: a new reference; NULL without an exception: it needs no gradient. */
static PyObject *node_of(PyObject *tensor)
{
    PyObject *node = PyObject_GetAttr(tensor, grad_fn_name);
    if (node != Py_None)
        return node;
    Py_DECREF(node);
    return NULL;
}

static int give_closing(struct nrg_py_thread *thread, struct nrg_py_call *call, PyObject *node)
{
    if (hooked_serial(thread, node) || PyErr_Occurred())
        return PyErr_Occurred() ? -1 : 0;
    PyObject *hook = closing_new(call->serial);
    int rc = hook ? give_hook(node, hook) : -1;
    Py_XDECREF(hook);
    return rc ? rc : remember(thread, node, -call->serial);
}

static int watch_input(struct nrg_py_thread *thread, struct nrg_py_call *call, PyObject *tensor,
                       PyObject *nodes)
{
    PyObject *node = node_of(tensor);
    if (!node)
        return PyErr_Occurred() ? -1 : 0;
    int rc = PyList_Append(nodes, node);
    if (!rc)
        rc = give_closing(thread, call, node);
    Py_DECREF(node);
    return rc;
}

/* The values of a tuple or list; `deep`: those in tuples and lists among them, too. */
static int watch_values(struct nrg_py_thread *thread, struct nrg_py_call *call, PyObject *values,
                        PyObject *nodes, int deep)
{
    int is_list = PyList_Check(values), rc = 0;
    Py_ssize_t n = is_list ? PyList_Size(values) : PyTuple_Size(values);
    for (Py_ssize_t i = 0; !rc && i < n; i++) {
        PyObject *value = is_list ? PyList_GetItem(values, i) : PyTuple_GetItem(values, i);
        if (is_tensor(value))
            rc = watch_input(thread, call, value, nodes);
        else if (deep && (PyTuple_CheckExact(value) || PyList_CheckExact(value)))
            rc = watch_values(thread, call, value, nodes, 0);
    }
    return rc;
}

int nrg_py_watch_inputs(struct nrg_py_thread *thread, struct nrg_py_call *call, PyObject *args,
                        PyObject *kwargs, PyObject *nodes)
{
    int rc = watch_values(thread, call, args, nodes, 1);
    if (rc || !kwargs)
        return rc;
    PyObject *values = PyDict_Values(kwargs);
    rc = values ? watch_values(thread, call, values, nodes, 1) : -1;
    Py_XDECREF(values);
    return rc;
}

static int is_handed_through(PyObject *nodes, PyObject *node)
{
    for (Py_ssize_t i = 0, n = PyList_Size(nodes); i < n; i++)
        if (PyList_GetItem(nodes, i) == node)
            return 1;
    return 0;
}

static int watch_output(struct nrg_py_thread *thread, struct nrg_py_call *call, PyObject *tensor,
                        PyObject *nodes)
{
    PyObject *node = node_of(tensor);
    if (!node)
        return PyErr_Occurred() ? -1 : 0;
    int64_t known = hooked_serial(thread, node), own = call->serial;
    int rc = PyErr_Occurred() ? -1 : 0;
    /* Opened by a call inside, or older than this call: no hook needed. */
    int needless = known > own || (known < 0 && -own <= known) || (known > 0 && known < own);
    if (!rc && !needless && !is_handed_through(nodes, node)) {
        rc = give_hook(node, (PyObject *)call);
        if (!rc)
            rc = remember(thread, node, own);
    }
    Py_DECREF(node);
    return rc;
}

static int watch_result(struct nrg_py_thread *thread, struct nrg_py_call *call, PyObject *result,
                        PyObject *nodes, int deep);

static int watch_results(struct nrg_py_thread *thread, struct nrg_py_call *call, PyObject *values,
                         PyObject *nodes, int deep)
{
    int is_list = PyList_Check(values), rc = 0;
    Py_ssize_t n = is_list ? PyList_Size(values) : PyTuple_Size(values);
    for (Py_ssize_t i = 0; !rc && i < n; i++)
        rc = watch_result(thread, call,
                          is_list ? PyList_GetItem(values, i) : PyTuple_GetItem(values, i), nodes,
                          deep);
    return rc;
}

static int watch_mapping(struct nrg_py_thread *thread, struct nrg_py_call *call, PyObject *result,
                         PyObject *nodes, int deep)
{
    PyObject *values = PyMapping_Values(result);
    int rc = values ? watch_results(thread, call, values, nodes, deep) : -1;
    Py_XDECREF(values);
    return rc;
}

/* A dataclass; anything else without fields is passed over. */
static int watch_fields(struct nrg_py_thread *thread, struct nrg_py_call *call, PyObject *result,
                        PyObject *nodes, int deep)
{
    PyObject *fields = PyObject_GetAttrString(result, "__dataclass_fields__");
    PyObject *names = fields && PyDict_Check(fields) ? PyDict_Keys(fields) : NULL;
    int rc = 0;
    PyErr_Clear();
    for (Py_ssize_t i = 0, n = names ? PyList_Size(names) : 0; !rc && i < n; i++) {
        PyObject *value = PyObject_GetAttr(result, PyList_GetItem(names, i));
        if (!value)
            PyErr_Clear();
        else
            rc = watch_result(thread, call, value, nodes, deep);
        Py_XDECREF(value);
    }
    Py_XDECREF(names);
    Py_XDECREF(fields);
    return rc;
}

static int watch_result(struct nrg_py_thread *thread, struct nrg_py_call *call, PyObject *result,
                        PyObject *nodes, int deep)
{
    if (is_tensor(result))
        return watch_output(thread, call, result, nodes);
    if (!deep || result == Py_None || PyLong_Check(result) || PyUnicode_Check(result))
        return 0;
    if (PyTuple_Check(result) || PyList_Check(result))
        return watch_results(thread, call, result, nodes, deep - 1);
    if (PyDict_Check(result))
        return watch_mapping(thread, call, result, nodes, deep - 1);
    return watch_fields(thread, call, result, nodes, deep - 1);
}

int nrg_py_watch_outputs(struct nrg_py_thread *thread, struct nrg_py_call *call, PyObject *result,
                         PyObject *nodes)
{
    return watch_result(thread, call, result, nodes, DEEP);
}

static PyType_Slot call_slots[] = {
    {Py_tp_call, (void *)(intptr_t)opens},
    {Py_tp_dealloc, (void *)(intptr_t)call_dealloc},
    {0, NULL},
};

static PyType_Spec call_spec = {"nrg._nrg.Call", sizeof(struct nrg_py_call), 0, Py_TPFLAGS_DEFAULT,
                                call_slots};

static PyType_Slot closing_slots[] = {
    {Py_tp_call, (void *)(intptr_t)closes},
    {Py_tp_dealloc, (void *)(intptr_t)closing_dealloc},
    {0, NULL},
};

static PyType_Spec closing_spec = {"nrg._nrg.Closing", sizeof(struct closing), 0,
                                   Py_TPFLAGS_DEFAULT, closing_slots};

int nrg_py_add_torch_backward(void)
{
    grad_fn_name = PyUnicode_InternFromString("grad_fn");
    hooks_name = PyUnicode_InternFromString("_backward_hooks");
    register_name = PyUnicode_InternFromString("_register_hook_dict");
    zero = PyLong_FromLong(0);
    call_type = (PyTypeObject *)PyType_FromSpec(&call_spec);
    closing_type = (PyTypeObject *)PyType_FromSpec(&closing_spec);
    return grad_fn_name && hooks_name && register_name && zero && call_type && closing_type ? 0
                                                                                            : -1;
}
