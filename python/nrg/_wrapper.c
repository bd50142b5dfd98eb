/*
 * nrg._nrg.Wrapper: stands in the place of a function or method of another program, and runs it
 * between two functions of ours. No frame of ours is on the stack meanwhile: tracebacks, warnings
 * with a stack level and profilers of the program show what they show without nrg.
 *
 *   around(original, before, after)   before(args, kwargs) gives a token; None: nothing to do after
 *                                     it. Else after(token, result, exception), one of both None
 *   around_module(original)           nn.Module.__call__ (_torch_call.c)
 *
 * To all who look it is the original: attributes are the original's, in a class it becomes a
 * method, and torch.compile, which knows objects with the two attributes
 * `__script_if_tracing_wrapper` and
 * `__original_fn`, traces the original instead.
 */
#include "_torch.h"

#include <stddef.h>
#include <structmember.h>

/* In the limited API's headers from 3.12 on only; has had this value and meaning since 3.8. */
#ifndef Py_TPFLAGS_METHOD_DESCRIPTOR
#define Py_TPFLAGS_METHOD_DESCRIPTOR (1UL << 17)
#endif

struct wrapper {
    PyObject_HEAD PyObject *original;
    PyObject *before, *after; /* NULL: around a module's call */
    PyObject *weak_references;
};

static PyTypeObject *wrapper_type;
static PyObject *method_type, *own_names;

/* Calls after(), whose exceptions are ours but for Ctrl-C and the like. */
static PyObject *finish(struct wrapper *w, PyObject *token, PyObject *result)
{
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    if (!result) {
        PyErr_Fetch(&type, &value, &trace);
        PyErr_NormalizeException(&type, &value, &trace);
    }
    PyObject *done = PyObject_CallFunctionObjArgs(w->after, token, result ? result : Py_None,
                                                  value ? value : Py_None, NULL);
    int ours = done || !nrg_py_trouble("after a call");
    Py_XDECREF(done);
    if (!result && ours) {
        PyErr_Restore(type, value, trace);
        return NULL;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    if (ours)
        return result;
    Py_XDECREF(result);
    return NULL;
}

static PyObject *call_between(struct wrapper *w, PyObject *args, PyObject *kwargs)
{
    if (!nrg_py_torch_on())
        return PyObject_Call(w->original, args, kwargs);
    PyObject *token =
        PyObject_CallFunctionObjArgs(w->before, args, kwargs ? kwargs : Py_None, NULL);
    if (!token && nrg_py_trouble("before a call"))
        return NULL;
    PyObject *result = PyObject_Call(w->original, args, kwargs);
    if (token && token != Py_None)
        result = finish(w, token, result);
    Py_XDECREF(token);
    return result;
}

static PyObject *wrapper_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct wrapper *w = (struct wrapper *)self;
    Py_INCREF(self); /* it may be taken out of its place meanwhile */
    PyObject *result =
        w->before ? call_between(w, args, kwargs) : nrg_py_call_module(w->original, args, kwargs);
    Py_DECREF(self);
    return result;
}

static PyObject *wrapper_bind(PyObject *self, PyObject *object, PyObject *type)
{
    if (object && object != Py_None)
        return PyObject_CallFunctionObjArgs(method_type, self, object, NULL);
    Py_INCREF(self);
    return self;
}

/* Attributes that every object has, and which say who it is, are the original's too. */
static PyObject *wrapper_get(PyObject *self, PyObject *name)
{
    int own = PySet_Contains(own_names, name);
    if (own)
        return own < 0 ? NULL : PyObject_GenericGetAttr(self, name);
    return PyObject_GetAttr(((struct wrapper *)self)->original, name);
}

static int wrapper_set(PyObject *self, PyObject *name, PyObject *value)
{
    return PyObject_SetAttr(((struct wrapper *)self)->original, name, value);
}

static PyObject *wrapper_repr(PyObject *self)
{
    return PyObject_Repr(((struct wrapper *)self)->original);
}

static void wrapper_dealloc(PyObject *self)
{
    struct wrapper *w = (struct wrapper *)self;
    if (w->weak_references)
        PyObject_ClearWeakRefs(self);
    Py_XDECREF(w->original);
    Py_XDECREF(w->before);
    Py_XDECREF(w->after);
    nrg_py_free(self);
}

static PyObject *get_original(PyObject *self, void *unused)
{
    PyObject *original = ((struct wrapper *)self)->original;
    Py_INCREF(original);
    return original;
}

static PyObject *get_true(PyObject *self, void *unused)
{
    Py_RETURN_TRUE;
}

static PyGetSetDef wrapper_attributes[] = {
    {"__wrapped__", get_original, NULL, NULL, NULL},
    {"__original_fn", get_original, NULL, NULL, NULL},
    {"__script_if_tracing_wrapper", get_true, NULL, NULL, NULL},
    {"nrg_wraps", get_original, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef wrapper_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct wrapper, weak_references), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot wrapper_slots[] = {
    {Py_tp_call, (void *)(intptr_t)wrapper_call},
    {Py_tp_descr_get, (void *)(intptr_t)wrapper_bind},
    {Py_tp_getattro, (void *)(intptr_t)wrapper_get},
    {Py_tp_setattro, (void *)(intptr_t)wrapper_set},
    {Py_tp_repr, (void *)(intptr_t)wrapper_repr},
    {Py_tp_dealloc, (void *)(intptr_t)wrapper_dealloc},
    {Py_tp_getset, wrapper_attributes},
    {Py_tp_members, wrapper_members},
    {0, NULL},
};

static PyType_Spec wrapper_spec = {"nrg._nrg.Wrapper", sizeof(struct wrapper), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_METHOD_DESCRIPTOR,
                                   wrapper_slots};

static PyObject *make(PyObject *original, PyObject *before, PyObject *after)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(wrapper_type, Py_tp_alloc);
    struct wrapper *w = (struct wrapper *)allocate(wrapper_type, 0);
    if (!w)
        return NULL;
    Py_INCREF(original);
    Py_XINCREF(before);
    Py_XINCREF(after);
    w->original = original;
    w->before = before;
    w->after = after;
    return (PyObject *)w;
}

static PyObject *around(PyObject *module, PyObject *args)
{
    PyObject *original, *before, *after;
    if (!PyArg_ParseTuple(args, "OOO:around", &original, &before, &after))
        return NULL;
    return make(original, before, after);
}

static PyObject *around_module(PyObject *module, PyObject *original)
{
    return make(original, NULL, NULL);
}

static PyMethodDef functions[] = {
    {"around", around, METH_VARARGS, "around(original, before, after)"},
    {"around_module", around_module, METH_O, "around_module(original)"},
    {NULL, NULL, 0, NULL},
};

int nrg_py_add_wrapper(PyObject *module)
{
    PyObject *types = PyImport_ImportModule("types");
    method_type = types ? PyObject_GetAttrString(types, "MethodType") : NULL;
    Py_XDECREF(types);
    PyObject *own = Py_BuildValue("(sssssss)", "__class__", "__get__", "__call__", "__wrapped__",
                                  "__original_fn", "__script_if_tracing_wrapper", "nrg_wraps");
    own_names = own ? PySet_New(own) : NULL;
    Py_XDECREF(own);
    if (!method_type || !own_names)
        return -1;
    wrapper_type = (PyTypeObject *)PyType_FromSpec(&wrapper_spec);
    return wrapper_type ? PyModule_AddFunctions(module, functions) : -1;
}
