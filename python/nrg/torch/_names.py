"""Names of modules: the qualified name below the outermost module, as named_modules() gives it.

The first model (a root with parameters) has the plain names, which are those of its traced graph:
"layer1.0.conv1"; the root itself is called by its class. Modules of other roots carry the root's name
in front ("Discriminator.main.0"); a second root of the same class is "Net#2". A module that is used in two
places keeps its first name. Wrappers that only pass calls on (DataParallel, torch.compile and so on)
leave no trace in the names of what they wrap.

Nothing is stored in the modules: a table by id() with weak references, so that copies and pickles of a
model know nothing of nrg.
"""
from .. import _nrg
from ._state import lock, state, weak

# Classes that wrap one module, and the name that they have it under.
WRAPPERS = {
    "DataParallel": "module",
    "DistributedDataParallel": "module",
    "FullyShardedDataParallel": "_fsdp_wrapped_module",
    "CheckpointWrapper": "_checkpoint_wrapped_module",
    "OptimizedModule": "_orig_mod",
}


class Entry(_nrg.Entry):
    """What is known of one module. The extension has forward and backward, the numbers of the names when they are
    needed, wants_backward, and compiled."""

    __slots__ = ("ref", "name", "detail", "params", "main", "has_loops", "trained", "transposed", "root", "strangers", "owner")

    def __init__(self, name, detail, root, owner):
        self.ref = None
        self.name = name
        self.detail = detail
        self.wants_backward = state.backward if owner is None else owner.backward
        self.params = False
        self.main = False
        self.has_loops = False   # it was called for training, or evaluated
        self.trained = False     # though it is not in training mode
        self.transposed = None   # a part of it has batch_first=False; None: not asked yet
        self.root = root if root is not None else self
        self.strangers = None
        self.owner = owner  # the Watch that it belongs to; None: install()

    def number(self):
        self.forward = found = _nrg.name(self.name, "module", self.detail)
        return found

    def backward_number(self):
        self.backward = found = _nrg.name(self.name, "backward", self.detail)
        return found


table = {}   # id(module) -> Entry
twins = {}   # id(its dict of forward hooks) -> Entry: replicas share it with their original
roots = []   # Entries of outermost modules


def forget(owner):
    """Entries of a Watch that has ended."""
    with lock:
        for key, entry in list(table.items()):
            if entry.owner is owner:
                table.pop(key, None)
        for key, entry in list(twins.items()):
            if entry.owner is owner:
                twins.pop(key, None)
        roots[:] = [entry for entry in roots if entry.owner is not owner]


def children(module):
    modules = module.__dict__.get("_modules")
    return list(modules.items()) if modules else []


def _add(module, entry):
    key, twin = id(module), id(module.__dict__.get("_forward_hooks"))

    def gone(_, table=table, twins=twins):  # when the interpreter ends, globals are gone before the modules
        table.pop(key, None)
        if twins.get(twin) is entry:
            twins.pop(twin, None)

    entry.ref = weak(module, gone)
    entry.params = next(iter(module.parameters()), None) is not None
    entry.compiled = entry.detail == "OptimizedModule"  # torch.compile(model)
    table[key] = entry
    twins[twin] = entry
    return entry


def _walk(module, path, prefix, root, seen=None):
    """Names all that hangs below a module. Those that have a name keep it."""
    seen = set() if seen is None else seen
    for key, child in children(module):
        if child is None or id(child) in seen:
            continue
        seen.add(id(child))
        through = WRAPPERS.get(type(module).__name__) == key
        below = path if through else path + "." + key if path else key
        if id(child) not in table:
            _add(child, Entry(_text(child, below, prefix), type(child).__name__, root, root.owner))
        _walk(child, below, prefix, root, seen)


def _text(module, path, prefix):
    tail = path or _class_name(module)
    return prefix + "." + tail if prefix else tail


def _class_name(module):
    inner = dict(children(module)).get("_orig_mod")
    scripted = getattr(module, "original_name", None)
    return str(scripted) if scripted else type(inner if inner is not None else module).__name__


def _free_name(wanted):
    taken = {entry.name for entry in roots if entry.ref() is not None}
    if wanted not in taken:
        return wanted
    n = 2
    while "%s#%d" % (wanted, n) in taken:
        n += 1
    return "%s#%d" % (wanted, n)


def learn_root(module, given=None, owner=None):
    """An outermost module that is called for the first time, and all below it."""
    with lock:
        found = table.get(id(module))
        if found is not None and owner is None:
            return found
        roots[:] = [entry for entry in roots if entry.ref() is not None]
        kind = type(module).__name__
        wrapped = table.get(id(dict(children(module)).get(WRAPPERS.get(kind))))
        if wrapped is not None and kind == "OptimizedModule" and not given:
            name = wrapped.name  # what was compiled is the module that was there before
        else:
            name = _free_name(given or _class_name(module))
        entry = _add(module, Entry(name, kind, None, owner))
        entry.main = entry.params and not any(other.main for other in roots)
        roots.append(entry)
        _walk(module, "", "" if entry.main else entry.name, entry)
        if wrapped is not None:
            entry.main = wrapped.main
        return entry


def learn_inner(module, parent):
    """A module that is called by a known one and has no name yet: added since, or not registered."""
    with lock:
        outer = parent.ref()
        for key, child in children(outer) if outer is not None else ():
            if child is module:
                return _adopt(module, parent, key)
        root = parent.root
        kind = type(module).__name__
        if root.strangers is None or kind not in root.strangers:
            top = root.ref()
            if top is not None:
                _walk(top, "", "" if root.main else root.name, root)
            found = table.get(id(module))
            if found is not None:
                return found
            root.strangers = root.strangers or set()
            root.strangers.add(kind)  # walking again for each of them would be slow
        return _adopt(module, parent, kind)


def _adopt(module, parent, key):
    root = parent.root
    plain = parent is root and root.main
    name = key if plain else parent.name + "." + key
    entry = _add(module, Entry(name, type(module).__name__, root, root.owner))
    _walk(module, name if root.main else name[len(root.name) + 1:], "" if root.main else root.name, root)
    return entry


def original_of(module):
    """The Entry of the module that a replica of DataParallel was made from, or None."""
    hooks = module.__dict__.get("_forward_hooks")
    entry = twins.get(id(hooks))
    first = entry.ref() if entry is not None else None
    return entry if first is not None and first.__dict__.get("_forward_hooks") is hooks else None
