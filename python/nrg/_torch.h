/*
 * Inside the extension module: what nrg.torch does at every call of a module, forward and backward.
 *
 * Python code sees a program's calls too, but costs a frame each time, and its frames stand in the
 * program's tracebacks. So the usual way of a call is here, and the rest (a module without a name,
 * the outermost call, whatever fails) is handed to functions of nrg.torch that nrg_py_torch knows.
 *
 * State, Thread and Entry are bases: nrg.torch derives its classes from them and adds what only
 * Python needs. All of this runs under the interpreter's lock.
 */
#ifndef NRG_PYTHON_TORCH_H
#define NRG_PYTHON_TORCH_H

#include "_nrg.h"

/* One per process: what is switched on. */
struct nrg_py_state {
    PyObject_HEAD char on; /* a model is watched */
    char cuda;             /* edges are marked on a GPU, too */
};

/* What is known of one module; the numbers are 0 until the name is needed. */
struct nrg_py_entry {
    PyObject_HEAD uint32_t forward, backward;
    char wants_backward, compiled;
};

/* One call of a module. Serial numbers grow with time: what a call calls has a higher one. */
struct nrg_py_call {
    PyObject_HEAD struct nrg_py_entry *entry;
    struct nrg_py_call *caller; /* NULL: the program */
    struct nrg_py_call *parent; /* the same, or the call in whose backward pass it is made again */
    int64_t serial;
};

/* A backward span that is open, and how many spans were open before it. */
struct nrg_py_open {
    struct nrg_py_call *call;
    unsigned level;
};

/* One per thread: what it has open. */
struct nrg_py_thread {
    PyObject_HEAD struct nrg_py_call *call; /* the module call that is running */
    struct nrg_py_open *open;               /* outermost first */
    size_t n_open, room;
    PyObject *hooked; /* autograd nodes that carry a hook of ours: serial of the call */
};

/* What nrg.torch has handed in with connect(); `state` is NULL before. */
#define NRG_PY_TORCH_PARTS(X)                                                                      \
    X(state)        /* State */                                                                    \
    X(table)        /* id(module): Entry */                                                        \
    X(tensor)       /* the class torch.Tensor */                                                   \
    X(carrier)      /* a tensor that takes hooks to the nodes of graphs */                         \
    X(grad_enabled) /* () -> bool */                                                               \
    X(make_thread)  /* () -> Thread */                                                             \
    X(unknown)      /* (module, thread) -> Entry or None */                                        \
    X(compiled)     /* (entry) */                                                                  \
    X(enter)        /* (module, entry, thread, args, kwargs) -> bool: is it to be marked? */       \
    X(leave)        /* (thread, failed): after an outermost call */                                \
    X(begin_engine) /* (thread): before the first backward span */                                 \
    X(cuda_mark)    /* (number or None) */                                                         \
    X(trouble)      /* (where, exception) */

#define NRG_PY_TORCH_MEMBER(name) PyObject *name;
struct nrg_py_torch {
    NRG_PY_TORCH_PARTS(NRG_PY_TORCH_MEMBER)
};
extern struct nrg_py_torch nrg_py_torch;

static inline int nrg_py_torch_on(void)
{
    return nrg_py_torch.state && ((struct nrg_py_state *)nrg_py_torch.state)->on;
}

/* The calling thread's; a new reference, or NULL with an exception. */
struct nrg_py_thread *nrg_py_thread(void);
/*
 * An exception of our own code: told to nrg.torch and cleared, 0. What is not an Exception (Ctrl-C)
 * is the program's: -1, and it stays set.
 */
int nrg_py_trouble(const char *where);
/* From here on the GPU works for the name of this number; 0: for no module. Swallows errors. */
void nrg_py_cuda_mark(uint32_t name);
/* Number of the name of an entry's call; asks for it once. 0 with an exception, or without room. */
uint32_t nrg_py_forward_name(struct nrg_py_entry *entry);
uint32_t nrg_py_backward_name(struct nrg_py_entry *entry);

/* A new reference, or NULL with an exception. */
struct nrg_py_call *nrg_py_call_new(struct nrg_py_entry *entry, struct nrg_py_call *caller,
                                    struct nrg_py_call *parent);
/* Hooks the nodes that made the arguments, and adds them to the list `nodes`; 0 or -1. */
int nrg_py_watch_inputs(struct nrg_py_thread *thread, struct nrg_py_call *call, PyObject *args,
                        PyObject *kwargs, PyObject *nodes);
/* Hooks the nodes that made the result, but for those in `nodes`; 0 or -1. */
int nrg_py_watch_outputs(struct nrg_py_thread *thread, struct nrg_py_call *call, PyObject *result,
                         PyObject *nodes);
/* Ends the backward spans from the i-th on. */
void nrg_py_close_from(struct nrg_py_thread *thread, size_t i);

/* A Wrapper around nn.Module.__call__ (_wrapper.c has the type). */
PyObject *nrg_py_call_module(PyObject *original, PyObject *args, PyObject *kwargs);

/* Adds the types and functions to the module; -1 with an exception. */
int nrg_py_add_torch(PyObject *module);
int nrg_py_add_torch_backward(void);
int nrg_py_add_torch_call(void);
int nrg_py_add_wrapper(PyObject *module);

/* A type of the module, under its own name; -1 with an exception. */
int nrg_py_add_type(PyObject *module, const char *name, PyType_Spec *spec, PyTypeObject **type);
/* tp_dealloc's last part: frees the object and lets go of its type. */
void nrg_py_free(PyObject *self);

#endif
