"""A program that annotates itself with NVTX, without NVTX: it loads NVTX_INJECTION64_PATH as NVTX's header does and
calls what the library has put into its tables. Run by test_gpu_trace.py; the argument picks a scene."""
import ctypes
import os
import sys
import threading

CORE, CORE2 = 1, 5
ASCII, UNICODE, REGISTERED = 1, 2, 3
VOID = ctypes.c_void_p


class Event(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint16), ("size", ctypes.c_uint16), ("category", ctypes.c_uint32),
                ("color_type", ctypes.c_int32), ("color", ctypes.c_uint32), ("payload_type", ctypes.c_int32),
                ("reserved", ctypes.c_int32), ("payload", ctypes.c_uint64), ("message_type", ctypes.c_int32),
                ("message", VOID)]


class Callbacks(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("table", VOID)]


class Nvtx:
    """One copy of NVTX: tables of pointers to function pointers."""

    def __init__(self):
        self.places = {CORE: (VOID * 16)(), CORE2: (VOID * 16)()}
        self.tables = {m: (VOID * 16)(*[ctypes.addressof(p) + 8 * i for i in range(16)]) for m, p in self.places.items()}
        self.get_table = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(VOID),
                                          ctypes.POINTER(ctypes.c_uint))(self.give_table)
        self.callbacks = Callbacks(ctypes.sizeof(Callbacks), ctypes.cast(self.get_table, VOID))
        self.export = ctypes.CFUNCTYPE(VOID, ctypes.c_uint32)(
            lambda number: ctypes.addressof(self.callbacks) if number == 1 else None)
        library = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"])
        self.accepted = library.InitializeInjectionNvtx2(self.export)

    def give_table(self, module, table, length):
        if module not in self.tables:
            return 0
        table[0] = ctypes.addressof(self.tables[module])
        length[0] = 16
        return 1

    def call(self, module, number, result, *typed):
        address = self.places[module][number]
        if not address:
            return None
        return ctypes.CFUNCTYPE(result, *[t for t, _ in typed])(address)(*[v for _, v in typed])

    def event(self, text, category=0, payload=None, string=None):
        e = Event(version=3, size=ctypes.sizeof(Event), category=category)
        if string is not None:
            e.message_type, e.message = REGISTERED, string
        elif isinstance(text, bytes):
            self.keep = ctypes.create_string_buffer(text)
            e.message_type, e.message = ASCII, ctypes.addressof(self.keep)
        else:
            self.keep = ctypes.create_unicode_buffer(text)
            e.message_type, e.message = UNICODE, ctypes.addressof(self.keep)
        if payload is not None:
            e.payload_type, e.payload = 2, payload
        return ctypes.byref(e)

    def domain(self, name):
        return self.call(CORE2, 12, VOID, (ctypes.c_char_p, name))

    def string(self, domain, text):
        return self.call(CORE2, 10, VOID, (VOID, domain), (ctypes.c_char_p, text))

    def category(self, domain, number, name):
        self.call(CORE2, 8, None, (VOID, domain), (ctypes.c_uint32, number), (ctypes.c_char_p, name))

    def push(self, domain, text=b"", **more):
        return self.call(CORE2, 4, ctypes.c_int, (VOID, domain), (VOID, self.event(text, **more)))

    def pop(self, domain):
        return self.call(CORE2, 5, ctypes.c_int, (VOID, domain))

    def start(self, domain, text, **more):
        return self.call(CORE2, 2, ctypes.c_uint64, (VOID, domain), (VOID, self.event(text, **more)))

    def end(self, domain, number):
        self.call(CORE2, 3, None, (VOID, domain), (ctypes.c_uint64, number))

    def mark(self, domain, text, **more):
        self.call(CORE2, 1, None, (VOID, domain), (VOID, self.event(text, **more)))


def nested(nvtx):
    train = nvtx.domain(b"train")
    loop = nvtx.string(train, b"step")
    nvtx.category(train, 3, b"tokens")
    for i in range(4):
        assert nvtx.push(train, string=loop, category=3, payload=32) == 0
        assert nvtx.push(train, b"forward") == 1
        assert nvtx.push(None, "größer") == 0
        assert nvtx.pop(None) == 0
        assert nvtx.pop(train) == 1
        assert nvtx.pop(train) == 0
        nvtx.mark(train, b"saved")
    assert nvtx.call(CORE, 9, ctypes.c_int, (ctypes.c_char_p, b"plain")) == 0
    assert nvtx.call(CORE, 11, ctypes.c_int) == 0
    assert nvtx.pop(train) < 0


def counted(nvtx):
    """outer { A; B with a payload; a mark with one }, and a range that is started."""
    nvtx.category(None, 7, b"tokens")
    nvtx.push(None, b"outer")
    nvtx.push(None, b"A")
    nvtx.pop(None)
    nvtx.push(None, b"B", category=7, payload=1000)
    nvtx.mark(None, b"token", category=7, payload=5)
    nvtx.pop(None)
    nvtx.mark(None, b"done", category=7, payload=3)
    started = nvtx.start(None, b"S", payload=11)
    nvtx.end(None, started)
    nvtx.pop(None)
    nvtx.mark(None, b"bare", category=7, payload=2)


def crossing(nvtx):
    """Ranges of two domains that overlap, and one that another thread ends."""
    a, b = nvtx.domain(b"a"), nvtx.domain(b"b")
    nvtx.push(a, b"first")
    nvtx.push(b, b"second")
    nvtx.pop(a)
    nvtx.pop(b)
    one = nvtx.start(a, b"one")
    two = nvtx.start(a, b"two")
    nvtx.end(a, one)
    nvtx.end(a, two)
    far = nvtx.start(a, b"far")
    other = threading.Thread(target=nvtx.end, args=(a, far))
    other.start()
    other.join()
    nvtx.push(a, b"after")
    nvtx.pop(a)
    nvtx.end(a, 12345 << 32 | 1)
    nvtx.end(a, 0)


def forked(nvtx):
    nvtx.push(None, b"parent")
    child = os.fork()
    if not child:
        nvtx.pop(None)  # the parent's
        nvtx.push(None, b"child")
        nvtx.pop(None)
        os._exit(0)
    os.waitpid(child, 0)
    nvtx.pop(None)


if __name__ == "__main__":
    nvtx = Nvtx()
    print("accepted", nvtx.accepted)
    if nvtx.accepted:
        globals()[sys.argv[1]](nvtx)
