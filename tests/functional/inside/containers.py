#!/usr/bin/python3
"""Testcontainers' example for Python: Redis and PostgreSQL. Containers have the sandbox's own network, so that a port is what it
is inside. Prints what the servers say and what a container's own requests get."""
import redis
import sqlalchemy
from testcontainers.core.container import DockerContainer
from testcontainers.core.waiting_utils import wait_for_logs
from testcontainers.community.postgres import PostgresContainer
from testcontainers.community.redis import RedisContainer


class OwnPorts:
    """No mapping is asked for, and none is looked up."""

    def with_exposed_ports(self, *ports):
        return self

    def _get_exposed_port(self, port):
        return int(port)


class Postgres(OwnPorts, PostgresContainer):
    pass


class Redis(OwnPorts, RedisContainer):
    pass


def asks(container):
    for url in ("https://deps.example.com/python", "https://evil.example.com/"):
        code, said = container.exec(["curl", "-sS", "-m", "5", url])
        print(code, said.decode())


with Redis("localhost/redis:1").with_kwargs(network_mode="host") as server:
    client = server.get_client()
    client.set("key", "value")
    print("redis", client.get("key").decode())
with Postgres("localhost/postgres:1", driver="psycopg2").with_kwargs(network_mode="host") as server:
    with sqlalchemy.create_engine(server.get_connection_url()).begin() as connection:
        print("postgres", connection.execute(sqlalchemy.text("select version()")).fetchone()[0])
    asks(server)
with DockerContainer("localhost/redis:1").with_kwargs(network_mode="host") as server:
    wait_for_logs(server, "Ready to accept connections")
    print("again", redis.Redis(port=6379).ping())
