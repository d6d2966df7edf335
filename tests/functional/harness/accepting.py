"""What servers of tests have in common: whoever connects is served in a thread of its own."""
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


def exactly(s, n):
    """The next n bytes; ConnectionError where it ends before."""
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        if not more:
            raise ConnectionError("it ended")
        data += more
    return data
