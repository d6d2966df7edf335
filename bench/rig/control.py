"""nginx and dnsmasq in Durward's place, for tests/functional/soak.t: neighbours and floods of the same kind reach the same origins
through nginx, and questions for names go to dnsmasq, in the same run, so that what a flood costs a neighbour is compared with what
it costs there."""
import os
import shutil
import socket
import struct
import subprocess
import sys
import time

from . import origin as rig_origin

HOST = rig_origin.HOST
FLOOD = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tests", "functional", "inside",
                     "flood.py")
SERVER = """
    upstream u{at} {{ server 127.0.0.1:{to}; keepalive 1024; keepalive_requests 1000000000; keepalive_timeout 600s; }}
    server {{
        listen 127.0.0.1:{at} ssl http2 backlog=4096;
        ssl_certificate {crt}; ssl_certificate_key {key}; ssl_session_cache shared:s:8m; ssl_protocols TLSv1.2 TLSv1.3;
        location = /denied {{ return 403; }}
        location / {{
            proxy_pass https://u{at}; proxy_http_version 1.1;
            proxy_set_header Connection ""; proxy_set_header Host $http_host; proxy_set_header Authorization "Bearer {secret}";
            proxy_ssl_verify on; proxy_ssl_trusted_certificate {ca}; proxy_ssl_server_name on; proxy_ssl_name {host};
            proxy_ssl_session_reuse on; proxy_buffers 16 32k; proxy_busy_buffers_size 128k; proxy_max_temp_file_size 0;
        }}
    }}"""
CONF = """
daemon off; worker_processes {cores}; error_log {dir}/error.log crit; pid {dir}/pid; worker_rlimit_nofile 16384;
events {{ worker_connections 8192; }}
http {{
    access_log {dir}/access.log; keepalive_timeout 600s; keepalive_requests 1000000000; tcp_nodelay on;
    client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
{servers}
}}
"""


PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def lacks():
    """The first of the programs that is not installed, or None."""
    return next((x for x in ("nginx", "dnsmasq") if not shutil.which(x, path=PATH)), None)


def wait_answer(port, process):
    """Waits until the name server there answers."""
    question = struct.pack(">HHHHHH", 1, 0x100, 1, 0, 0, 0) + b"\1a\7example\3com\0" + struct.pack(">HH", 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(0.1)
        s.connect(("127.0.0.1", port))
        end = time.monotonic() + 20
        while time.monotonic() < end and process.poll() is None:
            try:
                s.send(question)
                s.recv(512)
                return
            except OSError:  # nobody listens yet, or the answer is late
                time.sleep(0.05)
    raise RuntimeError("dnsmasq does not answer")


class Control:
    """.neighbours: how many; each asks as one in a sandbox does. What they had: replies()."""

    def __init__(self, test, origin, flooded, load):
        self.test, self.load = test, load
        self.dir = test.mkdir("control")
        self.port, self.flood_port = rig_origin.free_port(), rig_origin.free_port()
        servers = "".join(SERVER.format(at=at, to=o.port, crt=origin.crt, key=origin.key, secret=rig_origin.SECRET,
                                        ca=origin.ca.pem, host=HOST)
                          for at, o in ((self.port, origin), (self.flood_port, flooded)))
        conf = os.path.join(self.dir, "conf")
        with open(conf, "w") as f:
            f.write(CONF.format(cores=os.cpu_count(), dir=self.dir, servers=servers))
        env = dict(os.environ, PATH=PATH)
        self.process = test.popen(["nginx", "-p", self.dir, "-c", conf], stderr=subprocess.DEVNULL, env=env)
        for port in (self.port, self.flood_port):
            rig_origin.wait_port(port, self.process, "nginx")
        self.dns_port = rig_origin.free_port()
        me = ["--user=root", "--group=root"] if os.geteuid() == 0 else []
        names = test.popen(["dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--pid-file=", "--no-resolv", "--no-hosts",
                            "--bind-interfaces", "--listen-address=127.0.0.1", "--port=%d" % self.dns_port,
                            "--address=/#/127.0.0.9", "--log-facility=-"] + me, stderr=subprocess.DEVNULL, env=env)
        wait_answer(self.dns_port, names)
        self.neighbours = 0

    def command(self, port, *options):
        return [self.load, "--to", "127.0.0.1:%d" % port, "--host", HOST, "--port", str(port)] + [str(o) for o in options]

    def trace(self, i):
        return os.path.join(self.dir, "trace%d" % i)

    def populate(self, count, idle, busy, pace):
        for i in range(count):
            self.test.popen(self.command(self.port, "--path", "/small", "--idle", "--connections", idle, "--seconds", 600),
                            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
            self.test.popen(self.command(self.port, "--path", "/small", "--connections", busy, "--pace", pace, "--trace",
                                         self.trace(i), "--seconds", 86400, "--warmup", 86400), stdout=subprocess.DEVNULL)
        self.neighbours = count

    def replies(self):
        """As Soak.replies."""
        found = []
        for i in range(self.neighbours):
            with open(self.trace(i), "rb") as f:
                data = f.read()
            found += struct.iter_unpack("<QQ", data[:len(data) // 16 * 16])
        return sorted(found)

    def flood(self, what, seconds, names):
        """What it printed, as the same flood prints it in a sandbox."""
        inside = {"connections": "connections", "h2 resets": "h2", "slow reads": "slow", "DNS": "dns"}
        timed = ("--seconds", seconds, "--warmup", 0)
        load = {"handshakes": ("--path", "/small", "--new", "--connections", 32),
                "new host names": ("--path", "/small", "--new", "--names", names, "--connections", 16),
                "log noise": ("--path", "/denied", "--any", "--connections", 32),
                "requests": ("--path", "/small", "--connections", 64)}
        if what in inside:
            argv = [sys.executable, FLOOD, inside[what], "%g" % seconds, HOST, str(self.flood_port)] + ["/big"] * (what == "slow reads")
        else:
            argv = self.command(self.flood_port, *load[what], *timed)
        env = dict(os.environ, FLOOD_STRAIGHT="127.0.0.1:%d" % (self.dns_port if what == "DNS" else self.flood_port))
        r = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds * 3 + 30,
                           start_new_session=True)
        return r.stdout.strip()
