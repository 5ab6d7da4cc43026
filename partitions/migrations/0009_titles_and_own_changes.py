import django.db.models.deletion
import django.db.models.functions.text
from django.db import migrations, models


class Migration(migrations.Migration):
    """What a tenant calls its partition, and whose people staged a change for themselves."""

    dependencies = [
        ("partitions", "0008_staging_action"),
        ("people", "0005_tenant_policy"),
    ]

    operations = [
        migrations.AddField(
            model_name="partition",
            name="title",
            field=models.CharField(blank=True, db_default="", default="", max_length=31),
        ),
        migrations.AddConstraint(
            model_name="partition",
            constraint=models.UniqueConstraint(
                models.F("subnet"),
                models.F("tenant"),
                django.db.models.functions.text.Lower("title"),
                condition=models.Q(("title", ""), _negated=True),
                name="partition_title",
            ),
        ),
        migrations.AddField(
            model_name="stagedchange",
            name="for_tenant",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="people.tenant"
            ),
        ),
    ]
