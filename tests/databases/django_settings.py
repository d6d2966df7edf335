"""For Django's own tests: two databases that are there, at the server that PGHOST and its kin name."""
import os


def database(name):
    return {"ENGINE": "django.db.backends.postgresql", "HOST": os.environ["PGHOST"], "PORT": os.environ["PGPORT"],
            "USER": os.environ["PGUSER"], "PASSWORD": os.environ["PGPASSWORD"], "NAME": name, "TEST": {"NAME": name},
            "OPTIONS": {"sslmode": "require"}}


DATABASES = {"default": database("django"), "other": database("django2")}
SECRET_KEY = "for tests alone"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
