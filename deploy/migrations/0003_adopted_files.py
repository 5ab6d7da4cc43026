"""Keep the hand-written files that were adopted, and the files of a look that are no revision."""

import django.db.models.deletion
from django.db import migrations, models

from deploy import triggers


class Migration(migrations.Migration):
    dependencies = [
        ("deploy", "0002_written_once"),
        ("inventory", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="StoredFile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("data", models.BinaryField()),
                ("size", models.PositiveBigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name="AdoptedFile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("data", models.BinaryField()),
                ("digest", models.CharField(max_length=64)),
                (
                    "host",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="inventory.managerhost"
                    ),
                ),
                (
                    "revision",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="adopted_files",
                        to="deploy.revision",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("revision", "host"), name="one_adopted_file_per_host"),
                ],
            },
        ),
        migrations.RunPython(
            lambda apps, schema_editor: triggers.ADOPTED_FILES.create(schema_editor.connection),
            lambda apps, schema_editor: triggers.ADOPTED_FILES.drop(schema_editor.connection),
        ),
    ]
