from django.db import migrations, models


class Migration(migrations.Migration):
    """What a tenant's people may do by themselves, and how much of it."""

    dependencies = [("people", "0004_idempotency_keys")]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="moves",
            field=models.CharField(
                choices=[("WAIT", "wait for an operator"), ("ALONE", "roll out by themselves when the plan is safe")],
                db_default="WAIT",
                default="WAIT",
                max_length=5,
            ),
        ),
        migrations.AddField(model_name="tenant", name="most_servers", field=models.PositiveIntegerField(null=True)),
        migrations.AddField(
            model_name="tenant",
            name="most_partitions",
            field=models.PositiveIntegerField(db_default=8, default=8),
        ),
        migrations.AddField(
            model_name="tenant",
            name="most_rollouts_per_hour",
            field=models.PositiveIntegerField(db_default=6, default=6),
        ),
    ]
