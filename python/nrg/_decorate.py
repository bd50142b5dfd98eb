"""A span put before a function: what `@nrg.span("name")` makes of it.

Spans nest per thread, so a span must not stay open while a coroutine waits: the thread runs other
tasks then, and their spans would end up inside. A coroutine is therefore marked each time that it
runs, from one `await` to the next. For the same reason a generator is refused: it is unknown
what runs between two of its values.
"""
import functools
import inspect
import types


def wrap(span, function):
    """The function, with the span around each call."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError("a span can't be put before a generator: use it with `with` inside")
    if not callable(function):
        raise TypeError("a span decorates a function, not %r" % (function,))
    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def marked_coroutine(*args, **kwargs):
            return await _run(span, function(*args, **kwargs))
        return marked_coroutine

    begin, end = span.begin, span.end

    @functools.wraps(function)
    def marked(*args, **kwargs):
        begin()
        try:
            return function(*args, **kwargs)
        finally:
            end()
    return marked


@types.coroutine
def _run(span, coroutine):
    """Runs a coroutine as `await` does, with the span around each of its steps."""
    step, value = coroutine.send, None
    while True:
        with span:
            try:
                waits_for = step(value)
            except StopIteration as stop:
                return stop.value
        try:
            step, value = coroutine.send, (yield waits_for)
        except GeneratorExit:
            with span:
                coroutine.close()
            raise
        except BaseException as error:  # also CancelledError: the coroutine decides
            step, value = coroutine.throw, error
