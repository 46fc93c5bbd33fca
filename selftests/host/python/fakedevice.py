# SPDX-License-Identifier: GPL-2.0-only
"""
A device for tests of dblp.staging: tensors are memory of this process, and each stream is a thread
that does its work later, in order. A test can hold a stream.
"""

import queue
import threading
import weakref

LONG = 60


def _work(waiting):
    while True:
        function = waiting.get()
        if function is None:
            return
        function()
        del function


def _stop(waiting, thread):
    """At the end of a program too: Python would end the thread inside PyTorch, which then aborts"""
    waiting.put(None)
    if thread is not threading.current_thread():
        thread.join(1)


class Stream:
    def __init__(self):
        self._waiting = queue.SimpleQueue()
        thread = threading.Thread(target=_work, args=(self._waiting,), daemon=True)
        thread.start()
        weakref.finalize(self, _stop, self._waiting, thread)

    def put(self, function):
        self._waiting.put(function)

    def hold(self):
        """Stop the stream until release()"""
        self.release = threading.Event().set
        self.wait_for(self.release.__self__)

    def wait_for(self, event):
        # Longer than a test waits
        self.put(lambda: event.wait(2 * LONG))

    def finish(self):
        """Wait until all work so far has ended"""
        assert FakeDevice().record(self).wait(LONG)


class Future:
    def __init__(self):
        self.value = None
        self.completed = threading.Event()

    def done(self):
        return self.completed.is_set()

    def wait(self):
        assert self.completed.wait(LONG), "the future was not completed"
        return self.value


#: The current device of each thread
_current = threading.local()


class FakeDevice:
    """
    A Device of dblp.staging. Tensors are writable buffers of bytes. Functions in `fail`, by the
    name of a method, are called before that method, and may raise.
    """

    def __init__(self, key="fake"):
        self.key = key
        #: The stream of the caller, which computes the inputs; None: inputs are ready
        self.current = None
        self.streams = []
        self.fail = {}
        #: Sizes of pinned buffers that exist, by id(), and how many there ever were
        self.buffers, self.allocated = {}, 0
        #: Names of methods that a thread of a Stager called while another device was its current one
        self.misused = []

    @property
    def nbytes(self):
        return sum(self.buffers.values())

    def _called(self, name):
        if threading.current_thread().name == "dblp-staging" and getattr(_current, "device", None) is not self:
            self.misused.append(name)
        self.fail.get(name, lambda: None)()

    def use(self):
        _current.device = self

    def stream(self):
        self.streams.append(Stream())
        return self.streams[-1]

    def record(self, stream=None):
        self._called("record")
        stream = stream or self.current
        event = threading.Event()
        if stream:
            stream.put(event.set)
        else:
            event.set()
        return event

    def wait(self, stream, event):
        self._called("wait")
        stream.wait_for(event)

    def synchronize(self, event):
        self._called("synchronize")
        assert event.wait(LONG), "an event was not reached"

    def pinned(self, nbytes):
        self._called("pinned")
        host = self.make(nbytes)
        self.buffers[id(host)] = nbytes
        self.allocated += 1
        return host

    def make(self, nbytes):
        return memoryview(bytearray(nbytes))

    def free(self, host):
        self._called("free")
        del self.buffers[id(host)]

    def slice(self, host, nbytes):
        self._called("slice")
        return host[:nbytes]

    def move(self, host, offset, tensor, back):
        part = host[offset:offset + len(tensor)]
        to, source = (tensor, part) if back else (part, tensor)
        to[:] = source

    def copy(self, host, offset, tensor, stream, back):
        self._called("copy")
        stream.put(lambda: self.move(host, offset, tensor, back))

    def future(self):
        return Future()

    def complete(self, future, value, stream):
        """Where other devices let consumers wait for an event, here the stream completes the future"""
        self._called("complete")
        if value is None:
            self.set(future, value)
        else:
            stream.put(lambda: self.set(future, value))

    def set(self, future, value):
        future.value = value
        future.completed.set()
