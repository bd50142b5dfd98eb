"""Backward spans: from when the gradient of a module's output is there until its own work is done.

The autograd engine runs the nodes of a graph in the reverse order of their creation: among the nodes that
are ready it takes the youngest, and a node's consumers are all younger than itself. So the backward pass of
nested calls is nested too, mirrored, and two events are enough. Both are pre-hooks of autograd nodes, which
alter neither the graph nor the tensors (in-place operators and views after a module go on working):

  opens   the node that made an output of the call is about to run: the gradient of the output is complete.
          Enclosing calls that are not open yet are opened first, calls that do not enclose it are closed.
  closes  the node that made an input of the call is about to run: whatever began after that node is done, the
          accumulation into parameters too (the engine does that at once).

What is open when the engine ends is closed by a callback of the engine; after an error in it, by the
release of that callback. Work between the modules (an addition, a softmax in the forward of the enclosing
module) is so charged to the enclosing module, unless it stands before a call whose inputs need no
gradient: then that call ends with the next event.

Nodes carry the hooks as long as they live, and nothing refers back to a node: no cycle, no leak.
"""
import itertools

import torch

from .. import _nrg
from ._cuda import cuda
from ._state import local, state, trouble

Tensor = torch.Tensor
depth, begin, unwind = _nrg.depth, _nrg.begin, _nrg.unwind
next_serial = itertools.count(1).__next__
MAX_HOOKED = 32
_task_id = getattr(torch._C, "_current_graph_task_id", None)


class Call:
    """One call of a module. Serial numbers grow with time: what a call calls has a higher one."""

    __slots__ = ("entry", "caller", "parent", "serial")

    def __init__(self, entry, caller, parent):
        self.entry = entry
        self.caller = caller  # the call that it is made by, None: the program
        self.parent = parent  # the same, or the call in whose backward pass it is made again
        self.serial = next_serial()

    def opens(self, *_):
        if not state.on:
            return
        try:
            thread = local.thread
            opened, parent = thread.open, self.parent
            if not opened:
                _queue_end(thread)
            at = len(opened)
            while at and opened[at - 1][0] is not parent:
                at -= 1
            if not at and parent is not None:
                at = _open_above(thread, parent)
            if at == len(opened):
                level = depth()
            elif opened[at][0] is self:
                return  # open already: another of its outputs
            else:
                level = opened[at][1]
                del opened[at:]
                unwind(level)
            _open(thread, self, level)
        except Exception:
            trouble("backward")

    def closes(self, *_):
        if not state.on:
            return
        try:
            thread, serial = local.thread, self.serial
            for i, (call, level) in enumerate(thread.open):
                if call.serial >= serial:
                    _close_from(thread, i, level)
                    return
        except Exception:
            trouble("backward")


def _open(thread, call, level):
    entry = call.entry
    number = entry.backward
    if number is None:
        number = entry.backward_number()
    begin(number)
    thread.open.append((call, level))
    if cuda.on:
        cuda.mark(number)


def _open_above(thread, call):
    """Opens a call that is not open, below those of its callers that are; how many are open then."""
    chain = [call]
    while chain[-1].parent is not None:
        chain.append(chain[-1].parent)
    opened, keep = thread.open, 0
    while keep < len(opened) and opened[keep][0] in chain:
        chain.remove(opened[keep][0])
        keep += 1
    if keep < len(opened):
        _close_from(thread, keep, opened[keep][1])
    for missing in reversed(chain):
        _open(thread, missing, depth())
    return len(opened)


def _close_from(thread, i, level):
    del thread.open[i:]
    unwind(level)
    if cuda.on:
        cuda.mark(thread.open[-1][0].entry.backward if thread.open else None)


def close_all(thread):
    if thread.open:
        _close_from(thread, 0, thread.open[0][1])


class End:
    """Called by the engine when the graph is done; released without a call when it failed."""

    __slots__ = ("thread",)

    def __init__(self, thread):
        self.thread = thread

    def __call__(self):
        try:
            if self.thread is not None and self.thread is local.thread:
                close_all(self.thread)
        except Exception:
            trouble("end of backward")
        self.thread = None

    def __del__(self):
        if self.thread is not None:
            self()


def _queue_end(thread):
    torch.autograd.Variable._execution_engine.queue_callback(End(thread))


def inside(thread):
    """True while the engine runs on this thread: a call of a module then is a recomputation."""
    if not thread.open:
        return False
    if _task_id is not None and _task_id() == -1:
        close_all(thread)  # left behind by an error
        return False
    return True


if hasattr(torch._C._FunctionBase, "register_prehook"):
    def _hook(tensor, node, hook):
        node.register_prehook(hook)
else:
    def _hook(tensor, node, hook):
        """PyTorch before 1.13: by way of the tensor, which is left as it was."""
        before = tensor._backward_hooks
        tensor._backward_hooks = {0: hook}
        node._register_hook_dict(tensor)
        tensor._backward_hooks = before


def _remember(hooked, node, serial):
    if len(hooked) >= MAX_HOOKED:
        hooked.clear()  # a hook more does no harm; keeping nodes alive would
    hooked[node] = serial


def watch_inputs(thread, call, values, nodes):
    """Hooks the nodes that made the arguments, and adds them to `nodes`."""
    hooked = thread.hooked
    for value in values:
        if isinstance(value, Tensor):
            node = value.grad_fn
            if node is None:
                continue
            nodes.append(node)
            if node not in hooked:
                _hook(value, node, call.closes)
                _remember(hooked, node, -call.serial)
        elif type(value) in (tuple, list):
            watch_inputs(thread, call, [v for v in value if isinstance(v, Tensor)], nodes)


def watch_output(thread, call, value, nodes):
    node = value.grad_fn
    if node is None or node in nodes:
        return  # needs no gradient, or was handed through
    hooked = thread.hooked
    known = hooked.get(node)
    if known is not None and (known > call.serial or -call.serial <= known < 0
                              or 0 < known < call.serial):
        return  # opened by a call inside, or older than this call
    _hook(value, node, call.opens)
    _remember(hooked, node, call.serial)


def watch_outputs(thread, call, result, nodes, deep=2):
    if isinstance(result, Tensor):
        watch_output(thread, call, result, nodes)
    elif deep and isinstance(result, (tuple, list)):
        for value in result:
            watch_outputs(thread, call, value, nodes, deep - 1)
    elif deep and isinstance(result, dict):
        for value in result.values():
            watch_outputs(thread, call, value, nodes, deep - 1)
    elif deep and hasattr(result, "__dataclass_fields__"):
        for name in result.__dataclass_fields__:
            watch_outputs(thread, call, getattr(result, name, None), nodes, deep - 1)
