"""What lists show of summaries, in a table of its own"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from controller.store.models import compared_part

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_EXPERIMENTS = sa.table(
    "experiments", sa.column("id", sa.BigInteger()), sa.column("summary", sa.JSON(none_as_null=True))
)


def upgrade() -> None:
    compared = op.create_table(
        "compared",
        sa.Column("experiment_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("part", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"]),
        sa.PrimaryKeyConstraint("experiment_id"),
    )
    connection = op.get_bind()
    for number in connection.scalars(
        sa.select(_EXPERIMENTS.c.id)
    ).all():  # summaries one by one: they may be large
        summary = sa.select(_EXPERIMENTS.c.summary).where(_EXPERIMENTS.c.id == number)
        part = compared_part(connection.scalars(summary).one())
        if part is not None:
            connection.execute(compared.insert(), {"experiment_id": number, "part": part})


def downgrade() -> None:
    op.drop_table("compared")
