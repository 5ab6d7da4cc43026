"""Leases by the machine's own clock, rollouts to be confirmed, and what people let a rollout go without."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("deploy", "0004_table_changes")]

    operations = [
        migrations.AddField("rollout", "claimed_until_up", models.FloatField(null=True)),
        migrations.AddField("rollout", "confirm_within_s", models.PositiveIntegerField(null=True)),
        migrations.AddField("rollout", "confirm_by", models.DateTimeField(null=True)),
        migrations.AddField("rollout", "confirmed_at", models.DateTimeField(null=True)),
        migrations.AddField("rollout", "not_rolled_back", models.TextField(blank=True, db_default="", default="")),
        migrations.AddField(
            "rollout",
            "undoes",
            models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.PROTECT, related_name="undone_by", to="deploy.rollout"
            ),
        ),
        migrations.AddField("rollout", "without", models.JSONField(null=True)),
        migrations.AddField("rollout", "accepted", models.JSONField(null=True)),
    ]
