from django.db import migrations, models


class Migration(migrations.Migration):
    """What reviewers filter by and no index helped with: the kind of subject, and its label."""

    dependencies = [("audit", "0003_format_2")]

    operations = [
        migrations.AddIndex(
            model_name="event",
            index=models.Index(fields=["subject_kind", "-number"], name="event_subject_kind"),
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(fields=["subject_label", "-number"], name="event_subject_label"),
        ),
    ]
