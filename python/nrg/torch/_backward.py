"""The backward pass: what the engine tells when it begins and ends. The hooks themselves are in _torch_backward.c.

What is open when the engine ends is closed by a callback of the engine; after an error in it, by the
release of that callback.
"""
import torch

from ._state import state, this_thread, trouble

_task_id = getattr(torch._C, "_current_graph_task_id", None)


class End:
    """Called by the engine when the graph is done; released without a call when it failed."""

    __slots__ = ("thread",)

    def __init__(self, thread):
        self.thread = thread

    def __call__(self):
        thread, self.thread = self.thread, None
        if thread is not None and thread is this_thread():
            thread.close_all()

    def __del__(self):
        if self.thread is None or state is None or not state.on:  # None: the interpreter has ended
            return
        try:
            self()
        except Exception as error:
            trouble("end of backward", error)


def begin_engine(thread):
    thread.backwards += 1
    torch.autograd.Variable._execution_engine.queue_callback(End(thread))


def inside(thread):
    """True while the engine runs on this thread: a call of a module then is a recomputation."""
    if _task_id is None:
        return thread.in_backward
    if _task_id() != -1:
        return True
    if thread.in_backward:
        thread.close_all()  # left behind by an error
    return False
