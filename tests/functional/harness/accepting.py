"""What servers of tests have in common: whoever connects is served in a thread of its own."""
import socket
import threading


def accepting(listener, one):
    """one(socket), for each that is accepted, until the listener is closed."""
    def loop():
        while True:
            try:
                s, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(s,), daemon=True).start()
    threading.Thread(target=loop, daemon=True).start()


def carry(a, b, open_=lambda: True):
    """What a says to b, until one of them ends: then both have. While open_() is not, it goes nowhere."""
    try:
        for data in iter(lambda: a.recv(65536), b""):
            if open_():
                b.sendall(data)
    except OSError:
        pass
    for s in (a, b):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def joined(a, b, open_=lambda: True):
    """Both ways, in threads."""
    for pair in ((a, b), (b, a)):
        threading.Thread(target=carry, args=pair + (open_,), daemon=True).start()


def exactly(s, n):
    """The next n bytes; ConnectionError where it ends before."""
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        if not more:
            raise ConnectionError("it ended")
        data += more
    return data
