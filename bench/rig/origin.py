"""The origin that every peer reaches: nginx for replies of fixed size, and a stream of events."""
import os
import socket
import ssl
import subprocess
import threading
import time

from harness import tap

HOST = "origin.bench.test"
SECRET = "bench-secret-0123456789abcdef"
EVENT_EVERY = 0.02

CONF = """
daemon off; worker_processes 1; error_log {dir}/error.log crit; pid {dir}/pid; worker_rlimit_nofile 16384;
events {{ worker_connections 8192; }}
http {{
    access_log off; keepalive_requests 1000000000; keepalive_timeout 600s; tcp_nodelay on;
    map $http_authorization $credential {{ default $http_authorization; "Bearer %s" right; }}
    client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f;
    uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
    server {{
        listen 127.0.0.1:{port} ssl backlog=4096;
        ssl_certificate {crt}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;
        root {dir}/www;
        location = /once {{ keepalive_timeout 0; alias {dir}/www/small; }}
        location = /seen {{ return 200 "$credential|$http_x_bench"; }}
    }}
}}
""" % SECRET


def own_share(pid, nice=-15):
    """An origin stands for a machine of its own: where the scheduler shares out by session and we may say so, this one
    is not held up by hundreds of sessions that have work to do."""
    try:
        with open("/proc/%d/autogroup" % pid, "w") as f:
            f.write(str(nice))
    except OSError:  # an ordinary user, or a kernel without them: it has the share of one
        return False
    return True


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def wait_port(port, process, what, seconds=20):
    def there():
        if process.poll() is not None:
            raise RuntimeError("%s ended with %s" % (what, process.returncode))
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            return False
    if not tap.wait_for(there, seconds, 0.05):
        raise RuntimeError("%s does not listen on port %d" % (what, port))


class Origin:
    """.port: /small (1 KiB), /once (the same, and the connection ends), /big (10 MB), /seen (the credential that came). .events_port: /events."""

    def __init__(self, test, ca, name="origin"):
        self.dir, self.ca = test.mkdir(name), ca
        self.crt, self.key = ca.issue(HOST, "*." + HOST)
        www = test.mkdir(name + "/www")
        for name, size in (("small", 1024), ("big", 10000000)):
            with open(os.path.join(www, name), "wb") as f:
                f.write(b"x" * size)
            os.chmod(f.name, 0o644)
        for path in (self.dir, www):
            os.chmod(path, 0o755)
        self.port = free_port()
        conf = os.path.join(self.dir, "nginx.conf")
        with open(conf, "w") as f:
            f.write(CONF.format(dir=self.dir, port=self.port, crt=self.crt, key=self.key))
        self.process = test.popen(["nginx", "-c", conf, "-p", self.dir], stderr=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL)
        wait_port(self.port, self.process, "the origin")
        self.events_port = self._serve_events()
        self.bad_port = self._serve_stranger(test)

    def pids(self):
        return [self.process.pid] + [p for p, _ in tap.descendants(self.process.pid)]

    def _listen(self, crt, key, serve):
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(crt, key)
        listener = socket.create_server(("127.0.0.1", 0))

        def one(raw):
            try:
                with tls.wrap_socket(raw, server_side=True) as s:
                    serve(s)
            except OSError:
                pass  # the other side left, as it may

        def accept():
            while True:
                raw, _ = listener.accept()
                raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=one, args=(raw,), daemon=True).start()
        threading.Thread(target=accept, daemon=True).start()
        return listener.getsockname()[1]

    def _serve_events(self):
        def serve(s):
            s.recv(65536)
            s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            while True:
                line = b"data: %d\n\n" % time.monotonic_ns()
                s.sendall(b"%x\r\n%s\r\n" % (len(line), line))
                time.sleep(EVENT_EVERY)
        return self._listen(self.crt, self.key, serve)

    def _serve_stranger(self, test):
        """A server whose certificate another authority signed: every peer must refuse it."""
        from harness import ca
        crt, key = ca.Authority(os.path.join(self.dir, "stranger"), "A stranger").issue(HOST)

        def serve(s):
            s.recv(65536)
            s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nunchecked")
        return self._listen(crt, key, serve)
