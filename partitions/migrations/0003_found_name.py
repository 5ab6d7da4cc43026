"""Remember the name that an adopted file gave a partition."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("partitions", "0002_flags_default_and_cleaning")]

    operations = [
        migrations.AddField(
            model_name="partition",
            name="found_name",
            field=models.CharField(blank=True, db_default="", default="", max_length=100),
        ),
    ]
