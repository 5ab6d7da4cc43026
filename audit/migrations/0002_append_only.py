"""Let the database refuse to change the trail."""

from django.db import migrations

from audit import triggers


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial")]

    operations = [
        migrations.RunPython(
            lambda apps, schema_editor: triggers.create(schema_editor.connection),
            lambda apps, schema_editor: triggers.drop(schema_editor.connection),
        )
    ]
