"""Recordings of runs on switches, packet by packet"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    whole = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "recordings",
        sa.Column("run_id", whole, autoincrement=False, nullable=False),
        sa.Column("from_ms", sa.Double(), nullable=False),
        sa.Column("for_ms", sa.Double(), nullable=False),
        sa.Column("hops", whole, nullable=False),
        sa.Column("cut", sa.Boolean(), nullable=False),
        sa.Column("file", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"]),
        sa.PrimaryKeyConstraint("run_id"),
    )
    op.add_column("jobs", sa.Column("record", sa.JSON(), nullable=True))


def downgrade() -> None:
    op.drop_column("jobs", "record")
    op.drop_table("recordings")
