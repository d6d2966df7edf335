"""Images for containers inside a sandbox, made of what this machine has installed and the sandbox sees: the files of a program
and of what it is linked to, as a tar, and a Containerfile on top of it."""
import glob
import os

from . import engine

REDIS = "/usr/bin/redis-server"
PYTHON, NODE = "/usr/bin/python3", "/usr/bin/node"

# A tar of files becomes an image with an account and the usual programs.
BASE_FILE = """FROM localhost/files:1
RUN ["/bin/busybox", "--install", "-s", "/bin"]
RUN mkdir -p /etc /root && chmod 1777 /tmp && echo 'root:x:0:0:root:/root:/bin/sh' >/etc/passwd && \\
    echo 'hosts: files dns' >/etc/nsswitch.conf
"""

# Both as the images that everybody knows: what their users give as a command may be options alone, or a configuration.
REDIS_START = """#!/bin/sh
case "${1:--}" in -*|*.conf) set -- redis-server "$@" ;; esac
[ "$1" != redis-server ] || set -- "$@" --protected-mode no
exec "$@"
"""

REDIS_FILE = """RUN mkdir -p /data && chmod 1777 /data
COPY --chmod=755 start /usr/local/bin/docker-entrypoint.sh
USER 999
WORKDIR /data
EXPOSE 6379
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["redis-server", "--save", ""]
"""

# The account, its password and its database come by the environment, scripts of its users run once, and the server says twice
# that it is ready: first to itself alone, while these are made.
POSTGRES_START = """#!/bin/sh
set -e
case "$1" in -*) set -- postgres "$@" ;; esac
[ "$1" = postgres ] || exec "$@"
if [ "$(id -u)" = 0 ]; then
    exec /usr/bin/setpriv --reuid 999 --regid 999 --clear-groups "$0" "$@"
fi
export PGTZ=GMT TZ=GMT POSTGRES_USER="${POSTGRES_USER:-postgres}"
export POSTGRES_DB="${POSTGRES_DB:-$POSTGRES_USER}"
printf '%s' "${POSTGRES_PASSWORD:-postgres}" >/tmp/password
initdb -U "$POSTGRES_USER" --pwfile=/tmp/password --auth-local=trust --auth-host=scram-sha-256 --no-sync --locale=C -E UTF8 >/dev/null
rm /tmp/password
echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
printf "fsync=off\\nlisten_addresses='*'\\nshared_buffers=16MB\\nlog_timezone=GMT\\ntimezone=GMT\\n" >>"$PGDATA/postgresql.conf"
pg_ctl -w -s start -o "-c listen_addresses=''"
[ "$POSTGRES_DB" = postgres ] || psql -q -U "$POSTGRES_USER" -d postgres -c "CREATE DATABASE \\"$POSTGRES_DB\\""
for file in /docker-entrypoint-initdb.d/*; do
    case "$file" in
    *.sh) "$file" ;;
    *.sql) psql -v ON_ERROR_STOP=1 -q -U "$POSTGRES_USER" -d "$POSTGRES_DB" -f "$file" ;;
    esac
done
pg_ctl -w -s -m fast stop
exec "$@"
"""

POSTGRES_FILE = """RUN mkdir -p /var/lib/postgresql/data /var/run/postgresql /docker-entrypoint-initdb.d && \\
    echo 'postgres:x:999:999::/var/lib/postgresql:/bin/sh' >>/etc/passwd && echo 'postgres:x:999:' >>/etc/group && \\
    chown -R 999:999 /var/lib/postgresql /var/run/postgresql
ENV PATH=%(bin)s:/usr/local/bin:/usr/bin:/bin PGDATA=/var/lib/postgresql/data
COPY --chmod=755 start /usr/local/bin/docker-entrypoint.sh
EXPOSE 5432
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]
"""


def postgres_home():
    """The folder of the newest PostgreSQL that is installed, or None."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
    return os.path.dirname(os.path.dirname(found[-1])) if found else None


def tree(*tops):
    return [os.path.join(where, n) for top in tops for where, dirs, names in os.walk(top) for n in names if "__pycache__" not in where]


def paths(*programs, more=()):
    """What an image of these has: busybox and curl beside them, all that they are linked to, and `more`."""
    found = {engine.BUSYBOX}
    for p in (engine.CURL, *programs):
        found |= {p, *engine.libraries(p)}
    return sorted(found | set(more))


def redis():
    return paths(REDIS)


def postgres():
    home = postgres_home()
    programs = [os.path.join(home, "bin", n) for n in ("postgres", "initdb", "pg_ctl", "pg_isready", "psql")]
    modules = [os.path.join(home, "lib", n) for n in ("plpgsql.so", "dict_snowball.so")]
    share = tree("/usr/share/postgresql/" + os.path.basename(home))
    return paths(*programs, *modules, "/bin/bash", "/usr/bin/setpriv", more=[x for x in share if "/man/" not in x] + glob.glob("/usr/share/zoneinfo/Etc/UTC"))


def python():
    """The host's Python, and pip as a wheel, for images of applications."""
    own = [host for _, host in engine.python_files() if not host.endswith("EXTERNALLY-MANAGED")]
    return paths(PYTHON, more=own + glob.glob("/usr/share/python-wheels/pip-*.whl"))


def npm():
    """The program of npm, where it is."""
    return os.path.realpath("/usr/bin/npm")


def node():
    """The host's Node.js with its npm, whose modules Debian keeps together with all others."""
    top = os.path.dirname(os.path.dirname(npm()))
    return paths(NODE, more=tree("/usr/share/nodejs" if top.startswith("/usr/share/nodejs/") else top))
