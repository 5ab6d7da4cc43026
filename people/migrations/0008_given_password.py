from django.db import migrations, models


class Migration(migrations.Migration):
    """The database has the default too: code of before this column makes accounts without it."""

    dependencies = [
        ("people", "0007_language_and_time_zone"),
    ]

    operations = [
        migrations.AddField(
            model_name="user",
            name="must_change_password",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
    ]
