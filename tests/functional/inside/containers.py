#!/usr/bin/python3
"""Testcontainers' example for Python: Redis, twice at once, and PostgreSQL. Prints what the servers say and what a container's own
requests get."""
import sqlalchemy
from testcontainers.community.postgres import PostgresContainer
from testcontainers.community.redis import RedisContainer


def asks(container):
    for url in ("https://deps.example.com/python", "https://evil.example.com/"):
        code, said = container.exec(["curl", "-sS", "-m", "5", url])
        print(code, said.decode())


with RedisContainer("localhost/redis:1") as server, RedisContainer("localhost/redis:1") as second:
    server.get_client().set("key", "value")
    print("redis", server.get_client().get("key").decode())
    print("second", second.get_client().get("key"))
with PostgresContainer("localhost/postgres:1", driver="psycopg2") as server:
    with sqlalchemy.create_engine(server.get_connection_url()).begin() as connection:
        print("postgres", connection.execute(sqlalchemy.text("select version()")).fetchone()[0])
    asks(server)
