"""The queue of submitted experiments"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    whole = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "jobs",
        sa.Column("experiment_id", whole, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("parent", whole, nullable=True),
        sa.Column("point", whole, nullable=True),
        sa.Column("at", sa.JSON(), nullable=True),
        sa.Column("words", sa.String(), nullable=False),
        sa.Column("points", whole, nullable=False),
        sa.Column("runs", whole, nullable=False),
        sa.Column("estimated_s", sa.Double(), nullable=False),
        sa.Column("fabric", sa.String(), nullable=False),
        sa.Column("queued_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("attempt", whole, nullable=False),
        sa.Column("worker", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"]),
        sa.ForeignKeyConstraint(["parent"], ["experiments.id"]),
        sa.PrimaryKeyConstraint("experiment_id"),
    )
    op.create_index("jobs_by_parent", "jobs", ["parent", "point"])
    op.create_index("experiments_by_state", "experiments", ["state", "id"])


def downgrade() -> None:
    op.drop_index("experiments_by_state", "experiments")
    op.drop_table("jobs")
