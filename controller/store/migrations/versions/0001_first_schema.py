"""First schema: experiments, runs, flows, mode events"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "experiments",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("versions", sa.JSON(), nullable=False),
        sa.Column("machine", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("error", sa.String(), nullable=False),
        sa.Column("summary", sa.JSON(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("finished_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("experiment_id", sa.Integer(), nullable=False),
        sa.Column("scheme", sa.String(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("repeat", sa.Integer(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("finished_at", sa.Double(), nullable=False),
        sa.Column("cpu_limited", sa.Boolean(), nullable=False),
        sa.Column("cpu", sa.JSON(), nullable=False),
        sa.Column("measures", sa.JSON(), nullable=False),
        sa.Column("mode_events_complete", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment_id"],
            ["experiments.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("experiment_id", "label", "repeat"),
    )
    op.create_table(
        "flows",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("flow", sa.Integer(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("destination", sa.String(), nullable=False),
        sa.Column("traffic_class", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("error", sa.String(), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=True),
        sa.Column("source_port", sa.Integer(), nullable=True),
        sa.Column("destination_port", sa.Integer(), nullable=True),
        sa.Column("planned_s", sa.Double(), nullable=True),
        sa.Column("started_s", sa.Double(), nullable=True),
        sa.Column("finished_s", sa.Double(), nullable=True),
        sa.Column("fct_s", sa.Double(), nullable=True),
        sa.Column("bytes_acked", sa.Integer(), nullable=True),
        sa.Column("window_bytes", sa.Integer(), nullable=True),
        sa.Column("window_s", sa.Double(), nullable=True),
        sa.Column("retransmissions", sa.Integer(), nullable=True),
        sa.Column("bytes_retransmitted", sa.Integer(), nullable=True),
        sa.Column("reordering_events", sa.Integer(), nullable=True),
        sa.Column("duplicates_reported", sa.Integer(), nullable=True),
        sa.Column("rtt_ms", sa.Double(), nullable=True),
        sa.Column("min_rtt_ms", sa.Double(), nullable=True),
        sa.Column("out_of_order", sa.Integer(), nullable=True),
        sa.Column("packets", sa.Integer(), nullable=True),
        sa.Column("repairs", sa.Integer(), nullable=True),
        sa.Column("recovered", sa.Integer(), nullable=True),
        sa.Column("lost", sa.Integer(), nullable=True),
        sa.Column("reordered", sa.Integer(), nullable=True),
        sa.Column("held", sa.Integer(), nullable=True),
        sa.Column("release_timeouts", sa.Integer(), nullable=True),
        sa.Column("paths", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["runs.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("flows", schema=None) as batch_op:
        batch_op.create_index("flows_by_run", ["run_id", "id"], unique=False)

    op.create_table(
        "mode_events",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("at_s", sa.Double(), nullable=False),
        sa.Column("leaf", sa.String(), nullable=False),
        sa.Column("mode", sa.String(), nullable=False),
        sa.Column("cause", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["runs.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("mode_events", schema=None) as batch_op:
        batch_op.create_index("mode_events_by_run", ["run_id", "id"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("mode_events", schema=None) as batch_op:
        batch_op.drop_index("mode_events_by_run")

    op.drop_table("mode_events")
    with op.batch_alter_table("flows", schema=None) as batch_op:
        batch_op.drop_index("flows_by_run")

    op.drop_table("flows")
    op.drop_table("runs")
    op.drop_table("experiments")
