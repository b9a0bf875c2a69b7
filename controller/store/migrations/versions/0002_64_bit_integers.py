"""64-bit integers where the database distinguishes them from 32-bit ones"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TABLES = ("experiments", "runs", "flows", "mode_events")


def _retype(old: type[sa.Integer], new: type[sa.Integer]) -> None:
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        return  # one INTEGER of 64 bits
    inspector = sa.inspect(connection)
    for table in TABLES:
        for column in inspector.get_columns(table):
            if isinstance(column["type"], old):
                op.alter_column(table, column["name"], existing_type=old(), type_=new())


def upgrade() -> None:
    _retype(sa.Integer, sa.BigInteger)


def downgrade() -> None:
    _retype(sa.BigInteger, sa.Integer)
