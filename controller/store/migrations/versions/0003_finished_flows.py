"""Records of finished flows, in batches"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    whole = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "finished_flows",
        sa.Column("id", whole, nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("count", whole, nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=False),
        sa.Column("addresses", sa.JSON(), nullable=False),
        sa.Column("records", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("finished_flows_by_end", "finished_flows", ["ended_at", "id"])


def downgrade() -> None:
    op.drop_table("finished_flows")
