from tests.support.postgres import postgres_dsn, postgres_server  # noqa: F401
