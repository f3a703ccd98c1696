"""How Alembic runs here: on the connection that `tracker.database.migrate` hands over, and on no other.

Revisions name no schema. On SQLite there is none; on PostgreSQL `migrate` puts `trackr` first on the search
path, so that the same file serves both engines. SQLite cannot alter a table in place: batch mode rebuilds it.
"""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"], **context.config.attributes["options"])
with context.begin_transaction():
    context.run_migrations()
