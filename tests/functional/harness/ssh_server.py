"""A server of AsyncSSH's, which is told by the name of its user how to ask for a password: run as a program, in the clients' Python.
What came to it are lines of JSON in its log."""
import json
import os
import subprocess
import sys

if __name__ != "__main__":
    from . import durward
    from .nginx import free_port
    from .sshd import keygen
    from .tap import wait_for

USERS = ("plain", "asks", "words", "both", "open",                                          # let in
         "twice", "shows", "again", "forever", "keys", "change", "banner", "tells", "refuses")


def missing():
    """Why there can be no server here; None: there can."""
    python = os.path.join(durward.clients_dir(), "venv/bin/python")
    there = os.access(python, os.X_OK) and subprocess.run([python, "-c", "import asyncssh"], capture_output=True).returncode == 0
    return None if there else "the client libraries are not there: tests/functional/clients/setup"


class Server:
    """.address, .host_key; came(): [user, method, text] of each try."""

    def __init__(self, test, password, name="asyncssh"):
        folder = test.mkdir(name)
        self.log = folder + "/log"
        _, self.host_key = keygen(folder + "/host")
        port = free_port()
        self.address = "127.0.0.1:%d" % port
        test.write(name + "/password", password)
        with open(folder + "/err", "ab") as err:
            self.process = test.popen([os.path.join(durward.clients_dir(), "venv/bin/python"), "-B", os.path.abspath(__file__), folder, str(port)],
                                      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
        if not wait_for(lambda: os.path.exists(self.log), 30):
            with open(folder + "/err", errors="replace") as f:
                raise RuntimeError("asyncssh does not start: " + f.read())

    def came(self, user=None):
        with open(self.log) as f:
            return [r for r in map(json.loads, f) if user in (None, r[0])]


def main(folder, port):
    import asyncio

    import asyncssh
    with open(folder + "/password") as f:
        password = f.read()
    log = open(folder + "/log.new", "a")

    def note(*what):
        log.write(json.dumps(what) + "\n")
        log.flush()

    class Told(asyncssh.SSHServer):
        def connection_made(self, conn):
            self.conn, self.user, self.rounds = conn, None, 0

        def begin_auth(self, username):
            self.user = username
            note(username, "begin", "")
            return username != "open"

        def password_auth_supported(self):
            return self.user in ("plain", "both", "change", "banner", "tells", "refuses")

        def kbdint_auth_supported(self):
            return self.user in ("asks", "words", "both", "twice", "shows", "again", "forever")

        def public_key_auth_supported(self):
            return self.user == "keys"

        def validate_password(self, username, said):
            note(username, "password", said)
            if username == "change":
                raise asyncssh.PasswordChangeRequired("it is too old")
            if username in ("banner", "tells"):
                self.conn.send_auth_banner("your password was %s\n" % said)
            if username == "tells":
                raise asyncssh.DisconnectError(2, "no login with " + said)
            return username not in ("banner", "refuses") and said == password

        def get_kbdint_challenge(self, username, lang, submethods):
            note(username, "asked", "")
            return {"asks": ("", "", "", [("Password: ", False)]),
                    "both": ("", "", "", [("Password: ", False)]),
                    "again": ("", "", "", [("Password: ", False)]),
                    "twice": ("", "", "", [("Password: ", False), ("Code: ", False)]),
                    "shows": ("", "", "", [("Name of your first pet: ", True)]),
                    "words": ("", "Welcome. All is logged.", "", []),
                    "forever": ("", "One moment.", "", [])}[username]

        def validate_kbdint_response(self, username, responses):
            note(username, "answered", "|".join(responses))
            self.rounds += 1
            if username == "words" and self.rounds == 1:
                return "", "", "", [("Password: ", False)]
            if username == "words" and self.rounds == 2 and responses == [password]:
                return "", "Your account ends soon.", "", []
            if username == "words":
                return self.rounds == 3
            if username == "again":
                return "", "", "", [("Code from your phone: ", False)]
            if username == "forever":
                return "", "One moment.", "", []
            return responses == [password]

    async def run(process):
        note(process.get_extra_info("username"), "ran", process.command or "")
        process.stdout.write("hello\n")
        process.exit(0)

    async def serve():
        await asyncssh.create_server(Told, "127.0.0.1", int(port), server_host_keys=[folder + "/host"], process_factory=run)
        os.rename(folder + "/log.new", folder + "/log")
        await asyncio.Event().wait()
    asyncio.run(serve())


if __name__ == "__main__":
    main(*sys.argv[1:])
