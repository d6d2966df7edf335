"""A plugin for pytest: SQLAlchemy's tests do not make the extensions that they use, which are there."""


def pytest_configure(config):
    from sqlalchemy.dialects.postgresql import provision
    provision._extensions[:] = []
