"""Whose records of finished flows these are: several controllers may share a database"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "finished_flows", sa.Column("fabric", sa.String(), nullable=False, server_default=sa.text("''"))
    )


def downgrade() -> None:
    op.drop_column("finished_flows", "fabric")
