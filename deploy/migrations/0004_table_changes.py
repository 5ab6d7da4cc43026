"""Keep which tables each observation found changed, and which OpenSM processes it met."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("deploy", "0003_adopted_files"),
        ("inventory", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="TableChanges",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("master", models.CharField(blank=True, max_length=40)),
                ("processes", models.JSONField(default=dict)),
                ("is_base", models.BooleanField(default=False)),
                ("data", models.BinaryField()),
                (
                    "observation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="table_changes",
                        to="deploy.observation",
                    ),
                ),
                (
                    "subnet",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="inventory.subnet"
                    ),
                ),
            ],
            options={"indexes": [models.Index(fields=["subnet", "-id"], name="table_changes_newest")]},
        ),
    ]
